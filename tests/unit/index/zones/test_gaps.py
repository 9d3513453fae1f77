"""Gaps: no value lies in one, a set of keys that misses a block is told to, and outliers do not blind bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.container.index_file import decode_chunk, encode_chunk
from secateur.index.zones.gaps import (
    LEAST_SPARED,
    MOST_GAPS,
    GapTable,
    gap_arrays,
    gap_table,
    gaps_of,
    pays,
    spared,
    widest_gaps,
)
from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.gaps import reaches
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.values.conversion import keys_of
from secateur.values.key import INT64_MAX, INT64_MIN
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, is_float, kind_of
from tests.support.drawn.strategies import KINDS, ColumnKind, array_of
from tests.support.profiles import examples, takes_seconds

WORD_KINDS = [kind for kind in KINDS if kind_of(kind.type) is Kind.WORD]

columns = st.sampled_from(WORD_KINDS).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(kind.values | st.none(), max_size=12))
)
counts = st.integers(1, MOST_GAPS)


def words(array: pa.Array) -> list[int]:
    """The keys of all values, distinct and ascending."""
    return sorted(set(keys_of(array.drop_null()).words[0].tolist()))


def values_of(array: pa.Array) -> dict[int, float]:
    """The floating values by their keys."""
    present = array.drop_null()
    return dict(zip(keys_of(present).words[0].tolist(), present.to_pylist(), strict=True))


def width(low: int, high: int, values: dict[int, float] | None) -> float:
    """How far two neighbours lie apart."""
    if values is None:
        return high - low
    a, b = (math.inf if math.isnan(v) else v for v in (values[low], values[high]))
    return 0 if a == b else b - a


# ---- the gaps of a block ---------------------------------------------------------------------------------------------


@examples(400)
@given(columns, counts)
def test_gaps_lie_between_neighbours_and_are_the_widest(column: tuple[ColumnKind, list[Any]], g: int) -> None:
    """For every type: infinities, NaN, both zeros and both ends of the integers included."""
    kind, values = column
    array = array_of(values, kind.type)
    low, high = widest_gaps(array, g)
    keys = words(array)
    gaps = list(zip(low.tolist(), high.tolist(), strict=True))
    apart = [(a, b) for a, b in pairwise(keys) if b - a > 1]
    assert gaps == sorted(set(gaps))
    assert set(gaps) <= set(apart)
    value_of = values_of(array) if is_float(kind.type) else None
    widths = sorted((width(a, b, value_of) for a, b in apart), reverse=True)
    chosen = sorted((width(a, b, value_of) for a, b in gaps), reverse=True)
    assert len(chosen) == min(g, sum(gap_width > 0 for gap_width in widths))
    assert chosen == widths[: len(chosen)]


def gaps_between(values: Sequence[Any], type_: pa.DataType, g: int = MOST_GAPS) -> list[tuple[int, int]]:
    low, high = widest_gaps(pa.array(values, type_), g)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def keys_between(low: Any, high: Any, type_: pa.DataType) -> tuple[int, int]:
    first, second = keys_of(pa.array([low, high], type_)).words[0].tolist()
    return first, second


@pytest.mark.parametrize(
    ("values", "type_", "g", "expected"),
    [
        ([], pa.int64(), 4, []),
        ([None], pa.int64(), 4, []),
        ([7, 7, None, 7], pa.int64(), 4, []),
        ([1, 2, 3], pa.int64(), 4, []),
        ([3, 1], pa.int64(), 4, [(1, 3)]),
        ([0, 10, 20, 30, 41], pa.int64(), 1, [(30, 41)]),
        ([0, 10, 20, 30], pa.int64(), 2, [(0, 10), (10, 20)]),
        ([INT64_MIN, INT64_MAX], pa.int64(), 4, [(INT64_MIN, INT64_MAX)]),
        ([INT64_MIN, 0, INT64_MAX], pa.int64(), 1, [(INT64_MIN, 0)]),
        ([1.0, 2.0, 1e300], pa.float64(), 1, [(2.0, 1e300)]),
        ([1e-300, 1.0, 2.0], pa.float64(), 1, [(1e-300, 1.0)]),
        ([-1.7e308, 0.0, 1.7e308, 1.75e308], pa.float64(), 2, [(-1.7e308, 0.0), (0.0, 1.7e308)]),
        ([-1.7e308, 1.7e308], pa.float64(), 4, [(-1.7e308, 1.7e308)]),
        ([-0.0, 0.0], pa.float64(), 4, []),
        ([1.0, math.nan, -math.nan], pa.float64(), 4, [(1.0, math.nan)]),
        ([math.inf, math.nan], pa.float64(), 4, []),
        ([1.0, 9.0, math.inf, math.nan], pa.float64(), 1, [(9.0, math.inf)]),
        ([-math.inf, 1.0, 9.0, math.nan], pa.float32(), 2, [(-math.inf, 1.0), (9.0, math.nan)]),
        ([-math.inf, math.inf], pa.float32(), 2, [(-math.inf, math.inf)]),
        ([False, True], pa.bool_(), 4, []),
    ],
)
def test_gaps_by_example(values: list[Any], type_: pa.DataType, g: int, expected: list[tuple[Any, Any]]) -> None:
    assert gaps_between(values, type_, g) == [keys_between(low, high, type_) for low, high in expected]


# ---- what reaches a block --------------------------------------------------------------------------------------------


def table_of(blocks: Sequence[pa.Array | None], g: int) -> GapTable:
    """The gaps of blocks, once they went through a chunk."""
    table = gap_table([None if block is None else widest_gaps(block, g) for block in blocks], g)
    return gaps_of(decode_chunk(encode_chunk(gap_arrays(table)), "here"), len(blocks), "here")


def bounds_of(blocks: Sequence[pa.Array | None]) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds, and the least and greatest key where nothing is known."""
    ends = [(INT64_MIN, INT64_MAX) if block is None else (words(block)[0], words(block)[-1]) for block in blocks]
    return np.array([low for low, _ in ends], np.int64), np.array([high for _, high in ends], np.int64)


