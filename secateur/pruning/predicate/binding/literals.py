"""The position of a literal in the order of a column's keys, after the casts that Spark would insert.

A comparison casts both sides to a common type (``AnsiTypeCoercion``). Every cast handled here is monotone on the
column's keys, so whatever the common type, the literal c is two thresholds: the first key whose cast is >= c and the
first whose cast is > c. All six comparisons follow from them, exactly, and none needs a cast per block.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

import pyarrow as pa

from secateur.errors import IncomparableLiteral
from secateur.pruning.functions.calendar import DAY
from secateur.pruning.functions.types import MOST_DIGITS, size_of
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.binding.temporal import (
    MOVING_WORDS,
    instant_micros,
    is_agreed,
    local_micros,
    parse_date,
    parse_timestamp,
)
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import INTEGERS, Literal, Predicate, Sql
from secateur.values.key import INT64_MAX, INT64_MIN, Key, float_key, successor
from secateur.values.kinds import Kind, is_float, kind_of

_EXACT = (*INTEGERS, "decimal")
_INEXACT = ("double", "float")
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_INTEGER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
SPECIAL_FLOATS = ("nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")


@dataclass(frozen=True)
class Subject:
    """What a literal is compared with (a column, a named value, the left side of a condition), and its type."""

    named: Field | Sql
    type: pa.DataType

    def __str__(self) -> str:
        match self.named:
            case Field():
                return f"column {self.named}"
            case Predicate():
                return f"the left side of {brief(self.named)}"
            case name:
                return name


@dataclass(frozen=True)
class Position:
    """`at` is the first key not less than the literal, `after` the first greater; None is above every key."""

    at: Key | None
    after: Key | None


def positions(subject: Subject, literals: Sequence[Literal], zone: dt.tzinfo) -> list[Position] | None:
    """Return the positions of non-null literals beside a column, in a comparison or an IN list.

    None if Spark's cast is not known here to be monotone: the leaf is then left to Spark. Raises IncomparableLiteral if
    Spark would refuse the comparison or the cast of the literal.
    """
    common = _common(subject, {literal.type for literal in literals})
    places = [_position(subject, literal, common, zone) for literal in literals]
    return None if any(p is None for p in places) else [p for p in places if p is not None]


def plain_keys(type_: pa.DataType, literals: Sequence[Literal]) -> list[Key] | None:
    """Return the keys of literals of the column's own kind, which need no cast; None for any other.

    These are integers beside an integer and strings beside a string: the long IN lists of joins, 1,000 times faster.
    """
    names = {literal.type for literal in literals}
    if pa.types.is_signed_integer(type_) and names <= set(INTEGERS):
        return [literal.value for literal in literals]  # type: ignore[misc]
    if pa.types.is_string(type_) and names == {"string"}:
        return [literal.value.encode("utf-8", "surrogatepass") for literal in literals]  # type: ignore[union-attr]
    return None


def _common(subject: Subject, types: set[str]) -> str:
    """Return the type in which the literals compare: "double" if the column or a number among them is floating.

    "mixed" if a string is among other literals: Spark casts it to the widest type of the list.
    """
    if "string" in types and len(types) > 1:
        return "mixed"
    return "double" if is_float(subject.type) or types.intersection(_INEXACT) else "exact"


def _position(subject: Subject, literal: Literal, common: str, zone: dt.tzinfo) -> Position | None:
    type_ = subject.type
    if kind_of(type_) is None or common == "mixed":
        return None
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return _bytes_position(subject, literal)
    if pa.types.is_boolean(type_):
        return _boolean_position(subject, literal)
    if pa.types.is_date32(type_) or pa.types.is_timestamp(type_):
        return _temporal_position(subject, literal, zone)
    return _numeric_position(subject, literal, common)


def _refuse(subject: Subject, literal: Literal, why: str = "") -> IncomparableLiteral:
    return IncomparableLiteral(f"cannot compare {subject} of type {subject.type} with {literal}{why and ': ' + why}")


def _point(key: Key, kind: Kind) -> Position:
    return Position(key, successor(key, kind))


def _bytes_position(subject: Subject, literal: Literal) -> Position | None:
    match literal:
        case Literal(str(text), "string"):
            return _point(text.encode("utf-8", "surrogatepass"), Kind.BYTES)
        case Literal(bytes(data), "binary"):
            return _point(data, Kind.BYTES)
        case _ if pa.types.is_binary(subject.type):
            raise _refuse(subject, literal)
        case _:
            return None  # Spark casts the column to the literal's type, which has another order


def _boolean_position(subject: Subject, literal: Literal) -> Position:
    match literal:
        case Literal(bool(value), "boolean"):
            return _point(int(value), Kind.WORD)
        case Literal(str(text), "string") if text.strip().lower() in BOOLEANS:
            return _point(int(BOOLEANS[text.strip().lower()]), Kind.WORD)
        case _:
            raise _refuse(subject, literal, "a boolean compares with TRUE or FALSE")


def _numeric_position(subject: Subject, literal: Literal, common: str) -> Position | None:
    match literal:
        case Literal(str(text), "string"):
            return _position_of_text(subject, literal, text)
        case Literal(int() | Decimal() | float() as number, type_) if type_ in (*_EXACT, *_INEXACT):
            if is_float(subject.type):
                return _point(float_key(float(number)), Kind.WORD)
            if common == "double":
                return double_position(subject.type, float(number))
            return _exact_position(subject, number)
        case _:
            alone = ", and a number alone is no condition" if literal == Literal(True, "boolean") else ""
            raise _refuse(subject, literal, f"a number is needed{alone}")


def _position_of_text(subject: Subject, literal: Literal, text: str) -> Position | None:
    """Return the position of a string beside a number: Spark casts it to bigint for integers, else to double."""
    if pa.types.is_signed_integer(subject.type):
        if not _INTEGER.fullmatch(text) or not INT64_MIN <= int(text) <= INT64_MAX:
            raise _refuse(subject, literal, "the string is not a bigint")
        return _exact_position(subject, int(text))
    if not NUMBER.fullmatch(text) and text.strip().lower() not in SPECIAL_FLOATS:
        if not any(c.isdigit() for c in text):
            raise _refuse(subject, literal, "the string is not a number")
        return None
    value = float(text)
    return _point(float_key(value), Kind.WORD) if is_float(subject.type) else double_position(subject.type, value)


def _scale(type_: pa.DataType) -> int:
    return type_.scale if pa.types.is_decimal128(type_) else 0


def _exact_position(subject: Subject, number: int | Decimal | float) -> Position | None:
    """Return the position of an exact number by value, if the common decimal type has at most 38 digits."""
    type_ = subject.type
    if pa.types.is_decimal128(type_) and not fits(type_, Decimal(number)):
        return None
    scaled = Fraction(number) * 10 ** _scale(type_)
    return Position(*(_in_range(key, type_) for key in (ceil(scaled), floor(scaled) + 1)))


def fits(type_: pa.DataType, number: Decimal) -> bool:
    """Return whether Spark's common decimal type keeps all digits of both sides (``DecimalType.bounded``)."""
    precision, scale = size_of(number)
    return max(precision - scale, type_.precision - type_.scale) + max(scale, type_.scale) <= MOST_DIGITS


