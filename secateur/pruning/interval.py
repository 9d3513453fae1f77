"""Intervals: bounds of an expression over n units, and functions that map intervals to intervals.

A function of an interval is the interval of its values (Moore, "Interval Analysis", 1966): for all argument values
inside the argument intervals, the result is inside the result interval. A row is an interval of one value, so the same
functions compute values of rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.bounds.zones import Zones, may_be_nan
from secateur.pruning.predicate.patterns.substrings import Alternatives
from secateur.values.combination import choose, same_width
from secateur.values.conversion import doubles_of, float_keys
from secateur.values.key import INT64_MAX, INT64_MIN, INT128_MAX, INT128_MIN, NAN_KEY, Key, float_key, least_key
from secateur.values.keys import Keys, constant_keys, greatest_keys, integer_keys
from secateur.values.kinds import Kind, is_float, kind_of, ordered_kind


@dataclass(frozen=True)
class Interval:
    """The values that an expression can have over n units.

    Soundness: on every row of unit i the expression gives a value with a key in [lower[i], upper[i]], if `value` is
    set; NULL, if `null` is set; or an error (ANSI), if `fails` is set; nothing else. No number has a key above
    `top[i]`, as in :class:`secateur.pruning.bounds.zones.Zones`.
    """

    type: pa.DataType
    lower: Keys
    upper: Keys
    value: np.ndarray  # uint8: TRUE | FALSE where a non-null value is possible, else 0
    null: np.ndarray  # uint8: NULL where a NULL is possible, else 0
    fails: np.ndarray  # bool
    top: np.ndarray | None = None  # int64, for floating types: the greatest number; None: only `upper` is known

    def __len__(self) -> int:
        return len(self.value)

    @property
    def numbers_upper(self) -> Keys:
        """The upper bounds of all values except NaN."""
        return self.upper if self.top is None else Keys(Kind.WORD, (self.top,))

    @property
    def is_point(self) -> np.ndarray:
        """Where lower and upper are the same key."""
        return keys_equal(self.lower, self.upper)


@dataclass(frozen=True)
class RowValues:
    """The values that an expression has on n rows: an Arrow array.

    On rows in `unknown` only Spark knows the value, or it raises an error there; the array may hold anything then.
    """

    values: pa.Array
    unknown: np.ndarray  # bool


@dataclass(frozen=True)
class OnRows:
    """How a function is computed on rows: from its arguments' values, by the rules of a locale, if these matter.

    The first argument is an array; the others are, too, or scalars if they are constants.
    """

    compute: Callable[[Sequence[pa.Array | pa.Scalar], str], RowValues]
    by_locale: bool = False


@dataclass(frozen=True)
class Function:
    """A function with known bounds.

    `name` includes all parameters, so that functions of equal name are equal. `directions` says for each argument
    whether the value never decreases (1) or never increases (-1) as the argument grows with the others fixed; 0 means
    neither, or that the result can be NULL for a non-null argument. `exact`: on single values the result is Spark's.
    """

    name: str
    type: pa.DataType
    bounds: Callable[[Sequence[Interval]], Interval] = field(compare=False)
    directions: tuple[int, ...] = ()
    exact: bool = True
    # For a function that increases in its one argument: the first key whose value is at least the given key.
    inverse: Callable[[Key], Key | None] | None = field(default=None, compare=False)
    # For a non-monotone function of one variable argument: the keys that it maps into a set, if known.
    preimage: Callable[[RangeSet], RangeSet | None] | None = field(default=None, compare=False)
    # For a function of a text: what the text contains if the value is in a set, in any context; nothing if unknown.
    substrings: Callable[[RangeSet], Alternatives] | None = field(default=None, compare=False)
    # For functions that increase except at clock changes: whether all keys before a key have smaller values than those
    # from it on.
    is_steady: Callable[[Key], bool] | None = field(default=None, compare=False)
    # For a function whose bounds of single values are not exact: how it is computed on rows, as Spark does.
    on_rows: OnRows | None = field(default=None, compare=False)
    # For a function that raises no error: the ANSI version, which differs only where that fails.
    strict: Function | None = field(default=None, compare=False)
    # A factory of this function and its arguments, used for pickling, as `bounds` may be a closure.
    source: tuple[Callable[..., Function | None], tuple[object, ...]] | None = field(default=None, compare=False)

    @property
    def is_known_on_rows(self) -> bool:
        """Whether values of rows can be computed here, without Spark."""
        return self.exact or self.on_rows is not None

    def __reduce__(self) -> tuple[object, ...]:
        return (Function, tuple(vars(self).values())) if self.source is None else (_remade, self.source)


def _remade(make: Callable[..., Function | None], arguments: tuple[object, ...]) -> Function:
    function = make(*arguments)
    assert function is not None, "it made this function before"
    return replace(function, source=(make, arguments))


@dataclass(frozen=True)
class Argument:
    """What a function's rule may know of an argument: its type, and its key if it is a non-null constant.

    `written` is whether the constant is a literal, as in :class:`secateur.pruning.predicate.bound.Constant`.
    """

    type: pa.DataType
    key: Key | None = None
    written: bool | None = False


# takes the arguments and the session's time zone
Rule: TypeAlias = Callable[[Sequence[Argument], dt.tzinfo], Function | None]


# ---- making intervals ------------------------------------------------------------------------------------------------


def of_zones(zones: Zones | None, type_: pa.DataType, n: int) -> Interval:
    """Convert a column's zone maps, with bounds narrowed to its type's range; unknown zone maps give everything."""
    kind = ordered_kind(type_)
    if zones is None:
        everything = np.full(n, TRUE | FALSE, np.uint8)
        lower, upper = constant_keys(least_key(kind), kind, n), greatest_keys(kind, n)
        zones = Zones(lower, upper, everything, np.full(n, NULL, np.uint8))
    lower, upper = _within(zones.lower, zones.upper, type_)
    top = None if zones.top is None else np.minimum(zones.top, upper.words[0])
    return Interval(type_, lower, upper, zones.value, zones.null, np.zeros(n, bool), top)


def key_range(type_: pa.DataType) -> tuple[int, int]:
    """Return the least and greatest key of a type's values, for types other than string and binary."""
    match kind_of(type_):
        case Kind.WIDE | Kind.WORD if pa.types.is_decimal128(type_):
            return 1 - 10**type_.precision, 10**type_.precision - 1
        case Kind.WORD if is_float(type_):
            return float_key(float("-inf")), NAN_KEY
        case Kind.WORD if pa.types.is_boolean(type_):
            return 0, 1
        case Kind.WORD if pa.types.is_timestamp(type_):
            return INT64_MIN, INT64_MAX
        case _:
            return -(2 ** (type_.bit_width - 1)), 2 ** (type_.bit_width - 1) - 1


