"""Literals as compared in a session without ANSI, where that differs.

Text is cast to the type of the other side, and is NULL if it is not a value of that type; integers and floats compare
as floats; a boolean equals the number 1 or 0. Sources: Spark's ``TypeCoercion.findCommonTypeForBinaryComparison``,
``findWiderCommonType`` and ``BooleanEquality``, ``UTF8String.toInt`` and ``toLong``, ``Decimal.changePrecision``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from secateur.pruning.functions.types import MOST_DIGITS, is_decimal, is_integer, is_numeric, is_temporal
from secateur.pruning.interval import key_range
from secateur.pruning.predicate.binding.literals import BOOLEANS, NUMBER, SPECIAL_FLOATS, Position, cannot_be_time
from secateur.pruning.predicate.calls import NULL
from secateur.pruning.predicate.nodes import INTEGERS, Literal
from secateur.pruning.predicate.value_lists import ValueList, types_of
from secateur.values.kinds import is_float

_WHOLE = re.compile(r"([+-]?\d+)(?:\.\d*)?", re.ASCII)  # the fraction is dropped
_SINGLES = {*INTEGERS, "float"}  # types that compare as floats if one of them is floating
_LONGEST = 400  # digits before and after the point that are read from text
_EXACT = Context(prec=2 * _LONGEST, rounding=ROUND_HALF_UP)


def beside(type_: pa.DataType, literal: Literal) -> Literal | None:
    """Return the literal that is really compared with a type's values; NULL for text that is not such a value.

    None if only Spark knows.
    """
    match literal:
        case Literal(str(text), "string"):
            return _of_text(type_, literal, text)
        case Literal(int(number), name) if name in INTEGERS and type_ == pa.float32():
            return Literal(single(number), "float")
        case Literal(bool(value), "boolean") if is_numeric(type_):
            return Literal(int(value), "int")
        case _:
            return literal


def meet_as_floats(type_: pa.DataType, literals: Sequence[Literal]) -> bool:
    """Return whether a value of a type and the numbers beside it are all cast to floats."""
    names = types_of(literals)
    floating = type_ == pa.float32() or (is_integer(type_) and "float" in names)
    return floating and names <= _SINGLES


def as_floats(literals: Sequence[Literal]) -> Sequence[Literal]:
    """Convert integers and floats to float literals."""
    if isinstance(literals, ValueList):  # holds integers
        return ValueList(pa.array(literals.array.to_numpy().astype(np.float32).astype(np.float64)))
    return tuple(
        literal if literal.type == "float" else Literal(single(int(literal.value)), "float")  # type: ignore[arg-type]
        for literal in literals
    )


def are_cast_to_text(type_: pa.DataType, literals: Sequence[Literal]) -> bool:
    """Return whether a value beside an IN list is cast to text, which has another order."""
    return "string" in types_of(literals) and (is_numeric(type_) or is_temporal(type_) or pa.types.is_boolean(type_))


def place_among_booleans(literal: Literal) -> Position | None:
    """Return the position of a number beside a boolean, which is cast to its type; None for other literals."""
    match literal:
        case Literal((int() | float() | Decimal()) as number, name) if name != "boolean":
            at = next((key for key in (0, 1) if key >= number), None)
            return Position(at, next((key for key in (0, 1) if key > number), None))
        case _:
            return None


def single(number: int) -> float:
    """Return the float nearest to a bigint."""
    return float(np.array(number, np.int64).astype(np.float32))


# ---- text ------------------------------------------------------------------------------------------------------------


def _of_text(type_: pa.DataType, literal: Literal, text: str) -> Literal | None:
    plain = text.strip()
    if not (is_numeric(type_) or is_temporal(type_) or pa.types.is_boolean(type_)):
        return literal
    if not (plain.isascii() and plain.isprintable()) or len(plain) > _LONGEST:
        return None
    if is_integer(type_):
        return _integer(type_, plain)
    if is_decimal(type_) and type_.scale == 0:
        return _whole_decimal(type_, plain)
    if pa.types.is_boolean(type_):
        return literal if plain.lower() in BOOLEANS else NULL
    if is_temporal(type_):
        return NULL if cannot_be_time(plain) else literal
    if plain.lower() not in SPECIAL_FLOATS and not NUMBER.fullmatch(plain):
        return _unreadable(plain, "0123456789")
    if not is_float(type_) or type_ == pa.float64():
        return Literal(float(plain), "double")
    nearest = _nearest_single(plain)
    return None if nearest is None else Literal(nearest, "float")


def _unreadable(text: str, characters: Collection[str]) -> Literal | None:
    """Return NULL for text that cannot be a number, as it has none of the characters that a number has."""
    return None if any(c in characters for c in text) or not text else NULL


def _integer(type_: pa.DataType, text: str) -> Literal | None:
    match = _WHOLE.fullmatch(text)
    if match is None:
        return NULL if any(c not in "0123456789+-." for c in text) else None
    least, greatest = key_range(type_)
    number = int(match[1])
    return Literal(number, "bigint") if least <= number <= greatest else NULL


def _whole_decimal(type_: pa.DataType, text: str) -> Literal | None:
    if not NUMBER.fullmatch(text):
        return _unreadable(text, "0123456789")
    number = Decimal(text)
    if abs(number.adjusted()) > _LONGEST:
        return None
    rounded = number.quantize(Decimal(1), context=_EXACT)
    return Literal(rounded, "decimal") if len(rounded.as_tuple().digits) <= min(type_.precision, MOST_DIGITS) else NULL


def _nearest_single(text: str) -> float | None:
    """Return the float nearest to a number in text; None if rounding to a double first might differ."""
    number = float(text)
    with np.errstate(over="ignore"):
        nearest = np.float32(number)
    if not np.isfinite(nearest):
        return None if np.isfinite(number) and abs(number) < 3.5e38 else float(nearest)
    other = np.nextafter(nearest, np.float32(np.inf if number > float(nearest) else -np.inf))
    halfway = Fraction(float(nearest)) + Fraction(float(other)) if np.isfinite(other) else None
    if halfway is not None and Fraction(number) * 2 == halfway and Fraction(Decimal(text)) != Fraction(number):
        return None
    return float(nearest)
