"""Zone maps hold for every value below them: as measured, as cut, as merged, and as pages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import KINDS, ColumnKind, array_of

from secateur.index import btree, zonemap
from secateur.index.pages import PageTable, concat_pages, page_row_counts, take_pages, whole_blocks
from secateur.index.zonemap import BOUND_BYTES, ZoneMap
from secateur.pruning.outcomes import FALSE, NULL, TRUE
from secateur.values import Keys, Kind, is_float, keys_of, kind_of

# A column, and its values in some units; None is NULL.
units = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(
        st.just(kind), st.lists(st.lists(kind.values | st.none(), max_size=6), min_size=1, max_size=8)
    )
)


def measured(kind: ColumnKind, values: Sequence[Sequence[Any]]) -> tuple[ZoneMap, np.ndarray]:
    """The zone maps of units as a build measures them, and the row counts."""
    found = [zonemap.of_values(array_of(unit, kind.type), kind.type) for unit in values]
    lower, upper, null_count, nan_count = zip(*found, strict=True)
    type_ = pa.binary() if kind_of(kind.type) is Kind.BYTES else kind.type
    row_count = np.array([len(unit) for unit in values])
    counts = np.array(null_count), np.array(nan_count)
    low, high = pa.array(list(lower), type_), pa.array(list(upper), type_)
    return zonemap.from_bounds(kind.type, low, high, *counts, row_count), row_count


def at_most(keys: Keys, bounds: Keys) -> np.ndarray:
    """Which keys are <= the bounds beside them."""
    joined = zonemap.concatenate([keys, bounds])
    first, second = (tuple(word[part] for word in joined.words) for part in (slice(len(keys)), slice(len(keys), None)))
    below, tied = np.zeros(len(keys), bool), np.ones(len(keys), bool)
    for a, b in zip(first, second, strict=True):
        below |= tied & (a < b)
        tied &= a == b
    return below | tied


def check_holds(zone_map: ZoneMap, unit: int, kind: ColumnKind, values: Sequence[Any], row_count: int) -> None:
    """A unit's zone map against the values that it summarises."""
    present = [value for value in values if value is not None]
    here = np.full(len(present), unit)
    if present:
        keys = keys_of(array_of(present, kind.type))
        assert at_most(keys, zone_map.upper.take(here)).all()
        assert at_most(zone_map.lower.take(here), keys).all()
    nan_count = sum(value != value for value in present)
    assert zone_map.null_count[unit] in (-1, len(values) - len(present))
    assert zone_map.nan_count[unit] in (-1, nan_count)
    zones = zone_map.take(np.array([unit])).zones(np.array([row_count]))
    assert zones.value[0] == TRUE | FALSE or not present
    assert zones.null[0] == NULL or len(present) == len(values)


@given(units)
def test_measured_bounds_hold(case: tuple[ColumnKind, list[list[Any]]]) -> None:
    """Of every type: NaN is within, NULL is counted, and strings are cut to BOUND_BYTES on the right side."""
    kind, values = case
    zone_map, row_count = measured(kind, values)
    for unit, mine in enumerate(values):
        check_holds(zone_map, unit, kind, mine, int(row_count[unit]))
    if kind_of(kind.type) is Kind.BYTES:
        for side in (zone_map.lower, zone_map.upper):
            lengths = side.words[-1]
            assert (lengths[lengths < 2**63] <= BOUND_BYTES).all()


@given(units, st.data())
def test_merged_bounds_hold(case: tuple[ColumnKind, list[list[Any]]], data: st.DataObject) -> None:
    """A parent's zone map holds for the values of all its children, whatever is unknown of some of them."""
    kind, values = case
    zone_map, row_count = measured(kind, values)
    forgotten = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    blank = zonemap.unknown(zone_map.lower.kind, len(values))
    zone_map = ZoneMap(
        zonemap.choose(forgotten, blank.lower, zone_map.lower),
        zonemap.choose(forgotten, blank.upper, zone_map.upper),
        np.where(forgotten, -1, zone_map.null_count),
        np.where(forgotten, -1, zone_map.nan_count),
    )
    cuts = data.draw(st.sets(st.integers(1, len(values) - 1)) if len(values) > 1 else st.just(set()))
    starts = [0, *sorted(cuts)]
    merged = zonemap.merge(zone_map, row_count, np.array(starts))
    for group, (start, stop) in enumerate(zip(starts, [*starts[1:], len(values)], strict=True)):
        below = [value for unit in values[start:stop] for value in unit]
        check_holds(merged, group, kind, below, int(row_count[start:stop].sum()))
        if forgotten[start:stop].any():
            assert merged.null_count[group] == merged.nan_count[group] == -1