def _within(lower: Keys, upper: Keys, type_: pa.DataType) -> tuple[Keys, Keys]:
    if lower.kind is Kind.BYTES:
        return lower, upper
    least, greatest = key_range(type_)
    if lower.kind is Kind.WORD:
        if (least, greatest) == (INT64_MIN, INT64_MAX):
            return lower, upper
        return Keys(Kind.WORD, (np.maximum(lower.words[0], least),)), Keys(
            Kind.WORD, (np.minimum(upper.words[0], greatest),)
        )
    n = len(lower)
    low = choose(lower.at_least(least), lower, constant_keys(least, Kind.WIDE, n))
    high = choose(upper.at_least(greatest), constant_keys(greatest, Kind.WIDE, n), upper)
    return low, high


def constant(type_: pa.DataType, key: Key | None, n: int) -> Interval:
    """Return one value in every row, or NULL."""
    kind = ordered_kind(type_)
    if key is not None:
        return points(type_, constant_keys(key, kind, n))
    any_keys, nothing = constant_keys(least_key(kind), kind, n), np.zeros(n, np.uint8)
    return Interval(type_, any_keys, any_keys, nothing, np.full(n, NULL, np.uint8), np.zeros(n, bool))


def points(type_: pa.DataType, keys: Keys) -> Interval:
    """Return units of one row each, with the keys of their values."""
    n = len(keys)
    value = np.full(n, TRUE | FALSE, np.uint8)
    return Interval(type_, keys, keys, value, np.zeros(n, np.uint8), np.zeros(n, bool))


def truth(outcomes: np.ndarray) -> Interval:
    """Convert a predicate's outcomes to a boolean value."""
    may_be_true, may_be_false = (outcomes & TRUE) != 0, (outcomes & FALSE) != 0
    lower, upper = (~may_be_false).astype(np.int64), may_be_true.astype(np.int64)
    value = np.where(may_be_true | may_be_false, np.uint8(TRUE | FALSE), np.uint8(0))
    keys = Keys(Kind.WORD, (lower,)), Keys(Kind.WORD, (upper,))
    return Interval(pa.bool_(), *keys, value, outcomes & NULL, np.zeros(len(outcomes), bool))


def strict(
    type_: pa.DataType, arguments: Sequence[Interval], lower: Keys, upper: Keys, fails: np.ndarray | None = None
) -> Interval:
    """Build the result of a function that is NULL exactly if an argument is, and may fail where `fails` is set."""
    value = reduce(np.bitwise_and, [a.value for a in arguments])
    null = reduce(np.bitwise_or, [a.null for a in arguments])
    failing = reduce(np.logical_or, [a.fails for a in arguments])
    if fails is not None:
        failing = failing | (fails & (value != 0))
    return Interval(type_, lower, upper, value, null, failing)


