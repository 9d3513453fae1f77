"""Cast join keys to the type of the column that they are compared with, as Spark's join would.

Spark casts both sides of ``column = key`` to a common type. Here a key becomes the one value of the column's type that
equals it after those casts, or null if no value does. Keys are refused if several values of the column would equal one,
because the casts round (a bigint beside a double of 2**53), or if Spark's answer depends on the text of a key.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import IncomparableLiteral
from secateur.pruning.functions.calendar import DAY
from secateur.pruning.functions.types import MOST_DIGITS
from secateur.pruning.predicate.binding.listed_keys import instants
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.bound import Field
from secateur.values.conversion import keys_of
from secateur.values.kinds import is_float, kind_of

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}  # of the decimal to which Spark casts an integer, by bits
_WHOLE_DOUBLES, _WHOLE_FLOATS = 2.0**53, 2.0**24  # below, no two integers round to the same


def cast_keys(field: Field, values: pa.Array, binder: Binder) -> pa.Array:
    """Return keys as values of a column's type, null where no value of the column equals the key.

    Raises IncomparableLiteral if Spark refuses the comparison, or if only Spark knows its exact result.
    """
    values = _plain(values)
    if pa.types.is_null(values.type) and kind_of(field.type) is not None:
        return pa.nulls(len(values), field.type)
    cast = _cast_to(field.type, values.type)
    try:
        return cast(field, values, binder)
    except pa.ArrowInvalid as error:
        _refuse(field, values.type, str(error))


def _refuse(field: Field, given: pa.DataType, why: str) -> NoReturn:
    raise IncomparableLiteral(f"cannot compare column {field} of type {field.type} with keys of type {given}: {why}")


def _plain(values: pa.Array) -> pa.Array:
    """Return values of a type that Spark has: without dictionaries, and text and bytes in one layout."""
    if pa.types.is_dictionary(values.type):
        return _plain(values.dictionary_decode())
    is_a, type_ = pa.types, values.type
    if is_a.is_large_string(type_) or is_a.is_string_view(type_):
        return values.cast(pa.string())
    if is_a.is_large_binary(type_) or is_a.is_binary_view(type_) or is_a.is_fixed_size_binary(type_):
        return values.cast(pa.binary())
    return values.cast(pa.date32()) if is_a.is_date64(type_) else values


def _cast_to(type_: pa.DataType, given: pa.DataType) -> Callable[[Field, pa.Array, Binder], pa.Array]:
    """Return the function that casts keys to a type."""
    is_a = pa.types
    if kind_of(type_) is None:
        return _incomparable
    if is_a.is_signed_integer(type_):
        if is_a.is_integer(given):
            return _integers
        return _integers_of_floats if is_float(given) else _integers_of_decimals if _is_exact(given) else _incomparable
    if is_float(type_):
        return _floats if is_float(given) or is_a.is_integer(given) else _incomparable
    if is_a.is_decimal128(type_):
        return _decimals if is_a.is_integer(given) or _is_exact(given) else _incomparable
    if is_a.is_date32(type_) and (is_a.is_date32(given) or is_a.is_timestamp(given)):
        return _dates
    if is_a.is_timestamp(type_) and (is_a.is_date32(given) or is_a.is_timestamp(given)):
        return _moments
    return _unchanged if given == type_ else _incomparable


def _is_exact(type_: pa.DataType) -> bool:
    return bool(pa.types.is_decimal32(type_) or pa.types.is_decimal64(type_) or pa.types.is_decimal128(type_))


def _incomparable(field: Field, values: pa.Array, binder: Binder) -> NoReturn:
    _refuse(field, values.type, "cast the keys to the column's type first")


def _unchanged(field: Field, values: pa.Array, binder: Binder) -> pa.Array:
    return values


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _integers(field: Field, values: pa.Array, binder: Binder) -> pa.Array:
    bits = field.type.bit_width
    if values.type.bit_width > bits or pa.types.is_unsigned_integer(values.type):
        limits = np.iinfo(values.type.to_pandas_dtype())
        ends = max(int(limits.min), -(2 ** (bits - 1))), min(int(limits.max), 2 ** (bits - 1) - 1)
        low, high = (pa.scalar(end, values.type) for end in ends)
        fits = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        values = _where(fits, values)
    return values.cast(field.type)


def _integers_of_floats(field: Field, values: pa.Array, binder: Binder) -> pa.Array:
    """Cast doubles beside integers: Spark compares as doubles; without ANSI as floats, if the keys are floats."""
    whole = _WHOLE_FLOATS if values.type == pa.float32() and not binder.ansi else _WHOLE_DOUBLES
    numbers, valid = _numbers(values, np.float64)
    with np.errstate(invalid="ignore"):
        is_near = np.abs(numbers) < whole
        rounds = valid & ~is_near & ~np.isnan(numbers)
    if 2.0 ** (field.type.bit_width - 1) > whole and rounds.any():
        _refuse(field, values.type, f"Spark rounds the column from {whole:.0f} on; cast the keys to {field.type} first")
    low, high = -(2.0 ** (field.type.bit_width - 1)), 2.0 ** (field.type.bit_width - 1) - 1
    equal = valid & is_near & (numbers >= low) & (numbers <= high) & (numbers == np.trunc(numbers))
    return _array(np.where(equal, numbers, 0).astype(np.int64), equal).cast(field.type)


def _integers_of_decimals(field: Field, values: pa.Array, binder: Binder) -> pa.Array:
    digits, bits = _DIGITS[field.type.bit_width], field.type.bit_width
    _common(field, values.type, (digits, 0), (values.type.precision, values.type.scale))
    whole = pc.trunc(values)
    numbers = whole.cast(pa.decimal128(MOST_DIGITS, 0))
    low, high = (pa.scalar(Decimal(end), numbers.type) for end in (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    equal = pc.and_(pc.equal(whole, values), pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high)))
    return _where(equal, numbers).cast(pa.int64()).cast(field.type)


def _floats(field: Field, values: pa.Array, binder: Binder) -> pa.Array:
    """Cast numbers beside floating ones: Spark compares as doubles; without ANSI floats and integers as floats."""
    is_single = field.type == pa.float32()
    if is_single and pa.types.is_integer(values.type) and not binder.ansi:
        return _array(*_numbers(values, np.float32))
    numbers, valid = _numbers(values, np.float64)
    if not is_single:
        return _array(numbers, valid)
    with np.errstate(over="ignore", invalid="ignore"):
        singles = numbers.astype(np.float32)
    return _array(singles, valid & ((singles == numbers) | np.isnan(numbers)))


def _decimals(field: Field, values: pa.Array, binder: Binder) -> pa.Array:
    if pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(_DIGITS[values.type.bit_width], 0))
    sizes = (field.type.precision, field.type.scale), (values.type.precision, values.type.scale)
    common = _common(field, values.type, *sizes)
    wide = values.cast(common)
    rounded = pc.round(wide, field.type.scale, "towards_zero") if common.scale > field.type.scale else wide
    equal = pc.equal(rounded, wide)
    whole = field.type.precision - field.type.scale
    if common.precision - common.scale > whole:
        equal = pc.and_(equal, pc.less(pc.abs(rounded), pa.scalar(Decimal(10) ** whole, common)))
    return _where(equal, rounded).cast(field.type)


def _common(field: Field, given: pa.DataType, a: tuple[int, int], b: tuple[int, int]) -> pa.DataType:
    """Return the decimal type that has all digits of both sides (precision, scale)."""
    scale = max(a[1], b[1])
    precision = max(a[0] - a[1], b[0] - b[1]) + scale
    if precision > MOST_DIGITS:
        _refuse(field, given, f"together they need more than {MOST_DIGITS} digits, and Spark rounds them")
    return pa.decimal128(precision, scale)


def _numbers(values: pa.Array, type_: type[np.generic]) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers in a floating type, rounded to the nearest, and which of them are not null."""
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return values.fill_null(0).to_numpy(zero_copy_only=False).astype(type_), valid


