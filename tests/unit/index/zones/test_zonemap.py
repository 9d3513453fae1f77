"""Zone maps hold for every value below them: as measured, as cut, as merged, and as pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.zones import segment_tree, zonemap
from secateur.index.zones.page_statistics import (
    PageTable,
    Places,
    concat_pages,
    page_row_counts,
    take_pages,
    whole_blocks,
)
from secateur.index.zones.zonemap import BOUND_BYTES, ZoneMap
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.values.conversion import keys_of
from secateur.values.kinds import Kind, is_float, kind_of
from tests.support.checks.units import at_most, measured, units
from tests.support.drawn.strategies import ColumnKind, array_of


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
    for unit, unit_values in enumerate(values):
        check_holds(zone_map, unit, kind, unit_values, int(row_count[unit]))
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


@pytest.mark.parametrize("fan_out", [2, 3, 32, 5000])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1024, 1025, 2000])
def test_every_level_of_the_tree_contains_the_one_below(n: int, fan_out: int) -> None:
    random = np.random.default_rng(n)
    values = pa.array(random.integers(-1000, 1000, n))
    counts = random.integers(0, 5, n)
    leaf = zonemap.from_bounds(pa.int64(), values, values, counts // 2, np.zeros(n, int), counts)
    tree = segment_tree.tree_over(counts, fan_out)
    nodes = segment_tree.merge_up(leaf, tree)
    levels = [np.arange(begin, end) for begin, end in pairwise(tree.begin)]
    assert len(nodes) == len(tree.row_count) == tree.begin[-1]
    assert len(levels[0]) == n
    assert len(levels[-1]) <= fan_out
    assert nodes.take(levels[0]).lower.words[0].tolist() == leaf.lower.words[0].tolist()
    for below, above in pairwise(levels):
        assert len(above) == -(-len(below) // fan_out)
        filled = below[tree.row_count[below] > nodes.null_count[below]]
        parents = above[(filled - below[0]) // fan_out]
        assert at_most(nodes.lower.take(parents), nodes.lower.take(filled)).all()
        assert at_most(nodes.upper.take(filled), nodes.upper.take(parents)).all()
    for level in levels:
        assert tree.row_count[level].sum() == counts.sum()
        assert nodes.null_count[level].sum() == (counts // 2).sum()


@pytest.mark.parametrize("fan_out", [1, 0, -3])
def test_a_tree_has_a_fan_out(fan_out: int) -> None:
    with pytest.raises(IndexFault, match="fan-out"):
        segment_tree.tree_over(np.ones(5, np.int64), fan_out)


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
    table = paged(counts, first, zone_map)
    block_rows = np.array([sum(pages) for pages in rows])
    assert table.row_counts(block_rows).tolist() == flat.tolist()
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    taken = take_pages(table, np.array(chosen))
    assert taken.row_counts(block_rows[chosen]).tolist() == [r for block in chosen for r in rows[block]]
    numbers = np.split(np.arange(n), np.cumsum(counts)[:-1])
    expected = [int(i) for block in chosen for i in numbers[block]]
    assert taken.zone_map.lower.words[0].tolist() == expected
    assert taken.places is not None
    assert taken.places.position.tolist() == [i * 100 for i in expected]
    assert taken.places.size.tolist() == [i + 1 for i in expected]
    nowhere = replace(table, places=None)
    assert take_pages(nowhere, np.array(chosen)).places is None
    joined = concat_pages([taken, whole_blocks(zone_map)])
    assert page_row_counts(joined.offsets, joined.first_row, np.append(block_rows[chosen], flat)).tolist() == [
        *(r for block in chosen for r in rows[block]),
        *flat.tolist(),
    ]
    assert joined.places is not None
    assert joined.places.position.tolist() == [*taken.places.position.tolist(), *([-1] * n)]
    assert joined.places.size.tolist() == [*taken.places.size.tolist(), *([-1] * n)]
    assert concat_pages([taken, nowhere]).places is None


def paged(counts: Sequence[int], first: Sequence[int], zone_map: ZoneMap) -> PageTable:
    """Pages of which each tells its number by where it lies."""
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    numbers = np.arange(len(first))
    return PageTable(offsets, np.array(first, np.int64), zone_map, Places(numbers * 100, numbers + 1))