@st.composite
def some_sets(draw: st.DrawFn, near: Sequence[int]) -> RangeSet:
    """A set with its ends at keys of a column, beside them, or anywhere: ranges, points, many points, or not these."""
    ends = st.integers(INT64_MIN, INT64_MAX) | st.integers(-20, 20)
    if near:
        beside = st.tuples(st.sampled_from(near), st.integers(-2, 2)).map(sum)
        ends = beside.map(lambda key: min(max(key, INT64_MIN), INT64_MAX)) | ends
    match draw(st.integers(0, 3)):
        case 0:
            start, stop = sorted(draw(st.tuples(ends, ends)))
            ranges = rangeset.between(Kind.WORD, start, draw(st.sampled_from([stop, None])))
        case 1:
            ranges = rangeset.points(Kind.WORD, draw(st.lists(ends, max_size=4)))
        case 2:
            some = np.random.default_rng(draw(st.integers(0, 99))).integers(INT64_MIN, INT64_MAX, 300)
            ranges = rangeset.integer_points(np.concatenate([some, draw(st.lists(ends, max_size=40))]).astype(np.int64))
        case _:
            ranges = rangeset.union(draw(some_sets(near)), draw(some_sets(near)))
    return rangeset.complement(ranges) if draw(st.booleans()) else ranges


@st.composite
def blocks_of_a_column(draw: st.DrawFn) -> tuple[list[pa.Array | None], RangeSet]:
    kind = draw(st.sampled_from(WORD_KINDS))
    pool = draw(st.lists(kind.values, min_size=1, max_size=10))
    some = st.lists(st.sampled_from(pool), min_size=1, max_size=8).map(lambda values: array_of(values, kind.type))
    blocks = draw(st.lists(st.none() | some, max_size=6))
    return blocks, draw(some_sets(words(array_of(pool, kind.type))))


@examples(500)
@given(blocks_of_a_column(), counts)
def test_a_block_with_a_value_in_the_set_is_reached(case: tuple[list[pa.Array | None], RangeSet], g: int) -> None:
    """For every type; and so are those of which nothing is known, by any set that is not empty."""
    blocks, ranges = case
    table, (lower, upper) = table_of(blocks, g), bounds_of(blocks)
    may_hold = reaches(ranges, lower, upper, table.low, table.high)
    assert may_hold.shape == (len(blocks),)
    for block, reached in zip(blocks, may_hold.tolist(), strict=True):
        if block is None:
            assert reached != ranges.is_empty
        else:
            assert reached or not ranges.contains(keys_of(block)).any()


@examples(300)
@given(blocks_of_a_column())
def test_of_few_values_gaps_are_exact(case: tuple[list[pa.Array | None], RangeSet]) -> None:
    """Where the values are the ends of all intervals, or adjacent to each other, only their own keys reach a block."""
    blocks, ranges = case
    table, (lower, upper) = table_of(blocks, MOST_GAPS), bounds_of(blocks)
    may_hold = reaches(ranges, lower, upper, table.low, table.high)
    for i, block in enumerate(blocks):
        if block is not None and len(words(block)) <= 1 + np.count_nonzero(table.low[:, i] < table.high[:, i]):
            assert bool(may_hold[i]) == bool(ranges.contains(keys_of(block)).any())


ends = st.integers(-12, 12) | st.sampled_from([INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX])


