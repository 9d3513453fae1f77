"""Sets of keys, against sets of small integers, byte strings and wide integers that a list holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.bounds import rangeset, threshold_grid
from secateur.pruning.bounds.outcomes import FALSE, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.values import (
    INT64_MAX,
    INT64_MIN,
    INT128_MAX,
    INT128_MIN,
    Key,
    Keys,
    Kind,
    choose,
    constant_keys,
    greatest_keys,
    keys_from,
    keys_of,
    least_key,
    successor,
)

WORDS: list[Key] = [INT64_MIN, INT64_MIN + 1, -2, -1, 0, 1, 2, 3, INT64_MAX - 1, INT64_MAX]
WIDE: list[Key] = [INT128_MIN, -(2**64) - 1, -(2**64), -1, 0, 1, 2**63, 2**64 - 1, 2**64, INT128_MAX]
BYTES: list[Key] = [
    b"",
    b"\0",
    b"\0\0",
    b"a",
    b"a\0",
    b"a\0\0b",
    b"abcdefgh",
    b"abcdefgh\0",
    b"abcdefghi",
    b"b",
    b"\xff" * 9,
]
UNIVERSES = {Kind.WORD: WORDS, Kind.WIDE: WIDE, Kind.BYTES: BYTES}


def keys(kind: Kind, values: list[Key]) -> Keys:
    match kind:
        case Kind.WORD:
            return Keys(kind, (np.array(values, np.int64),))
        case Kind.WIDE:
            high = np.array([int(v) >> 64 for v in values], np.int64)  # type: ignore[arg-type]
            low = np.array([int(v) & (2**64 - 1) for v in values], np.uint64)  # type: ignore[operator]
            return Keys(kind, (high, low))
        case Kind.BYTES:
            return keys_of(pa.array(values, pa.binary()))


@st.composite
def sets(draw: st.DrawFn, kind: Kind) -> RangeSet:
    universe = UNIVERSES[kind]
    if draw(st.booleans()):
        return rangeset.points(kind, draw(st.lists(st.sampled_from(universe), max_size=5)))
    start, stop = sorted(draw(st.lists(st.sampled_from(universe), min_size=2, max_size=2)))
    return rangeset.between(kind, start, draw(st.sampled_from([stop, None])))


def inside(a: RangeSet) -> list[bool]:
    return a.contains(keys(a.kind, UNIVERSES[a.kind])).tolist()  # type: ignore[no-any-return]


kinds = st.sampled_from(list(Kind))
pairs = kinds.flatmap(lambda kind: st.tuples(sets(kind), sets(kind)))


@given(kinds.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(st.sampled_from(UNIVERSES[kind]), max_size=6))))
def test_points_hold_just_these_keys(case: tuple[Kind, list[Key]]) -> None:
    kind, chosen = case
    ranges = rangeset.points(kind, chosen)
    assert inside(ranges) == [key in chosen for key in UNIVERSES[kind]]
    if chosen and successor(max(chosen), kind) is None:
        assert ranges.points is None  # the last range is open, and not looked into
    else:
        assert ranges.points is not None
        assert sorted(ranges.points.tolist()) == sorted(set(chosen))


@given(st.lists(st.sampled_from(WORDS) | st.integers(-9, 9), max_size=9))
def test_points_of_an_array_of_integers(chosen: list[Key]) -> None:
    assert rangeset.integer_points(np.array(chosen, np.int64)) == rangeset.points(Kind.WORD, chosen)


@given(st.lists(st.sampled_from(BYTES) | st.binary(max_size=2), max_size=9))
def test_points_of_an_array_of_bytes(chosen: list[Key]) -> None:
    ranges = rangeset.byte_points(pa.array(chosen, pa.large_binary()))
    assert ranges == rangeset.points(Kind.BYTES, chosen)
    assert hash(ranges) == hash(rangeset.points(Kind.BYTES, chosen))


@given(pairs)
def test_operations_are_those_of_sets(pair: tuple[RangeSet, RangeSet]) -> None:
    a, b = pair
    assert inside(rangeset.union(a, b)) == [x or y for x, y in zip(inside(a), inside(b), strict=True)]
    assert inside(rangeset.intersection(a, b)) == [x and y for x, y in zip(inside(a), inside(b), strict=True)]
    assert inside(rangeset.complement(a)) == [not x for x in inside(a)]
    assert rangeset.complement(rangeset.complement(a)) == a
    assert rangeset.union(a, rangeset.complement(a)).is_everything
    assert rangeset.intersection(a, rangeset.complement(a)).is_empty


@given(pairs, st.data())
def test_overlap_is_sound_and_tells_what_bounds_can(pair: tuple[RangeSet, RangeSet], data: st.DataObject) -> None:
    """Exact on the universe for a union of sets; an interval that holds a key inside, or outside, says so."""
    a = rangeset.union(*pair)
    universe = UNIVERSES[a.kind]
    low, high = sorted(data.draw(st.tuples(st.integers(0, len(universe) - 1), st.integers(0, len(universe) - 1))))
    some_inside, some_outside = a.overlap(keys(a.kind, [universe[low]]), keys(a.kind, [universe[high]]))
    between = inside(a)[low : high + 1]
    assert some_inside[0] >= any(between)
    assert some_outside[0] >= (not all(between))
    if low == high:
        assert some_inside[0] == between[0]
        assert some_outside[0] == (not between[0])


@given(kinds.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(st.sampled_from(UNIVERSES[kind]), min_size=1))))
def test_rank_counts_thresholds(case: tuple[Kind, list[Key]]) -> None:
    """By comparison for a few thresholds and by binary search for many."""
    kind, chosen = case
    universe = keys(kind, UNIVERSES[kind])
    expected = [sum(key >= t for t in set(chosen)) for key in UNIVERSES[kind]]  # type: ignore[operator]
    assert universe.rank(keys_from(kind, sorted(set(chosen)), universe.width)).tolist() == expected


@pytest.mark.parametrize("kind", list(Kind))
def test_many_thresholds(kind: Kind) -> None:
    make: dict[Kind, Callable[[int], Key]] = {
        Kind.WORD: lambda i: i * 3,
        Kind.WIDE: lambda i: i * 3 * 10**20,
        Kind.BYTES: lambda i: b"common-prefix-%05d" % (i * 3),
    }
    wanted = [make[kind](i) for i in range(200)]
    tried = [make[kind](i) for i in range(0, 200, 7)] + [s for i in range(9) if (s := successor(make[kind](i), kind))]
    contained = rangeset.points(kind, wanted).contains(keys(kind, tried))
    assert contained.tolist() == [key in set(wanted) for key in tried]


@pytest.mark.parametrize(("prefix", "stop"), [(b"ab", b"ac"), (b"a\xff", b"b"), (b"\xff\xff", None), (b"", None)])
def test_prefixes(prefix: bytes, stop: bytes | None) -> None:
    """C18, C24: a prefix is the range up to its successor; one of 0xFF alone has none, and is unbounded."""
    expected = [prefix] if stop is None else [prefix, stop]
    assert rangeset.starting_with(prefix).thresholds.tolist() == expected


# ---- outcomes of many intervals --------------------------------------------------------------------------------------

# Keys that share leading words, tie in some of them, differ in length only, or lie in one bucket of many.
PREFIXES = [b"", b"customer", b"customer-0", b"customer-0000000", b"\xff" * 8]
INTERVAL_KEYS: dict[Kind, st.SearchStrategy[Key]] = {
    Kind.WORD: st.sampled_from(WORDS) | st.integers(-40, 40) | st.integers(2**40, 2**40 + 10**6),
    Kind.WIDE: st.sampled_from(WIDE) | st.integers(-20, 20) | st.integers(2**64, 2**64 + 20),
    Kind.BYTES: st.builds(
        lambda prefix, rest: prefix + rest,
        st.sampled_from(PREFIXES),
        st.sampled_from(BYTES) | st.binary(max_size=3) | st.sampled_from([b"0" * 40, b"\0" * 9, b"1" * 7 + b"2"]),
    ),
}
# Every way through the kernel: chunks of any size, intervals found by position or not, grids of any width.
TUNINGS = st.fixed_dictionaries(
    {
        "CHUNK": st.sampled_from([1, 3, 1 << 18]),
        "FEW_NEAR": st.sampled_from([1, 3, 10**9]),
        "FEW_THRESHOLDS": st.sampled_from([2, 16]),
        "BUCKETS_OF_THRESHOLD": st.sampled_from([1, 4, 100]),
        "UNITS_OF_GRID": st.sampled_from([0, 10**6]),
        "STEPS": st.sampled_from([0, 2]),
    }
)


@contextmanager
def tuned(tuning: dict[str, int]) -> Iterator[None]:
    """Other constants of the kernel."""
    of_grid = {name: value for name, value in tuning.items() if name in ("BUCKETS_OF_THRESHOLD", "STEPS")}
    others = {name: value for name, value in tuning.items() if name not in of_grid}
    with patch.multiple(rangeset, **others), patch.multiple(threshold_grid, **of_grid):
        yield


@st.composite
def threshold_sets(draw: st.DrawFn, kind: Kind) -> RangeSet:
    drawn = draw(st.sets(INTERVAL_KEYS[kind], max_size=draw(st.sampled_from([1, 2, 6, 40]))))
    thresholds = np.empty(len(drawn), np.int64 if kind is Kind.WORD else object)
    thresholds[:] = sorted(drawn)
    return RangeSet(kind, thresholds)


def defined(a: RangeSet, low: Key, high: Key | None) -> int:
    """What an interval can be, by the ranks of its ends; without an upper end it goes up to the greatest key."""
    thresholds = a.thresholds.tolist()
    before = sum(low >= t for t in thresholds)
    after = len(thresholds) if high is None else sum(high >= t for t in thresholds)
    return TRUE | FALSE if after > before else TRUE if before % 2 else FALSE


@given(kinds, st.data(), TUNINGS)
def test_outcomes_are_those_of_the_definition(kind: Kind, data: st.DataObject, tuning: dict[str, int]) -> None:
    a = data.draw(threshold_sets(kind))
    key = INTERVAL_KEYS[kind]
    if len(a.thresholds):
        key |= st.sampled_from(a.thresholds.tolist())
    intervals = data.draw(st.lists(st.tuples(key, key).map(sorted), max_size=12)) * data.draw(st.integers(1, 3))
    low, high = keys(kind, [low for low, _ in intervals]), keys(kind, [high for _, high in intervals])
    with tuned(tuning):
        outcomes = a.outcomes(low, high)
    assert outcomes.dtype == np.uint8
    assert outcomes.tolist() == [defined(a, low, high) for low, high in intervals]


@given(kinds, st.data())
def test_reaching_a_side_is_its_bit_of_the_outcomes(kind: Kind, data: st.DataObject) -> None:
    """Of words and up to two thresholds each side is told alone; of all else nothing is."""
    a = data.draw(threshold_sets(kind))
    key = INTERVAL_KEYS[kind]
    if len(a.thresholds):
        key |= st.sampled_from(a.thresholds.tolist())
    intervals = data.draw(st.lists(st.tuples(key, key).map(sorted), max_size=12))
    low, high = keys(kind, [low for low, _ in intervals]), keys(kind, [high for _, high in intervals])
    outcomes = a.outcomes(low, high)
    for inside, side in ((True, TRUE), (False, FALSE)):
        reached = a.reaches(low, high, inside=inside)
        if kind is Kind.WORD and 1 <= len(a.thresholds) <= 2:
            assert reached is not None
            assert reached.dtype == bool
            assert reached.tolist() == ((outcomes & side) != 0).tolist()
        else:
            assert reached is None


@given(kinds, st.data(), TUNINGS)
def test_outcomes_where_bounds_are_unknown(kind: Kind, data: st.DataObject, tuning: dict[str, int]) -> None:
    """An unknown lower bound is the least key, an unknown upper bound is above every key."""
    a = data.draw(threshold_sets(kind))
    values = data.draw(st.lists(INTERVAL_KEYS[kind], min_size=1, max_size=8))
    flags = st.lists(st.booleans(), min_size=len(values), max_size=len(values)).map(np.array)
    no_low, no_high = data.draw(flags), data.draw(flags)
    known = keys(kind, values)
    low = choose(no_low, constant_keys(least_key(kind), kind, len(values)), known)
    high = choose(no_high, greatest_keys(kind, len(values)), known)
    with tuned(tuning):
        outcomes = a.outcomes(low, high)
    assert outcomes.tolist() == [
        defined(a, least_key(kind) if unbounded else value, None if endless else value)
        for value, unbounded, endless in zip(values, no_low, no_high, strict=True)
    ]


@given(threshold_sets(Kind.BYTES), st.lists(st.tuples(INTERVAL_KEYS[Kind.BYTES], st.binary(max_size=40)), min_size=1))
def test_outcomes_of_bounds_of_different_widths(a: RangeSet, intervals: list[tuple[bytes, bytes]]) -> None:
    """Truncated upper bounds beside long lower ones, and the other way round."""
    pairs = [(low, low + rest) for low, rest in intervals]
    outcomes = a.outcomes(keys(Kind.BYTES, [low for low, _ in pairs]), keys(Kind.BYTES, [high for _, high in pairs]))
    assert outcomes.tolist() == [defined(a, low, high) for low, high in pairs]


@pytest.mark.parametrize("kind", list(Kind))
def test_outcomes_of_many_intervals(kind: Kind) -> None:
    """Lists of keys, close together and far apart, over more intervals than a chunk has, as ranks define it."""
    rng = np.random.default_rng(5)
    make: dict[Kind, Callable[[int], Key]] = {
        Kind.WORD: lambda i: i,
        Kind.WIDE: lambda i: i << 50,
        Kind.BYTES: lambda i: b"common-prefix-%09d" % i,
    }
    low = np.sort(rng.integers(0, 10**8, 3000))
    high = low + rng.choice([0, 1, 10**4, 10**7], len(low))
    lower, upper = (keys(kind, [make[kind](i) for i in side.tolist()]) for side in (low, high))
    for chosen in (low[::7], low[:50], np.append(high[::3], 10**8), 2 * 10**7 + np.arange(500), low[:1], low[:0]):
        ranges = rangeset.points(kind, [make[kind](i) for i in chosen.tolist()])
        for a in (ranges, rangeset.complement(ranges)):
            some_inside, some_outside = a.overlap(lower, upper)
            with patch.object(rangeset, "CHUNK", 1000):
                outcomes = a.outcomes(lower, upper)
            assert outcomes.tolist() == (some_inside * TRUE + some_outside * FALSE).tolist()


@pytest.mark.parametrize("kind", list(Kind))
def test_points_of_long_lists(kind: Kind) -> None:
    make: dict[Kind, Callable[[int], Key]] = {
        Kind.WORD: lambda i: i,
        Kind.WIDE: lambda i: i << 50,
        Kind.BYTES: lambda i: b"%d" % i,
    }
    wanted = [make[kind](i) for i in (*range(0, 3000, 3), *range(5000, 5060))]
    ranges = rangeset.points(kind, wanted[::-1])
    assert ranges.points is not None
    assert ranges.points.tolist() == sorted(wanted)
    assert rangeset.union(rangeset.points(kind, wanted[::2]), rangeset.points(kind, wanted[1::2])) == ranges
    assert rangeset.intersection(ranges, rangeset.points(kind, wanted[::2])) == rangeset.points(kind, wanted[::2])


def test_points_of_a_range_are_listed_only_where_they_are_few() -> None:
    few = rangeset.between(Kind.WORD, INT64_MAX - 64, INT64_MAX)
    assert few.points is not None
    assert few.points.tolist() == list(range(INT64_MAX - 64, INT64_MAX))
    assert rangeset.between(Kind.WORD, INT64_MAX - 65, INT64_MAX).points is None
    assert rangeset.between(Kind.WORD, INT64_MIN, INT64_MAX).points is None


def test_a_long_key_among_many_costs_no_more_than_the_data_is_wide() -> None:
    """The thresholds are laid out as wide as the bounds, not as the longest of them."""
    listed = [b"k%05d" % i for i in range(0, 2000, 2)]
    ranges = rangeset.points(Kind.BYTES, [*listed, b"k00100" + b"x" * 10**7])
    bounds = keys(Kind.BYTES, [b"k00100", b"k00101", b"k00100x"])
    assert ranges.outcomes(bounds, bounds).tolist() == [TRUE, FALSE, FALSE]
