"""Hive partition columns: values in directory names, with the types that Spark infers.

Source: Spark's ``PartitioningUtils.parsePartition``, ``inferPartitionColumnValue``,
``findWiderTypeForPartitionColumn`` and ``ExternalCatalogUtils.unescapePathName``.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy, strings, text_parts
from secateur.errors import IncompatibleSchemas
from secateur.io.tables.partitions import Partitions
from secateur.pruning.functions.calendar import DAY
from secateur.pruning.predicate.binding.temporal import EPOCH, instant_micros

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # directory of rows whose value is NULL

_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DOUBLE = re.compile(r" *[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?) *", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2} ([01]\d|2[0-3]):\d{2}:\d{2}(\.\d)?", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_CYCLE, _CYCLE_DAYS = 400, 146_097  # the calendar repeats after this many years and days
_INSTANT = pa.timestamp("us", "UTC")


def read_partitions(paths: pa.Array, zone: dt.tzinfo) -> Partitions:
    """Parse the partition values of files from their paths below the table; timestamps are read in `zone`.

    Raises IncompatibleSchemas if directories name different columns, as Spark does.
    """
    if ord("=") not in text_parts(paths)[1]:
        return Partitions((), ())
    folders = pc.replace_substring_regex(paths, "[^/]*$", "").dictionary_encode()
    pairs = [_pairs(folder) for folder in folders.dictionary.to_pylist()]
    names = {tuple(name for name, _ in row) for row in pairs}
    if len(names) > 1:
        listed = "; ".join(sorted(", ".join(columns) or "none" for columns in names))
        raise IncompatibleSchemas(f"conflicting partition columns in the directory names: {listed}")
    columns = next(iter(names), ())
    fields, values = [], []
    for i, name in enumerate(columns):
        raw = [row[i][1] for row in pairs]
        type_ = _common_type({_infer(value) for value in raw if value != DEFAULT_PARTITION})
        typed = _array([_convert(value, type_, zone) for value in raw], type_)
        fields.append(pa.field(name, type_))
        values.append(typed.take(folders.indices))
    return Partitions(tuple(fields), tuple(values))


def _pairs(folder: str) -> list[tuple[str, str]]:
    """Return the (column, raw value) pairs of a path: the run of ``column=value`` directories nearest to the file."""
    pairs: list[tuple[str, str]] = []
    for part in reversed(folder.strip("/").split("/")):
        name, equals, value = part.partition("=")
        if equals and name:
            pairs.append((unescape(name), value))
        elif pairs:
            break
    return pairs[::-1]


def unescape(text: str) -> str:
    """Unescape a directory name as Hive and Spark do: every %XX is one character."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)


def _infer(raw: str) -> pa.DataType:
    """Infer the type of one value. Escaped characters count only in timestamps and text."""
    if _INTEGER.fullmatch(raw):
        number = int(raw)
        if -(2**31) <= number < 2**31:
            return pa.int32()
        if -(2**63) <= number < 2**63:
            return pa.int64()
    if _NUMBER.fullmatch(raw) and (precision := _whole_digits(raw)):
        return pa.decimal128(precision, 0)
    if _DOUBLE.fullmatch(raw):
        return pa.float64()
    if _moment(unescape(raw)):
        return _INSTANT
    return pa.date32() if _days(raw) is not None else pa.string()


def _whole_digits(raw: str) -> int | None:
    """Return the digits of a number that Java's ``BigDecimal`` reads without a fraction: 4 for 1e3, None for 1.0 and
    1e99.
    """
    try:
        _, digits, exponent = Decimal(raw).as_tuple()
    except ArithmeticError:
        return None
    precision = len(digits) + int(exponent)
    return precision if int(exponent) >= 0 and precision <= 38 else None


def _moment(text: str) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else None
    except ValueError:
        return None


def _days(text: str) -> int | None:
    """Return the days since 1970-01-01 of a date in the years 0000 to 9999."""
    match = _DATE.fullmatch(text)
    if not match:
        return None
    year, month, day = map(int, match.groups())
    try:
        days = dt.date(year or _CYCLE, month, day).toordinal() - EPOCH.toordinal()
    except ValueError:
        return None
    return days if year else days - _CYCLE_DAYS


def _common_type(types: set[pa.DataType]) -> pa.DataType:
    """Return the common type of a column whose values have these types; text if there is none."""
    return reduce(_wider, sorted(types, key=str)) if types else pa.string()


def _wider(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """Widen two types as ``findWiderTypeForPartitionColumn``: double absorbs int, but not long or decimal."""
    if a == b:
        return a
    match {a, b}:
        case types if types == {pa.int32(), pa.int64()}:
            return pa.int64()
        case types if types == {pa.int32(), pa.float64()}:
            return pa.float64()
        case types if types == {pa.date32(), _INSTANT}:
            return _INSTANT
        case types if all(pa.types.is_integer(t) or pa.types.is_decimal(t) for t in types):
            return pa.decimal128(max(_digits(t) for t in types), 0)
        case _:
            return pa.string()


def _digits(type_: pa.DataType) -> int:
    """Return the precision of the decimal type that holds a whole number."""
    return {pa.int32(): 10, pa.int64(): 20}.get(type_) or int(type_.precision)


def _convert(raw: str, type_: pa.DataType, zone: dt.tzinfo) -> object:
    if raw == DEFAULT_PARTITION:
        return None
    if pa.types.is_integer(type_):
        return int(raw)
    if pa.types.is_decimal(type_):
        return Decimal(int(Decimal(raw)))
    if pa.types.is_floating(type_):
        return float(raw.strip().rstrip("fFdD"))
    if pa.types.is_date(type_):
        return _days(raw)
    if pa.types.is_timestamp(type_):
        moment, days = _moment(unescape(raw)), _days(raw)
        return instant_micros(moment, zone) if moment else None if days is None else _midnight(days, zone)
    return unescape(raw)


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Build an array of one type from converted values; NULLs and decimals are left to pyarrow."""
    if None in values or pa.types.is_decimal(type_):
        return pa.array(values, type_)
    if pa.types.is_string(type_):
        return strings(values)
    numbers = np.array(values, np.float64 if pa.types.is_floating(type_) else f"int{type_.bit_width}")
    return from_numpy(numbers).view(type_)


def _midnight(days: int, zone: dt.tzinfo) -> int:
    """Return the instant at which a day begins; ``datetime`` cannot express days before the year 1."""
    known = max(days, dt.date.min.toordinal() - EPOCH.toordinal())
    return instant_micros(dt.datetime.fromordinal(known + EPOCH.toordinal()), zone) - (known - days) * DAY
