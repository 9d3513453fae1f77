"""Hive partition columns: values in directory names, with the types that Spark infers.

Source: Spark's ``PartitioningUtils.parsePathFragment``, ``inferPartitionColumnValue`` and
``ExternalCatalogUtils.unescapePathName``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import IncompatibleSchemas
from secateur.pruning.predicate.temporal import instant_micros, parse_date

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # the directory of rows whose value is NULL

_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_DOUBLE = re.compile(r"\s*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)\s*", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d)?", re.ASCII)
_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Partitions:
    """The partition columns of a listing: their fields, and the value of each for every file."""

    fields: tuple[pa.Field, ...]
    values: tuple[pa.Array, ...]


def read_partitions(paths: pa.Array, zone: dt.tzinfo) -> Partitions:
    """The partition values of files by their paths below the table; timestamps are read in `zone`.

    Raises IncompatibleSchemas where directories name different columns, as Spark does.
    """
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
        typed = pa.array([_convert(value, type_, zone) for value in raw], type_)
        fields.append(pa.field(name, type_))
        values.append(typed.take(folders.indices))
    return Partitions(tuple(fields), tuple(values))


def _pairs(folder: str) -> list[tuple[str, str]]:
    """The (column, raw value) pairs of the last directories of a path that are all ``column=value``."""
    found: list[tuple[str, str]] = []
    for part in reversed(folder.strip("/").split("/")):
        name, equals, value = part.partition("=")
        if not equals or not name:
            break
        found.append((unescape(name), unescape(value)))
    return found[::-1]


def unescape(text: str) -> str:
    """A directory name as Hive and Spark unescape it: every %XX is one character."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)


def _infer(raw: str) -> pa.DataType:
    if _INTEGER.fullmatch(raw):
        number = int(raw)
        if -(2**31) <= number < 2**31:
            return pa.int32()
        if -(2**63) <= number < 2**63:
            return pa.int64()
        if len(str(abs(number))) <= 38:
            return pa.decimal128(len(str(abs(number))), 0)
    if _DOUBLE.fullmatch(raw):
        return pa.float64()
    if _MOMENT.fullmatch(raw) and _moment(raw):
        return _INSTANT
    return pa.date32() if parse_date(raw) else pa.string()


def _moment(raw: str) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(raw)
    except ValueError:
        return None


def _common_type(types: set[pa.DataType]) -> pa.DataType:
    """The type of a column whose values have these types (``resolveTypeConflicts``); text where they disagree."""
    if not types:
        return pa.string()
    if len(types) == 1:
        return next(iter(types))
    if all(pa.types.is_signed_integer(type_) for type_ in types):
        return pa.int64()
    if all(pa.types.is_signed_integer(t) or pa.types.is_decimal(t) for t in types):
        return pa.decimal128(max(t.precision if pa.types.is_decimal(t) else 20 for t in types), 0)
    if all(pa.types.is_signed_integer(t) or pa.types.is_floating(t) for t in types):
        return pa.float64()
    return _INSTANT if types == {_INSTANT, pa.date32()} else pa.string()


def _convert(raw: str, type_: pa.DataType, zone: dt.tzinfo) -> object:
    if raw == DEFAULT_PARTITION:
        return None
    if pa.types.is_integer(type_):
        return int(raw)
    if pa.types.is_decimal(type_):
        return Decimal(raw)
    if pa.types.is_floating(type_):
        return float(raw.rstrip("fFdD") if raw[-1:] in "fFdD" and not raw.endswith("inf") else raw)
    if pa.types.is_date(type_):
        return parse_date(raw)
    if pa.types.is_timestamp(type_):
        date = parse_date(raw)
        moment = _moment(raw) or (dt.datetime.combine(date, dt.time()) if date else None)
        return None if moment is None else instant_micros(moment, zone)
    return raw


def overlapping(schema: pa.Schema, partitions: Sequence[pa.Field]) -> pa.Schema:
    """The table's schema: data columns, with the type of a partition column of the same name, then the others."""
    by_name = {field.name.lower(): field for field in partitions}
    data = [by_name.pop(field.name.lower(), field) for field in schema]
    return pa.schema([*data, *by_name.values()])


def constant(value: pa.Scalar, n: int) -> pa.Array:
    """n times a partition value."""
    return pa.nulls(n, value.type) if not value.is_valid else pa.repeat(value, n)


def null_counts(values: pa.Array) -> np.ndarray:
    """1 for every NULL, else 0: the null count of a file whose rows are counted as one."""
    return np.asarray(pc.is_null(values).to_numpy(zero_copy_only=False), np.int64)