def meets(ranges: RangeSet, begin: int, end: int) -> bool:
    """Whether a set holds an integer in [begin, end]."""
    thresholds = [*ranges.thresholds.tolist(), INT64_MAX + 1]
    return any(max(a, begin) <= min(b - 1, end) for a, b in zip(thresholds[::2], thresholds[1::2], strict=False))


@examples(500)
@given(st.lists(st.tuples(*[ends] * 10), min_size=1, max_size=8), counts, some_sets([]), st.booleans())
def test_any_gaps_against_intervals_one_by_one(
    blocks: list[tuple[int, ...]], g: int, ranges: RangeSet, ordered: bool
) -> None:
    """Exact for gaps in order within the bounds; in disorder, or beside the bounds, no key outside of gaps is lost."""
    table = np.array([sorted(block) if ordered else block for block in blocks], np.int64).T
    lower, upper = np.sort(table[-2:], axis=0) if not ordered else table[[0, -1]]
    low, high = table[1 : 2 * g : 2], table[2 : 2 * g + 1 : 2]
    may_hold = reaches(ranges, lower, upper, low, high)
    for i, reached in enumerate(may_hold.tolist()):
        gaps = list(zip(low[:, i].tolist(), high[:, i].tolist(), strict=True))
        if ordered:
            begins, stops = [lower[i], *high[:, i]], [*low[:, i], upper[i]]
            spans = [(int(a), int(b)) for a, b in zip(begins, stops, strict=True)]
            assert reached == any(meets(ranges, a, b) for a, b in spans)
        else:
            outside = [k for k in range(-14, 15) if lower[i] <= k <= upper[i] and not any(a < k < b for a, b in gaps)]
            assert reached or not any(meets(ranges, k, k) for k in outside)


def test_no_blocks() -> None:
    nothing = np.zeros(0, np.int64)
    table = gap_table([], 2)
    assert len(table) == 0
    assert reaches(rangeset.everything(Kind.WORD), nothing, nothing, table.low, table.high).tolist() == []
    assert spared(table, nothing, nothing) == 0


# ---- what they are good for ------------------------------------------------------------------------------------------


def clustered(random: np.random.Generator, n: int) -> list[np.ndarray]:
    """Blocks of neighbouring values."""
    return [random.normal(i * 1000, 300, 200) for i in range(n)]


def with_outliers(random: np.random.Generator, n: int) -> list[np.ndarray]:
    return [np.append(values, random.uniform(0, n * 1000)) for values in clustered(random, n)]


def with_modes(random: np.random.Generator, n: int) -> list[np.ndarray]:
    """Blocks of three clusters each, far from each other."""
    centres = random.uniform(0, n * 1000, (n, 3))
    return [random.normal(np.repeat(centre, 100), 50) for centre in centres]


def with_nan(random: np.random.Generator, n: int) -> list[np.ndarray]:
    """Two NaN among the values of every block, and the infinities."""
    return [np.append(values, [math.nan, -math.inf, math.inf]) for values in clustered(random, n)]


TYPES: dict[str, Callable[[np.ndarray], pa.Array]] = {
    "double": lambda values: pa.array(values, pa.float64()),
    "bigint": lambda values: pa.array(values.astype(np.int64)),
    "timestamp": lambda values: pa.array(1_700_000_000_000_000 + values.astype(np.int64), pa.timestamp("us", "UTC")),
}


@takes_seconds
@pytest.mark.parametrize(
    ("shape", "g", "types"),
    [(with_outliers, 2, list(TYPES)), (with_modes, 4, list(TYPES)), (with_nan, 2, ["double"])],
)
def test_gaps_leave_a_fifth_of_the_blocks_or_less(
    shape: Callable[[np.random.Generator, int], list[np.ndarray]], g: int, types: list[str]
) -> None:
    """Of those that bounds leave to a random range."""
    for name in types:
        random = np.random.default_rng(1)
        blocks = [TYPES[name](values) for values in shape(random, 300)]
        keys = [keys_of(block) for block in blocks]
        table, (lower, upper) = table_of(blocks, g), bounds_of(blocks)
        by_bounds = by_gaps = 0
        for start in random.uniform(0, 300_000, 200):
            begin, end = keys_of(TYPES[name](np.array([start, start + 500]))).words[0].tolist()
            ranges = rangeset.between(Kind.WORD, begin, end)
            reached = reaches(ranges, lower, upper, table.low, table.high)
            holds = [bool(ranges.contains(block_keys).any()) for block_keys in keys]
            assert (reached | ~np.array(holds)).all()
            by_gaps += int(reached.sum())
            by_bounds += int(ranges.overlap(Keys(Kind.WORD, (lower,)), Keys(Kind.WORD, (upper,)))[0].sum())
        assert by_gaps * 5 <= by_bounds, name
        assert by_gaps > 0
        assert pays(table, lower, upper)


