"""What is left to check block by block: no condition too few, and none that every row of the block fulfils."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.zones.zone_table import ZoneTable
from secateur.pruning.bounds.outcomes import TRUE, fully_matching, survives
from secateur.pruning.evaluate import evaluate
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Within
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.residual import Residuals, residuals_of
from secateur.pruning.rows.truth import truth
from tests.support.drawn.strategies import connected

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])
Row = tuple[int | None, int | None]

values = st.one_of(st.none(), st.integers(-3, 9))
blocks = st.lists(st.tuples(values, values), min_size=1, max_size=4)
LEAVES = [
    "a > 1",
    "a < 7",
    "a >= -1",
    "a BETWEEN 0 AND 4",
    "a NOT IN (2, 3)",
    "a + 1 BETWEEN 2 AND 6",
    "a % 4 > 0",
    "a % 4 < 3",
    "b <= 5",
    "b > 0",
    "b IS NOT NULL",
    "a < b",
]
conjunctions = st.lists(connected(st.sampled_from(LEAVES), [], max_leaves=2), min_size=1, max_size=5)


def bound(text: str) -> Predicate:
    return rewrite(bind(parse(text), SCHEMA))


def rows_of(block: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"a": a, "b": b} for a, b in block], SCHEMA)


def statistics(table: list[list[Row]]) -> ZoneTable:
    columns: dict[str, pa.Array] = {"row_count": pa.array([len(block) for block in table])}
    for i, name in enumerate("ab"):
        present = [[row[i] for row in block if row[i] is not None] for block in table]
        columns[f"{name}.lower"] = pa.array([min(v, default=None) for v in present], pa.int64())
        columns[f"{name}.upper"] = pa.array([max(v, default=None) for v in present], pa.int64())
        columns[f"{name}.null_count"] = pa.array([len(b) - len(v) for b, v in zip(table, present, strict=True)])
    return ZoneTable(pa.table(columns))


def residuals(predicate: Predicate, table: list[list[Row]]) -> tuple[Residuals, np.ndarray]:
    """The residuals of blocks, and which of them survive."""
    outcomes = evaluate(predicate, statistics(table))
    return residuals_of(predicate, statistics(table), fully_matching(outcomes)), survives(outcomes)


def sides(predicate: Predicate | None) -> list[Predicate]:
    """All conditions under AND, the ends of a range as two."""
    match predicate:
        case None:
            return []
        case And(children):
            return [side for child in children for side in sides(child)]
        case Within(sides=(_, *_) as several):
            return list(several)
        case _:
            return [predicate]


@given(st.lists(blocks, min_size=1, max_size=4), conjunctions)
def test_the_residual_of_a_block_is_the_predicate_on_its_rows(table: list[list[Row]], texts: list[str]) -> None:
    predicate = bound(" AND ".join(f"({text})" for text in texts))
    residual, alive = residuals(predicate, table)
    for i in np.flatnonzero(alive).tolist():
        left, rows = residual.distinct[residual.of_block[i]], rows_of(table[i])
        matching = (truth(predicate, rows) == TRUE).tolist()
        assert matching == ([True] * len(rows) if left is None else (truth(left, rows) == TRUE).tolist())


@given(st.lists(blocks, min_size=1, max_size=4), conjunctions)
def test_what_is_sure_in_a_block_is_not_left(table: list[list[Row]], texts: list[str]) -> None:
    """Of the conditions under AND just those are left that are not TRUE by the bounds of the block."""
    predicate = bound(" AND ".join(f"({text})" for text in texts))
    residual, _ = residuals(predicate, table)
    for i, block in enumerate(table):
        unit = statistics([block])
        unsure = [side for side in sides(predicate) if not fully_matching(evaluate(side, unit))[0]]
        if not fully_matching(evaluate(predicate, unit))[0]:
            assert list(map(str, sides(residual.distinct[residual.of_block[i]]))) == list(map(str, unsure))


def test_one_end_of_a_range_is_left_where_the_other_is_sure() -> None:
    table: list[list[Row]] = [[(0, 0), (5, 0)], [(5, 0), (9, 0)], [(0, 0), (9, 0)], [(3, 0), (4, 0)]]
    residual, _ = residuals(bound("a > 1 AND a < 7 AND b = 0"), table)
    texts = [None if condition is None else str(condition) for condition in residual.distinct]
    assert [texts[i] for i in residual.of_block.tolist()] == ["`a` > 1", "`a` < 7", "(`a` > 1 AND `a` < 7)", None]


def test_conditions_beyond_number_are_left_as_one() -> None:
    text = " AND ".join(f"a % {i} >= 0 AND a % {i} < 9" for i in range(2, 40))
    residual, alive = residuals(bound(text), [[(0, 0), (9, 0)]])
    assert alive.all()
    assert str(residual.whole) == str(bound(text))