def test_c14_an_unknown_child_makes_an_unknown_parent() -> None:
    known = zonemap.from_bounds(pa.int64(), pa.array([1]), pa.array([2]), np.array([0]), np.array([0]), np.array([5]))
    both = zonemap.concat([known, zonemap.unknown(Kind.WORD, 1)])
    merged = zonemap.merge(both, np.array([5, 5]), np.array([0]))
    nothing = zonemap.unknown(Kind.WORD, 1)
    assert merged.lower.words[0].tolist() == nothing.lower.words[0].tolist()
    assert merged.upper.words[0].tolist() == nothing.upper.words[0].tolist()
    assert merged.null_count.tolist() == [-1]


def test_c14_a_child_without_values_adds_no_bounds() -> None:
    """The bounds of a unit of NULL mean nothing, and must not widen its parent's; an unknown row count says nothing."""
    bounds = pa.array([5, None]), pa.array([9, None])
    zone_map = zonemap.from_bounds(pa.int64(), *bounds, np.array([0, 3]), np.array([0, 0]), np.array([2, 3]))
    merged = zonemap.merge(zone_map, np.array([2, 3]), np.array([0]))
    assert (merged.lower.words[0].tolist(), merged.upper.words[0].tolist()) == ([5], [9])
    unknown_rows = zonemap.merge(zone_map, np.array([2, -1]), np.array([0]))
    assert unknown_rows.lower.words[0].tolist() == [-(2**63)]


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1024, 1025, 2000])
def test_every_level_of_the_tree_contains_the_one_below(n: int) -> None:
    random = np.random.default_rng(n)
    values = random.integers(-1000, 1000, n)
    counts = np.ones(n, np.int64)
    leaf = zonemap.from_bounds(
        pa.int64(), pa.array(values), pa.array(values), np.zeros(n, int), np.zeros(n, int), counts
    )
    levels, rows = btree.merge_up(leaf, counts), btree.row_counts(counts)
    assert [len(level) for level in levels] == [len(level) for level in rows]
    assert len(levels[-1]) <= btree.FAN_OUT
    for below, above in pairwise(levels):
        parents = np.arange(len(below)) // btree.FAN_OUT
        assert at_most(above.lower.take(parents), below.lower).all()
        assert at_most(below.upper, above.upper.take(parents)).all()
    assert all(level.sum() == n for level in rows)


@given(units)
def test_of_a_unit_with_nan_only_the_bounds_are_nan(case: tuple[ColumnKind, list[list[Any]]]) -> None:
    """So that a comparison with a number is decided, as for any other constant block."""
    kind, values = case
    if not is_float(kind.type):
        return
    zone_map, _ = measured(kind, [[float("nan")] * 3, *values])
    assert zone_map.lower.words[0][0] == zone_map.upper.words[0][0] == zonemap.NAN_KEY


def test_bounds_that_do_not_fit_the_type_are_unknown() -> None:
    """A file that holds another type than the table says: nothing is claimed."""
    wide = pa.array([2**40]), pa.array([2**41])
    zone_map = zonemap.from_bounds(pa.int32(), *wide, np.array([0]), np.array([0]), np.array([1]))
    assert zone_map.lower.words[0].tolist() == [-(2**63)]
    assert zone_map.upper.words[0].tolist() == [2**63 - 1]


# ---- pages -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=6), st.data())
def test_pages_of_chosen_blocks(rows: list[list[int]], data: st.DataObject) -> None:
    """Taking blocks takes their pages; row counts and first rows stay with them."""
    counts = [len(pages) for pages in rows]
    first = [int(r) for pages in rows for r in np.cumsum([0, *pages[:-1]])]
    flat = np.array([r for pages in rows for r in pages])
    n = len(flat)
    zone_map = zonemap.from_bounds(pa.int64(), pa.array(range(n)), pa.array(range(n)), flat * 0, flat * 0, flat)
    table = zonemap_pages(counts, first, zone_map)
    block_rows = np.array([sum(pages) for pages in rows])
    assert table.row_counts(block_rows).tolist() == flat.tolist()
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    taken = take_pages(table, np.array(chosen))
    assert taken.row_counts(block_rows[chosen]).tolist() == [r for block in chosen for r in rows[block]]
    numbers = np.split(np.arange(n), np.cumsum(counts)[:-1])
    assert taken.zone_map.lower.words[0].tolist() == [int(i) for block in chosen for i in numbers[block]]
    joined = concat_pages([taken, whole_blocks(zone_map)])
    assert page_row_counts(joined.offsets, joined.first_row, np.append(block_rows[chosen], flat)).tolist() == [
        *(r for block in chosen for r in rows[block]),
        *flat.tolist(),
    ]


def zonemap_pages(counts: Sequence[int], first: Sequence[int], zone_map: ZoneMap) -> PageTable:
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    position = np.arange(len(first)) * 100
    return PageTable(offsets, np.array(first, np.int64), position, np.full(len(first), 100), zone_map)
