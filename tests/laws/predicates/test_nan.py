"""NaN among numbers: what a block may hold is [lower, upper] and {NaN}, never what lies between the two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import secateur as sec
from secateur.index.zones import zonemap
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from tests.support.drawn.strategies import connected

NAN = math.nan
SCHEMA = pa.schema([("x", pa.float64()), ("y", pa.float64())])
COUNTS = [f"{c}.{count}" for c in "xy" for count in ("null_count", "nan_count")]

Row = tuple[float | None, float | None]

numbers = st.sampled_from([-math.inf, -35.0, -0.0, 0.0, 1.0, 2.0, 27.5, 35.0, 1e300, math.inf])
values = st.one_of(st.none(), st.just(NAN), numbers, st.floats(-40, 40))
blocks = st.lists(st.tuples(values, values), min_size=1, max_size=5)

LEAVES = [
    "x = 35D",
    "x != 35D",
    "x BETWEEN 25D AND 30D",
    "x NOT BETWEEN -1D AND 35D",
    "x IN (1D, 30D)",
    "x NOT IN (1D, 35D)",
    "x IN (35D, CAST('NaN' AS DOUBLE))",
    "x NOT IN (35D, CAST('NaN' AS DOUBLE))",
    "x > 2D",
    "x <= 2D",
    "x = CAST('inf' AS DOUBLE)",
    "x = CAST('NaN' AS DOUBLE)",
    "x < CAST('NaN' AS DOUBLE)",
    "x > CAST('NaN' AS DOUBLE)",
    "isnan(x)",
    "-x < -2D",
    "-x = CAST('NaN' AS DOUBLE)",
    "abs(x) = 35D",
    "abs(x) > 2D",
    "x + 1D = 36D",
    "x * 2D BETWEEN 3D AND 10D",
    "round(x) = 35D",
    "CAST(x AS FLOAT) = 35",
    "TRY_CAST(x AS INT) = 35",
]
OF_TWO = [
    "x = y",
    "x != y",
    "x < y",
    "x >= y",
    "x <=> y",
    "x + y = 36D",
    "x - y = 0D",
    "x * y > 2D",
    "x / y > 1D",
    "greatest(x, y) = 35D",
    "least(x, y) > 2D",
    "coalesce(x, y) = 35D",
    "nullif(x, y) = 1D",
    "if(x > y, x, y) = 35D",
    "if(isnan(x), y, x) = 35D",
    "CAST(x AS INT) + 1 = 2",
]
predicates = connected(st.sampled_from(LEAVES + OF_TWO), ["TRUE"], max_leaves=4)


def zone_maps(table: Sequence[Sequence[Row]], forgotten: frozenset[str] = frozenset()) -> pa.Table:
    """The zone maps of blocks; the counts that are forgotten are null."""
    columns: dict[str, pa.Array] = {"row_count": pa.array([len(block) for block in table])}
    for i, name in enumerate(SCHEMA.names):
        held = [[row[i] for row in block] for block in table]
        present = [[v for v in block if v is not None and v == v] for block in held]
        columns[f"{name}.lower"] = pa.array([min(v, default=None) for v in present], pa.float64())
        columns[f"{name}.upper"] = pa.array([max(v, default=None) for v in present], pa.float64())
        columns[f"{name}.null_count"] = pa.array([block.count(None) for block in held])
        columns[f"{name}.nan_count"] = pa.array([sum(v is not None and v != v for v in block) for block in held])
    return pa.table({n: pa.nulls(len(table), c.type) if n in forgotten else c for n, c in columns.items()})


def outcomes_of(predicate: str, statistics: pa.Table) -> list[int]:
    evaluated = sec.evaluate(predicate, statistics, schema=SCHEMA)
    bits = zip(*(evaluated[name].to_pylist() for name in ("may_be_true", "may_be_false", "may_be_null")), strict=True)
    return [t * TRUE + f * FALSE + n * NULL for t, f, n in bits]


def either(outcomes: Sequence[int]) -> int:
    return int(np.bitwise_or.reduce(np.array(outcomes, np.uint8)))


@pytest.mark.parametrize("leaf", LEAVES)
@given(block=blocks, forgotten=st.frozensets(st.sampled_from(COUNTS)))
def test_a_leaf_is_what_it_is_of_the_numbers_and_of_nan(leaf: str, block: list[Row], forgotten: frozenset[str]) -> None:
    """A block that may hold NaN can be just what its other rows can be, by the same bounds, and what NaN is."""
    nan = [row for row in block if row[0] is not None and row[0] != row[0]]
    others = [row for row in block if row not in nan]
    assume(any(row[0] is not None for row in others))  # else there are no bounds
    may_hold_nan = bool(nan) or "x.nan_count" in forgotten
    (said,) = outcomes_of(leaf, zone_maps([block], forgotten))
    parts = outcomes_of(leaf, zone_maps([others], forgotten - {"x.nan_count"}))
    parts += outcomes_of(leaf, zone_maps([[(NAN, None)]])) if may_hold_nan else []
    assert said == either(parts)


@given(st.lists(blocks, min_size=1, max_size=3), predicates, st.frozensets(st.sampled_from(COUNTS)))
def test_soundness(table: list[list[Row]], predicate: str, forgotten: frozenset[str]) -> None:
    """Every truth value that some row gives is among the outcomes of its block; a row is a block of its own."""
    for said, block in zip(outcomes_of(predicate, zone_maps(table, forgotten)), table, strict=True):
        really = either(outcomes_of(predicate, zone_maps([[row] for row in block])))
        assert said & really == really


@given(st.lists(blocks, min_size=1, max_size=6), st.integers(1, 3))
def test_merged_zone_maps_are_those_of_the_merged_blocks(table: list[list[Row]], fan_out: int) -> None:
    cuts = [*range(0, len(table), fan_out), len(table)]
    joined = [[row for block in table[first:end] for row in block] for first, end in pairwise(cuts)]
    merged = zonemap.merge(_of(table), _row_counts(table), np.array(cuts[:-1]))
    expected = _of(joined)
    zones, wanted = (maps.zones(_row_counts(joined)) for maps in (merged, expected))
    has_values = wanted.value != 0
    assert zones.value.tolist() == wanted.value.tolist()
    assert zones.null.tolist() == wanted.null.tolist()
    for side in ("lower", "upper", "numbers_upper"):
        assert getattr(zones, side).words[0][has_values].tolist() == getattr(wanted, side).words[0][has_values].tolist()


def _row_counts(table: Sequence[Sequence[Row]]) -> np.ndarray:
    return np.array([len(block) for block in table], np.int64)


def _of(table: Sequence[Sequence[Row]]) -> zonemap.ZoneMap:
    statistics = zone_maps(table)
    bounds = (statistics[f"x.{side}"].combine_chunks() for side in ("lower", "upper"))
    counts = (statistics[f"x.{count}"].to_numpy() for count in ("null_count", "nan_count"))
    return zonemap.from_bounds(pa.float64(), *bounds, *counts, _row_counts(table))
