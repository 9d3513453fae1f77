"""Sets of keys, against sets of small integers, byte strings and wide integers that a list holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning import rangeset
from secateur.pruning.rangeset import RangeSet
from secateur.values import INT64_MAX, INT64_MIN, INT128_MAX, INT128_MIN, Key, Keys, Kind, keys_of, successor

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
    found = rangeset.points(kind, chosen)
    assert inside(found) == [key in chosen for key in UNIVERSES[kind]]
    if chosen and successor(max(chosen), kind) is None:
        assert found.points is None  # the last range is open, and not looked into
    else:
        assert found.points is not None
        assert sorted(found.points.tolist()) == sorted(set(chosen))


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
    thresholds = np.empty(len(set(chosen)), np.int64 if kind is Kind.WORD else object)
    thresholds[:] = sorted(set(chosen))
    expected = [sum(key >= t for t in set(chosen)) for key in UNIVERSES[kind]]  # type: ignore[operator]
    assert keys(kind, UNIVERSES[kind]).rank(thresholds).tolist() == expected


@pytest.mark.parametrize("kind", list(Kind))
def test_many_thresholds(kind: Kind) -> None:
    make: dict[Kind, Callable[[int], Key]] = {
        Kind.WORD: lambda i: i * 3,
        Kind.WIDE: lambda i: i * 3 * 10**20,
        Kind.BYTES: lambda i: b"common-prefix-%05d" % (i * 3),
    }
    wanted = [make[kind](i) for i in range(200)]
    tried = [make[kind](i) for i in range(0, 200, 7)] + [s for i in range(9) if (s := successor(make[kind](i), kind))]
    found = rangeset.points(kind, wanted).contains(keys(kind, tried))
    assert found.tolist() == [key in set(wanted) for key in tried]


@pytest.mark.parametrize(("prefix", "stop"), [(b"ab", b"ac"), (b"a\xff", b"b"), (b"\xff\xff", None), (b"", None)])
def test_prefixes(prefix: bytes, stop: bytes | None) -> None:
    """C18, C24: a prefix is the range up to its successor; one of 0xFF alone has none, and is unbounded."""
    expected = [prefix] if stop is None else [prefix, stop]
    assert rangeset.starting_with(prefix).thresholds.tolist() == expected
