"""Sets of keys, against sets of small integers, byte strings and wide integers that a list holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.values.key import INT64_MAX, INT64_MIN, Key, successor
from secateur.values.keys import keys_from
from secateur.values.kinds import Kind
from tests.support.drawn.chosen_keys import BYTES, WIDE, WORDS, keys

UNIVERSES = {Kind.WORD: WORDS, Kind.WIDE: WIDE, Kind.BYTES: BYTES}


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