def _key_range(type_: pa.DataType) -> tuple[int, int]:
    """Return the least and the greatest key that a value of a numeric or date type can have."""
    if pa.types.is_decimal128(type_):
        return 1 - 10**type_.precision, 10**type_.precision - 1
    if pa.types.is_date32(type_):
        return dt.date.min.toordinal() - _EPOCH_DAY, dt.date.max.toordinal() - _EPOCH_DAY
    return INT64_MIN, INT64_MAX


_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _in_range(key: int, type_: pa.DataType) -> int | None:
    """Clamp a threshold to the type's values: below them all, or above them all (None)."""
    least, greatest = (-(2**127), 2**127 - 1) if kind_of(type_) is Kind.WIDE else (INT64_MIN, INT64_MAX)
    return None if key > greatest else max(key, least)


def double_position(type_: pa.DataType, number: float) -> Position:
    """Return the position of a double beside integers and decimals, which Spark rounds to double, monotonically."""
    unit = 10 ** _scale(type_)
    return _search(type_, lambda key: float_key(_nearest(key, unit)), float_key(number))


def _nearest(key: int, unit: int) -> float:
    return key / unit  # Python's integer division rounds correctly to the nearest double


def _search(type_: pa.DataType, cast: Callable[[int], int], target: int) -> Position:
    """Find both thresholds by bisection over the column's possible keys; `cast` is monotone."""
    least, greatest = _key_range(type_)
    at = _first(least, greatest, lambda key: cast(key) >= target)
    after = _first(least, greatest, lambda key: cast(key) > target)
    return Position(at, after)


