"""Outcomes of many intervals over a set of keys, against their definition by ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.bounds import rangeset, set_outcomes, threshold_grid
from secateur.pruning.bounds.outcomes import FALSE, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.bounds.set_outcomes import outcomes_of
from secateur.values.combination import choose
from secateur.values.key import Key, least_key
from secateur.values.keys import constant_keys, greatest_keys
from secateur.values.kinds import Kind
from tests.support.drawn.chosen_keys import BYTES, WIDE, WORDS, keys

kinds = st.sampled_from(list(Kind))

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
    with patch.multiple(set_outcomes, **others), patch.multiple(threshold_grid, **of_grid):
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
        outcomes = outcomes_of(a, low, high)
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
    outcomes = outcomes_of(a, low, high)
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
        outcomes = outcomes_of(a, low, high)
    assert outcomes.tolist() == [
        defined(a, least_key(kind) if unbounded else value, None if endless else value)
        for value, unbounded, endless in zip(values, no_low, no_high, strict=True)
    ]


@given(threshold_sets(Kind.BYTES), st.lists(st.tuples(INTERVAL_KEYS[Kind.BYTES], st.binary(max_size=40)), min_size=1))
def test_outcomes_of_bounds_of_different_widths(a: RangeSet, intervals: list[tuple[bytes, bytes]]) -> None:
    """Truncated upper bounds beside long lower ones, and the other way round."""
    pairs = [(low, low + rest) for low, rest in intervals]
    low, high = (keys(Kind.BYTES, list(side)) for side in zip(*pairs, strict=True))
    outcomes = outcomes_of(a, low, high)
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
            with patch.object(set_outcomes, "CHUNK", 1000):
                outcomes = outcomes_of(a, lower, upper)
            assert outcomes.tolist() == (some_inside * TRUE + some_outside * FALSE).tolist()


def test_a_long_key_among_many_costs_no_more_than_the_data_is_wide() -> None:
    """The thresholds are laid out as wide as the bounds, not as the longest of them."""
    listed = [b"k%05d" % i for i in range(0, 2000, 2)]
    ranges = rangeset.points(Kind.BYTES, [*listed, b"k00100" + b"x" * 10**7])
    bounds = keys(Kind.BYTES, [b"k00100", b"k00101", b"k00100x"])
    assert outcomes_of(ranges, bounds, bounds).tolist() == [TRUE, FALSE, FALSE]
