"""Types of results and operands under Spark's type coercion, with ANSI or without.

Sources: ``findTightestCommonType`` of ``AnsiTypeCoercion`` and ``TypeCoercion``, ``DecimalPrecisionTypeCoercion``,
``DecimalType.adjustPrecisionScale``.
"""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa

from secateur.values.kinds import COLLATED, is_float

INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_NUMERIC = (*INTEGERS, pa.float32(), pa.float64())  # in order of precedence
# digits of the decimal that holds an integer type
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
NAMED = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": INSTANT,
    "TIMESTAMP_LTZ": INSTANT,
    "TIMESTAMP_NTZ": LOCAL,
    "DECIMAL": pa.decimal128(10, 0),
}
_DECIMAL = re.compile(r"DECIMAL\((\d+)(?:,\s*(\d+))?\)")
MOST_DIGITS = 38
LEAST_SCALE = 6  # digits kept in the fraction when a result has too many digits


def named(sql: str) -> pa.DataType | None:
    """Return the type of a name in SQL, or None if its values have no keys."""
    if match := _DECIMAL.fullmatch(sql):
        precision, scale = int(match[1]), int(match[2] or 0)
        return pa.decimal128(precision, scale) if scale <= precision <= MOST_DIGITS else None
    return NAMED.get(sql)


def is_integer(type_: pa.DataType) -> bool:
    """Return whether a type is one of Spark's integers."""
    return type_ in INTEGERS


def is_decimal(type_: pa.DataType) -> bool:
    """Return whether a type is a decimal."""
    return bool(pa.types.is_decimal128(type_))


def is_numeric(type_: pa.DataType) -> bool:
    """Return whether a type is an integer, a decimal or floating."""
    return is_integer(type_) or is_decimal(type_) or is_float(type_)


def is_temporal(type_: pa.DataType) -> bool:
    """Return whether a type is a date or one of both timestamps."""
    return type_ in (pa.date32(), INSTANT, LOCAL)


def decimal_of(type_: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds every value of an integer or decimal type."""
    return type_ if is_decimal(type_) else pa.decimal128(_DIGITS[type_], 0)


def adjusted(precision: int, scale: int) -> pa.DataType:
    """Return the decimal type of a result: above 38 digits, fraction digits are dropped first, down to 6."""
    if precision <= MOST_DIGITS:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, LEAST_SCALE)))


def size_of(number: Decimal) -> tuple[int, int]:
    """Return the precision and scale that Spark gives a decimal literal."""
    _, digits, exponent = number.as_tuple()
    scale = max(0, -int(exponent))
    return max(len(digits) + max(0, int(exponent)), scale), scale


def common(a: pa.DataType, b: pa.DataType, *, ansi: bool) -> pa.DataType | None:
    """Return the type in which two types are compared, or None if Spark refuses or parses strings."""
    if a == b:
        return a if a != COLLATED else None
    if pa.types.is_null(a) or pa.types.is_null(b):
        return b if pa.types.is_null(a) else a
    if is_numeric(a) and is_numeric(b):
        return _common_number(a, b, ansi)
    if is_temporal(a) and is_temporal(b):
        return INSTANT if INSTANT in (a, b) else LOCAL
    return None


def _common_number(a: pa.DataType, b: pa.DataType, ansi: bool) -> pa.DataType | None:
    if is_decimal(a) or is_decimal(b):
        if is_float(a) or is_float(b):
            return pa.float64()
        return _wider_decimal(decimal_of(a), decimal_of(b))
    wider = max(a, b, key=_NUMERIC.index)
    return (
        pa.float64() if wider == pa.float32() and ansi else wider
    )  # an integer and a float compare as doubles, or floats


def _wider_decimal(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the decimal type that holds both; None if it needs over 38 digits, so that values would be rounded."""
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    return pa.decimal128(precision, scale) if precision <= MOST_DIGITS else None
