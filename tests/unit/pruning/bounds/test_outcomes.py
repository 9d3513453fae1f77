"""The algebra of possible outcomes, against its definition."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.pruning.bounds import outcomes as sets
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from tests.support.drawn.strategies import connected

TRUTHS: dict[bool | None, int] = {True: TRUE, False: FALSE, None: NULL}
NON_EMPTY = range(1, 8)


def kleene_and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def kleene_or(a: bool | None, b: bool | None) -> bool | None:
    negated = kleene_and(None if a is None else not a, None if b is None else not b)
    return None if negated is None else not negated


def members(outcomes: int) -> list[bool | None]:
    return [value for value, bit in TRUTHS.items() if outcomes & bit]


def lifted(function: Callable[..., bool | None], *operands: int) -> int:
    """The set of what a function gives for every choice of members."""
    truths = {function(*choice) for choice in itertools.product(*map(members, operands))}
    return sum(TRUTHS[value] for value in truths)


@pytest.mark.parametrize(
    ("operation", "table"), [(sets.conjunction, kleene_and), (sets.disjunction, kleene_or)], ids=["AND", "OR"]
)
def test_connectives_are_kleenes_tables_on_sets(
    operation: Callable[[np.ndarray, np.ndarray], np.ndarray], table: Callable[..., bool | None]
) -> None:
    pairs = np.array(list(itertools.product(NON_EMPTY, NON_EMPTY)), np.uint8)
    expected = [lifted(table, int(a), int(b)) for a, b in pairs]
    assert operation(pairs[:, 0].copy(), pairs[:, 1].copy()).tolist() == expected


def test_not_swaps_true_and_false() -> None:
    everything = np.arange(8, dtype=np.uint8)
    expected = [lifted(lambda a: None if a is None else not a, int(a)) for a in everything]
    assert sets.negation(everything).tolist() == expected


@pytest.mark.parametrize("value", [True, False, None])
def test_is_compares_truth_values(value: bool | None) -> None:
    everything = np.arange(8, dtype=np.uint8)
    expected = [lifted(lambda a: a is value, int(a)) for a in everything]
    assert sets.equality(everything, value).tolist() == expected


# Blocks of rows, their statistics, and predicates over them: what the kernel says must hold of the rows.

values = st.one_of(st.none(), st.integers(-3, 3))
blocks = st.lists(st.tuples(values, values), min_size=1, max_size=5)
LEAVES = [
    "a = 1",
    "a < 0",
    "b >= 2",
    "a IN (0, 2, NULL)",
    "b IS NULL",
    "a <=> 1",
    "b BETWEEN -1 AND 1",
    "a <> 3",
    "NULL",
]
predicates = connected(st.sampled_from(LEAVES), ["TRUE"], max_leaves=6)


def statistics(table: list[list[tuple[int | None, int | None]]], forgotten: frozenset[str]) -> pa.Table:
    """The zone maps of blocks; the statistics that are forgotten are null."""
    columns: dict[str, pa.Array] = {"row_count": pa.array([len(block) for block in table])}
    for i, name in enumerate("ab"):
        present = [[row[i] for row in block if row[i] is not None] for block in table]
        columns[f"{name}.lower"] = pa.array([min(v, default=None) for v in present], pa.int64())
        columns[f"{name}.upper"] = pa.array([max(v, default=None) for v in present], pa.int64())
        columns[f"{name}.null_count"] = pa.array([len(b) - len(v) for b, v in zip(table, present, strict=True)])
    return pa.table({n: pa.nulls(len(table), c.type) if n in forgotten else c for n, c in columns.items()})


SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])
STATISTICS = [f"{c}.{s}" for c in "ab" for s in ("lower", "upper", "null_count")] + ["row_count"]


def outcomes_of(predicate: str, zone_maps: pa.Table) -> list[int]:
    answer = sec.evaluate(predicate, zone_maps, schema=SCHEMA)
    bits = zip(*(answer[name].to_pylist() for name in ("may_be_true", "may_be_false", "may_be_null")), strict=True)
    return [t * TRUE + f * FALSE + n * NULL for t, f, n in bits]


def row_outcomes(predicate: str, block: list[tuple[int | None, int | None]]) -> int:
    """What the predicate really is over the rows: each row is a block of its own."""
    by_row = outcomes_of(predicate, statistics([[row] for row in block], frozenset()))
    return int(np.bitwise_or.reduce(np.array(by_row, np.uint8)))


@given(st.lists(blocks, min_size=1, max_size=4), predicates)
def test_soundness(table: list[list[tuple[int | None, int | None]]], predicate: str) -> None:
    """Every truth value that some row gives is among the outcomes of its block."""
    for said, block in zip(outcomes_of(predicate, statistics(table, frozenset())), table, strict=True):
        really = row_outcomes(predicate, block)
        assert said & really == really


@given(blocks, predicates, st.frozensets(st.sampled_from(STATISTICS)), st.frozensets(st.sampled_from(STATISTICS)))
def test_monotonicity(
    block: list[tuple[int | None, int | None]], predicate: str, some: frozenset[str], more: frozenset[str]
) -> None:
    """Forgetting statistics never shrinks a set of outcomes."""
    (known,) = outcomes_of(predicate, statistics([block], some))
    (unknown,) = outcomes_of(predicate, statistics([block], some | more))
    assert unknown & known == known


@given(st.lists(blocks, min_size=2, max_size=4), predicates)
def test_merging(table: list[list[tuple[int | None, int | None]]], predicate: str) -> None:
    """The outcomes of a block that holds the rows of others contain theirs."""
    (parent,) = outcomes_of(predicate, statistics([[row for block in table for row in block]], frozenset()))
    for child in outcomes_of(predicate, statistics(table, frozenset())):
        assert parent & child == child


@given(blocks, predicates)
def test_negation(block: list[tuple[int | None, int | None]], predicate: str) -> None:
    """The outcomes of NOT p are those of p with TRUE and FALSE swapped."""
    zone_maps = statistics([block], frozenset())
    said = np.array(outcomes_of(predicate, zone_maps), np.uint8)
    assert outcomes_of(f"NOT ({predicate})", zone_maps) == sets.negation(said).tolist()


def test_a_block_without_rows_is_dead() -> None:
    zone_maps = pa.table({"row_count": [0, 1], "a.null_count": [0, 0]})
    assert outcomes_of("TRUE", zone_maps) == [0, TRUE]
    assert outcomes_of("a IS NULL OR a > 3", zone_maps)[0] == 0
