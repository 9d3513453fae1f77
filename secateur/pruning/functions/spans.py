"""Spans, integers between bounds, and steps that convert dates and timestamps between units.

Keys become days, seconds and microseconds, of instants or of local time. A step maps bounds to bounds, and so does a
chain of steps. Sources: Spark's ``DateTimeUtils`` and ``Cast`` (ANSI).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from secateur.pruning.functions.calendar import DAY, DAY_SECONDS, FOUR_DIGITS, SECOND, Cyclic, Map
from secateur.pruning.functions.clocks import Shifting, clock
from secateur.pruning.functions.types import INSTANT, INTEGERS, LOCAL
from secateur.pruning.interval import Function, Interval, key_range, keys_of_numbers, strict
from secateur.values.combination import choose
from secateur.values.conversion import keys_of
from secateur.values.key import INT64_MAX, INT64_MIN, Key
from secateur.values.keys import Keys, constant_keys
from secateur.values.kinds import Kind

DATE, TEXT = pa.date32(), pa.string()
LEAST_SECOND, GREATEST_SECOND = INT64_MIN // SECOND + 1, INT64_MAX // SECOND  # seconds that are timestamps


@dataclass(frozen=True, eq=False)
class Span:
    """Integers in [lower, upper] over n units, or an error. If `lower is upper`, all are single values."""

    lower: np.ndarray
    upper: np.ndarray
    fails: np.ndarray

    def map(self, rising: Map) -> Span:
        """Map by a function that never decreases."""
        lower = rising(self.lower)
        return replace(self, lower=lower, upper=lower if self.lower is self.upper else rising(self.upper))

    def through(self, clock: Shifting) -> Span:
        """Shift these times by a clock."""
        lower, upper = clock.hull(self.lower, self.upper)
        return replace(self, lower=lower, upper=upper)

    def within(self, least: int, greatest: int) -> Span:
        """Fail on values outside. The ends of units without a value, which may be any, are brought inside."""
        ends = (self.lower, self.upper)
        if all(end.min(initial=least) >= least and end.max(initial=greatest) <= greatest for end in ends):
            return self
        fails = self.fails | (self.lower < least) | (self.upper > greatest)
        return replace(self.map(lambda x: np.clip(x, least, greatest)), fails=fails)


Step: TypeAlias = Callable[[Span], Span]


def chain(*steps: Step) -> Step:
    return lambda span: reduce(lambda s, step: step(s), steps, span)


def rising(function: Map) -> Step:
    return lambda span: span.map(function)


def through(clock: Shifting) -> Step:
    return lambda span: span.through(clock)


def within(least: int, greatest: int) -> Step:
    return lambda span: span.within(least, greatest)


def same(span: Span) -> Span:
    return span


def cyclic(cycle: Cyclic) -> Step:
    """Return a step for a cyclic field: within one period the ends are the bounds; otherwise the whole cycle."""

    def step(span: Span) -> Span:
        if span.lower is span.upper:
            return span.map(cycle.field)
        same = cycle.period(span.lower) == cycle.period(span.upper)
        lower = np.where(same, cycle.field(span.lower), cycle.least)
        return replace(span, lower=lower, upper=np.where(same, cycle.field(span.upper), cycle.greatest))

    return step


# ---- from keys to days, seconds and microseconds ---------------------------------------------------------------------

TO_SECONDS = rising(lambda micros: micros // SECOND)
TO_DAYS = rising(lambda seconds: seconds // DAY_SECONDS)
TO_MIDNIGHT = rising(lambda days: days * DAY_SECONDS)
TO_MICROS = chain(within(LEAST_SECOND, GREATEST_SECOND), rising(lambda seconds: seconds * SECOND))


def shifted(clock: Shifting) -> Step:
    """Shift microseconds by a clock: Spark adds exactly, and fails on overflow."""
    if clock.constant == 0:
        return same
    return chain(through(clock), within(INT64_MIN + 1, INT64_MAX - 1))


def days_of(type_: pa.DataType, zone: dt.tzinfo) -> Step | None:
    """Return the step to a value's date, as a cast to DATE."""
    if type_ == DATE:
        return same
    if type_ == LOCAL:
        return rising(lambda micros: micros // DAY)
    return chain(TO_SECONDS, through(clock(zone).local), TO_DAYS) if type_ == INSTANT else None


def local_seconds_of(type_: pa.DataType, zone: dt.tzinfo) -> Step | None:
    """Return the step to local time in whole seconds. For a date that is midnight, unless the clock skips it."""
    there = through(clock(zone).local)
    if type_ == DATE:
        return chain(date_to_seconds(zone), within(LEAST_SECOND, GREATEST_SECOND), there)
    if type_ == LOCAL:
        return TO_SECONDS
    return chain(TO_SECONDS, there) if type_ == INSTANT else None


def date_to_seconds(zone: dt.tzinfo) -> Step:
    return chain(TO_MIDNIGHT, through(clock(zone).instants))


def instants_of(type_: pa.DataType, zone: dt.tzinfo) -> Step | None:
    """Return the step to the key of TIMESTAMP; integers are seconds, clamped to the range of timestamps."""
    if type_ == DATE:
        return chain(date_to_seconds(zone), TO_MICROS)
    if type_ == LOCAL:
        return shifted(clock(zone, SECOND).instants)
    if type_ in INTEGERS:
        return rising(_seconds_to_micros)
    return same if type_ == INSTANT else None


def _seconds_to_micros(seconds: np.ndarray) -> np.ndarray:
    """``TimeUnit.SECONDS.toMicros``, which saturates."""
    exact = np.clip(seconds, LEAST_SECOND, GREATEST_SECOND) * SECOND
    return np.where(seconds > GREATEST_SECOND, INT64_MAX, np.where(seconds < LEAST_SECOND, INT64_MIN, exact))


def locals_of(type_: pa.DataType, zone: dt.tzinfo) -> Step | None:
    """Return the step to the key of TIMESTAMP_NTZ."""
    if type_ == DATE:
        return chain(TO_MIDNIGHT, TO_MICROS)
    if type_ == INSTANT:
        return shifted(clock(zone, SECOND).local)
    return same if type_ == LOCAL else None


# ---- to keys ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """The end of a chain: keys of a type, as integers in [least, greatest] where nothing fails."""

    type: pa.DataType
    least: int
    greatest: int
    keys: Callable[[np.ndarray], Keys]

    def interval(self, arguments: Sequence[Interval], span: Span) -> Interval:
        """Convert a span to an interval."""
        kept = span.within(self.least, self.greatest)
        lower = self.keys(kept.lower)
        upper = lower if kept.lower is kept.upper else self.keys(kept.upper)
        if self.type == TEXT and kept is not span:
            # Years of other than four digits are written with a sign, and both signs sort before all digits.
            beyond = (span.lower < self.least) | (span.upper > self.greatest)
            lower = choose(beyond, constant_keys(b"", Kind.BYTES, len(lower)), lower)
        return strict(self.type, arguments, lower, upper, kept.fails)


def integers(type_: pa.DataType) -> Result:
    """Integers that are keys as they are; beyond the type's range Spark fails or wraps around."""
    return Result(type_, *key_range(type_), lambda values: Keys(Kind.WORD, (values,)))


def fractional_seconds(type_: pa.DataType) -> Result:
    """Seconds with a fraction, from microseconds."""

    def keys(micros: np.ndarray) -> Keys:
        seconds = micros / float(SECOND)
        return keys_of_numbers(
            seconds.astype(np.float32).astype(np.float64) if type_ == pa.float32() else seconds, type_
        )

    return Result(type_, INT64_MIN, INT64_MAX, keys)


def text(day: int, form: Callable[[np.ndarray], pa.Array]) -> Result:
    """Text of times, given the number of units per day: in the years 0 to 9999 it sorts as the times do."""
    first, end = FOUR_DIGITS
    return Result(TEXT, first * day, end * day - 1, lambda times: keys_of(form(times)))


# ---- functions of spans ----------------------------------------------------------------------------------------------


def function_of(
    name: str,
    result: Result,
    source: pa.DataType,
    step: Step | None,
    *,
    zone: dt.tzinfo | None = None,
    direction: int = 1,
    position: tuple[int, int] = (0, 1),
) -> Function | None:
    """Make a function of one argument, at its position among several: `step` knows the constant others.

    `zone` is None if the clock does not matter.
    """
    if step is None:
        return None
    at, count = position

    def bounds(arguments: Sequence[Interval]) -> Interval:
        return result.interval(arguments, step(span_of(arguments[at])))

    directions = tuple(direction if i == at else 0 for i in range(count))
    ends = chain(step, within(result.least, result.greatest))
    is_steady = steadiness(ends, source, zone) if direction else None
    return Function(named(name, zone), result.type, bounds, directions, is_steady=is_steady)


def named(name: str, zone: dt.tzinfo | None) -> str:
    """Return a function's name with the zone that it depends on."""
    return name if zone is None else f"{name}[{zone}]"


def span_of(argument: Interval) -> Span:
    """Return the keys of an argument, whose type has keys of one word."""
    (lower,), (upper,) = argument.lower.words, argument.upper.words
    return Span(lower, lower if argument.lower is argument.upper else upper, np.zeros(len(argument), bool))


def steadiness(step: Step, source: pa.DataType, zone: dt.tzinfo | None) -> Callable[[Key], bool] | None:
    """Return whether all keys before a key have at most the value of the last one, and all others at least the key's.

    A function that increases except where a clock goes back can be split there. Its own bounds decide.
    """
    if zone is None or clock(zone).local.constant is not None:
        return None
    least, greatest = key_range(source)

    def is_steady(key: Key) -> bool:
        assert isinstance(key, int), "keys of moments are integers"
        if not least < key <= greatest:
            return False
        lower, upper = np.array([least, key - 1, key, key]), np.array([key - 1, key - 1, key, greatest])
        span = step(Span(lower, upper, np.zeros(4, bool)))
        known = (span.lower == span.upper) & ~span.fails
        return bool(known[1] and known[2] and span.upper[0] == span.upper[1] and span.lower[3] == span.lower[2])

    return is_steady


def zone_if(matters: bool, zone: dt.tzinfo) -> dt.tzinfo | None:
    """Return the zone for functions that depend on it, else None."""
    return zone if matters else None