# ---- dates and times -------------------------------------------------------------------------------------------------


def _dates(field: Field, values: pa.Array, binder: Binder) -> pa.Array:
    """Cast times beside dates: Spark compares as times."""
    if pa.types.is_date32(values.type):
        return values
    if values.type.tz is not None:
        _refuse(field, values.type, "cast the keys to dates first")
    micros, valid = _micros(values)
    return _array((micros // DAY).astype(np.int32), valid & (micros % DAY == 0)).cast(field.type)


def _moments(field: Field, values: pa.Array, binder: Binder) -> pa.Array:
    """Cast dates and local times beside instants: they are in the session's time zone."""
    is_instant = pa.types.is_timestamp(values.type) and values.type.tz is not None
    micros, valid = _micros(values)
    if field.type.tz is None and is_instant:
        _refuse(field, values.type, "cast the keys to timestamps without zone first")
    if field.type.tz is not None and not is_instant and valid.any():
        moments = instants(micros[valid], binder.zone)
        if moments is None:
            _refuse(field, values.type, "the time zone's offset is not known for all of them; cast the keys first")
        micros[valid] = moments
    return _array(micros, valid).cast(field.type)


def _micros(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return days and times in microseconds, and which of them are not null. Raises ArrowInvalid for finer times."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz))
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    (numbers,) = keys_of(values).words
    return np.where(valid, numbers * (DAY if pa.types.is_date32(values.type) else 1), 0), valid


def _array(values: np.ndarray, valid: np.ndarray) -> pa.Array:
    return pa.array(values, mask=~valid)


def _where(equal: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(equal.fill_null(False), values, pa.scalar(None, values.type))