def _first(least: int, greatest: int, holds: Callable[[int], bool]) -> int | None:
    """Return the first key of [least, greatest] for which a monotone condition holds, or None."""
    if not holds(greatest):
        return None
    low, high = least, greatest
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _temporal_position(subject: Subject, literal: Literal, zone: dt.tzinfo) -> Position | None:
    type_ = subject.type
    if literal.type not in ("string", "date", "timestamp", "timestamp_ntz"):
        raise _refuse(subject, literal, "a date or timestamp is needed, such as DATE '2020-01-31'")
    if pa.types.is_date32(type_):
        return _date_position(subject, literal, zone)
    wanted = "timestamp_ntz" if type_.tz is None else "timestamp"
    if wanted == "timestamp_ntz" and literal.type == "timestamp":
        return None  # Spark casts the column to instants; where clocks go back, that cast is not monotone
    micros = _micros(subject, literal, wanted, zone)
    return None if micros is None else _point(micros, Kind.WORD)


def _date_position(subject: Subject, literal: Literal, zone: dt.tzinfo) -> Position | None:
    if literal.type in ("string", "date"):
        day = literal.value if isinstance(literal.value, dt.date) else parse_date(str(literal.value))
        if day is None:
            _refuse_unreadable(subject, literal)
            return None
        return _point(day.toordinal() - _EPOCH_DAY, Kind.WORD)
    micros = _micros(subject, literal, literal.type, zone)
    if micros is None:
        return None
    if literal.type == "timestamp_ntz":
        return Position(-(-micros // DAY), micros // DAY + 1)
    position = _search(subject.type, lambda day: instant_micros(_midnight(day), zone), micros)
    edges = (None, *_key_range(subject.type))
    return (
        None if position.at in edges or position.after in edges else position
    )  # columns may hold dates beyond 0001..9999


def _midnight(day: int) -> dt.datetime:
    return dt.datetime.fromordinal(day + _EPOCH_DAY)


def _micros(subject: Subject, literal: Literal, wanted: str, zone: dt.tzinfo) -> int | None:
    """Convert a date or timestamp literal to microseconds of `wanted`: an instant, or a wall clock."""
    match literal.value:
        case dt.datetime(tzinfo=None) as moment:
            clock, named = moment, None
        case dt.datetime() as moment:  # an instant by its own offset, which its text has too
            return None if wanted == "timestamp_ntz" else (moment - _EPOCH) // dt.timedelta(microseconds=1)
        case dt.date() as day:
            clock, named = dt.datetime.combine(day, dt.time()), None
        case text:
            parsed = parse_timestamp(str(text))
            if parsed is None:
                _refuse_unreadable(subject, literal)
                return None
            clock, named = parsed
    if wanted == "timestamp_ntz":
        return None if named and literal.type != "string" else local_micros(clock)  # Spark drops a text's zone here
    return instant_micros(clock, named or zone) if is_agreed(clock, named or zone) else None


def _refuse_unreadable(subject: Subject, literal: Literal) -> None:
    """Refuse text that cannot be a date; other text is left to Spark, which knows more forms."""
    if cannot_be_time(str(literal.value).strip()):
        raise _refuse(subject, literal, "the text is not a date or timestamp")


def cannot_be_time(text: str) -> bool:
    """Return whether Spark surely cannot read a text as date or timestamp."""
    return bool(text) and not text.lstrip("+-T")[:1].isdigit() and text.lower() not in MOVING_WORDS