def union(a: Interval, b: Interval) -> Interval:
    """Return the union of two intervals of one type: the hull of their numbers, and NaN if either may be NaN."""
    only_a, only_b = b.value == 0, a.value == 0
    lower = choose(~only_b & (only_a | at_least(b.lower, a.lower)), a.lower, b.lower)
    upper = choose(~only_b & (only_a | at_least(a.upper, b.upper)), a.upper, b.upper)
    top = _joined_tops(a, b, upper) if is_float(a.type) else None
    return Interval(a.type, lower, upper, a.value | b.value, a.null | b.null, a.fails | b.fails, top)


def _joined_tops(a: Interval, b: Interval, upper: Keys) -> np.ndarray | None:
    """Return the greatest number of either; None if no unit has NaN besides numbers."""
    if not may_be_nan(upper).any():
        return None
    tops = [np.where(_has_numbers(interval), interval.numbers_upper.words[0], INT64_MIN) for interval in (a, b)]
    return np.where(_has_numbers(a) | _has_numbers(b), np.maximum(*tops), upper.words[0])


def _has_numbers(a: Interval) -> np.ndarray:
    return (a.value != 0) & (a.lower.words[0] < NAN_KEY)


def widened(interval: Interval, loose: np.ndarray) -> tuple[Keys, Keys]:
    """Return the bounds, or those of the whole type where a value may be any."""
    whole = of_zones(None, interval.type, len(interval))
    return choose(loose, whole.lower, interval.lower), choose(loose, whole.upper, interval.upper)


def where(possible: np.ndarray, a: Interval) -> Interval:
    """Restrict an interval to the possible units: elsewhere no value, no NULL, no error."""
    nothing = np.uint8(0)
    value, null = np.where(possible, a.value, nothing), np.where(possible, a.null, nothing)
    return Interval(a.type, a.lower, a.upper, value, null, a.fails & possible, a.top)


# ---- NaN -------------------------------------------------------------------------------------------------------------


def applied(function: Function, arguments: Sequence[Interval]) -> Interval:
    """Apply a function, handling NaN arguments separately from numbers.

    Sound: on every row either all arguments are numbers, NULL or errors, or some argument is NaN, whatever the others.
    """
    with_nan = [i for i, a in enumerate(arguments) if a.top is not None and may_be_nan(a.upper).any()]
    if not with_nan:
        return function.bounds(arguments)
    result = function.bounds([_numbers_of(a) for a in arguments])
    for i in with_nan:
        argument = arguments[i]
        chosen = [*arguments[:i], _nan(argument.type, len(argument)), *arguments[i + 1 :]]
        possible = may_be_nan(argument.upper) & (argument.value != 0)
        result = union(result, where(possible, function.bounds(chosen)))
    return result


def _numbers_of(argument: Interval) -> Interval:
    return replace(argument, upper=argument.numbers_upper, top=None)


def _nan(type_: pa.DataType, n: int) -> Interval:
    return points(type_, constant_keys(NAN_KEY, Kind.WORD, n))


# ---- keys of two arrays ----------------------------------------------------------------------------------------------


def keys_equal(a: Keys, b: Keys) -> np.ndarray:
    """Return where the keys of two arrays are the same: bool of shape (n,)."""
    return np.logical_and.reduce([x == y for x, y in zip(*_words(a, b), strict=True)])


def at_least(a: Keys, b: Keys) -> np.ndarray:
    """Return where a key of one array is >= that of the other: bool of shape (n,)."""
    first, *rest = zip(*_words(a, b), strict=True)
    if not rest:
        return np.asarray(first[0] >= first[1])
    reached = np.ones(len(a), bool)
    for x, y in reversed([first, *rest]):
        reached = (x > y) | ((x == y) & reached)
    return reached


def _words(a: Keys, b: Keys) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    a, b = same_width([a, b])
    return a.words, b.words


# ---- keys as numbers -------------------------------------------------------------------------------------------------


def numbers(keys: Keys, type_: pa.DataType) -> np.ndarray:
    """Convert keys to numbers: float64 for floating types, int64 for WORD keys, else Python integers."""
    if keys.kind is Kind.WIDE:
        high, low = keys.words
        return high.astype(object) * 2**64 + low.astype(object)
    word = keys.words[0]
    return doubles_of(word) if is_float(type_) else word


def keys_of_numbers(values: np.ndarray, type_: pa.DataType) -> Keys:
    """The inverse of :func:`numbers`; what a WIDE key cannot hold becomes the nearest that it can."""
    match kind_of(type_):
        case _ if is_float(type_):
            return Keys(Kind.WORD, (float_keys(np.asarray(values, np.float64)),))
        case Kind.WIDE:
            return integer_keys(Kind.WIDE, np.clip(values.astype(object), INT128_MIN, INT128_MAX))
        case _:
            return integer_keys(Kind.WORD, values)