def test_the_share_that_is_spared_is_counted_value_by_value() -> None:
    random = np.random.default_rng(2)
    for shape, g in ((with_outliers, 1), (with_modes, 3), (clustered, 4)):
        blocks = [TYPES["bigint"](values) for values in shape(random, 40)]
        table, (lower, upper) = table_of(blocks, g), bounds_of(blocks)
        filled = table.low < table.high
        asked = np.unique(np.concatenate([lower, upper, table.low[filled], table.high[filled]]))
        points = [rangeset.points(Kind.WORD, [value]) for value in asked.tolist()]
        nothing = np.zeros((0, len(blocks)), np.int64)
        by_bounds = sum(int(reaches(point, lower, upper, nothing, nothing).sum()) for point in points)
        by_gaps = sum(int(reaches(point, lower, upper, table.low, table.high).sum()) for point in points)
        assert spared(table, lower, upper) == pytest.approx(1 - by_gaps / by_bounds)


@pytest.mark.parametrize("shape", ["apart", "everywhere", "alike"])
def test_gaps_do_not_pay_where_bounds_do_or_nothing_does(shape: str) -> None:
    """Of blocks apart from each other, of values at random in all blocks, and of the same clusters in all blocks."""
    random = np.random.default_rng(3)
    draw: dict[str, Callable[[int], np.ndarray]] = {
        "apart": lambda i: random.integers(i * 1000, i * 1000 + 900, 100),
        "everywhere": lambda i: random.integers(0, 10**6, 1000),
        "alike": lambda i: random.choice([0, 10**6, 2 * 10**6], 100) + random.integers(0, 10, 100),
    }
    blocks = [pa.array(draw[shape](i)) for i in range(100)]
    table, (lower, upper) = table_of(blocks, MOST_GAPS), bounds_of(blocks)
    assert 0 <= spared(table, lower, upper) < LEAST_SPARED
    assert not pays(table, lower, upper)


# ---- bytes -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.none() | st.lists(st.integers(-50, 50), max_size=9), max_size=9), counts)
def test_a_table_keeps_the_gaps_of_every_block(blocks: list[list[int] | None], g: int) -> None:
    table = table_of([None if values is None else pa.array(values, pa.int64()) for values in blocks], g)
    assert table.low.shape == table.high.shape == (g, len(blocks))
    assert table.nbytes == 16 * g * len(blocks)
    for i, values in enumerate(blocks):
        known = table.take(np.array([i]))
        filled = (known.low < known.high).ravel()
        kept = list(zip(known.low[filled, 0].tolist(), known.high[filled, 0].tolist(), strict=True))
        assert kept == ([] if values is None else gaps_between(values, pa.int64(), g))
        assert (known.low[~filled] == known.high[~filled]).all()


GOOD = [np.array([1, 2]), np.array([5, 9]), np.array([3, 2]), np.array([6, 9])]
LIES: dict[str, list[np.ndarray]] = {
    "no gaps": [],
    "odd": GOOD[:3],
    "more than there are": [np.zeros(2, np.int64)] * (2 * MOST_GAPS + 2),
    "too long": [*GOOD[:3], np.array([6, 9, 9])],
    "too short": [*GOOD[:3], np.array([6])],
    "narrow": [*GOOD[:3], GOOD[3].astype(np.int32)],
    "unsigned": [*GOOD[:3], GOOD[3].astype(np.uint64)],
    "low above high": [GOOD[0], GOOD[1], np.array([0, 2]), GOOD[3]],
    "overlapping": [GOOD[0], GOOD[1], np.array([7, 2]), np.array([8, 9])],
    "as many as one likes": [np.broadcast_to(np.int64(0), 1 << 50)] * 4,
}


@pytest.mark.parametrize("name", LIES)
def test_gaps_that_lie_are_a_fault(name: str) -> None:
    assert gaps_of(GOOD, 2, "the lie").low.tolist() == [[1, 2], [5, 9]]
    with pytest.raises(IndexFault, match="the lie"):
        gaps_of(LIES[name], 2, "the lie")


@examples(300)
@given(counts, st.integers(0, 3), st.data())
def test_any_arrays_are_a_fault_or_gaps(g: int, n: int, data: st.DataObject) -> None:
    """A fault just where an end is less than the one before it."""
    some = st.lists(st.integers(0, 3) | ends, min_size=n, max_size=n)
    low, high = (data.draw(st.lists(some, min_size=g, max_size=g)) for _ in range(2))
    given_arrays = [np.array(numbers, np.int64) for numbers in low + high]
    in_order = all(
        a <= b for i in range(n) for a, b in pairwise(v[i] for pair in zip(low, high, strict=True) for v in pair)
    )
    if in_order:
        assert gaps_of(given_arrays, n, "here").low.tolist() == low
    else:
        with pytest.raises(IndexFault, match="here"):
            gaps_of(given_arrays, n, "here")
