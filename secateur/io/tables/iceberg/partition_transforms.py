"""Derive bounds of source columns from Iceberg's partition values.

Every transform but bucket preserves order, so its value bounds the column. A bucket is matched with the values that a
predicate looks for. Every transform but void maps NULL, and only NULL, to NULL. Source: Iceberg's specification,
"Partition Transforms" and, for buckets, Appendix B.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import present
from secateur.values.key import Key, prefix_successor

IDENTITY, TRUNCATE, BUCKET, VOID = "identity", "truncate", "bucket", "void"
_UNITS = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
_TRANSFORM = re.compile(r"(\w+)(?:\[(\d+)\])?")


@dataclass(frozen=True)
class PartitionField:
    """One field of a partition spec: a transform of a column."""

    id: int
    source: int  # id of the column
    transform: str
    width: int = 0  # width of truncate, or number of buckets


def partition_field(id_: int, source: int, transform: str) -> PartitionField:
    """Parse a field from the text of its transform, like ``bucket[16]``; an unknown one gives no bounds, as void."""
    match = _TRANSFORM.fullmatch(transform)
    name = match.group(1).lower() if match else VOID
    known = name in (IDENTITY, TRUNCATE, BUCKET, *_UNITS)
    width = int(match.group(2) or 0) if match else 0
    return PartitionField(id_, source, name if known else VOID, width)


@dataclass(frozen=True)
class SourceBounds:
    """Bounds of a column over some files; null if unknown. `exact`: the bounds are the column's only value."""

    lower: pa.Array
    upper: pa.Array
    exact: bool = False


def source_bounds(field: PartitionField, values: pa.Array, type_: pa.DataType) -> SourceBounds | None:
    """Return the column bounds implied by partition values, in the table's type; None if there are none."""
    match field.transform:
        case "identity":
            sources = typed(values, type_)
            return None if sources is None else SourceBounds(sources, sources, exact=True)
        case "truncate" if field.width > 0:
            return _truncated(values, field.width, type_)
        case unit if unit in _UNITS:
            return _period(values, _UNITS[unit], type_)
        case _:
            return None


def typed(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Convert partition values, with days and times as numbers, to values of the column; None if impossible."""
    stored = values.type
    if pa.types.is_null(stored) or stored == type_:
        return values.cast(type_)
    if pa.types.is_date32(type_) or pa.types.is_timestamp(type_) or pa.types.is_time(type_):
        if not pa.types.is_integer(stored):
            return None
        if stored.bit_width == type_.bit_width:
            return values.view(type_)
        is_promoted = stored == pa.int32() and pa.types.is_timestamp(type_) and type_.tz is None
        return values.view(pa.date32()).cast(type_) if is_promoted else None
    families = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal128, pa.types.is_binary)
    return values.cast(type_) if any(is_of(stored) and is_of(type_) for is_of in families) else None


def _truncated(values: pa.Array, width: int, type_: pa.DataType) -> SourceBounds | None:
    """Return the values that truncate to a number or text: [v, v + width), or all texts that begin with v."""
    lower = typed(values, type_)
    if lower is None:
        return None
    if pa.types.is_integer(type_):
        numbers = pc.fill_null(lower, 0).to_numpy().astype(np.int64)
        known = present(lower)
        for most in (2**31 - 1, 2**63 - 1):  # near the maximum it may be a wrapped minimum
            known &= (numbers > most) | (numbers <= most - (width - 1))
        ends = (np.where(known, end, 0) for end in (numbers, numbers + (width - 1)))
        return SourceBounds(*(pa.array(end, mask=~known).cast(type_) for end in ends))
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        distinct = lower.dictionary_encode()
        ends = pa.array([_last_with(value, width) for value in distinct.dictionary.to_pylist()], pa.binary())
        return SourceBounds(lower.cast(pa.binary()), ends.take(distinct.indices))
    return None  # a decimal


def _last_with(prefix: str | bytes, width: int) -> bytes | None:
    """Return the least text above all with a prefix, or the prefix itself if it is shorter than the width."""
    data = prefix.encode() if isinstance(prefix, str) else prefix
    return data if len(prefix) < width else prefix_successor(data)


def _period(values: pa.Array, unit: str, type_: pa.DataType) -> SourceBounds | None:
    """Return the first and last moment of years, months, days or hours, counted from 1970.

    If the count is not positive the period begins one unit earlier: old writers truncated moments before 1970 towards
    1970 (``ProjectionUtil.fixInclusiveTimeProjection``).
    """
    into = "D" if pa.types.is_date32(type_) else "us"
    if not (pa.types.is_date32(type_) or pa.types.is_timestamp(type_)) or not pa.types.is_integer(values.type):
        return None
    count = pc.fill_null(values, 0).to_numpy().astype(np.int64)
    known = present(values) & (np.abs(count) < _MOST[unit])
    count = np.where(known, count, 0)
    first = _begin(np.where(count <= 0, count - 1, count), unit, into)
    last = _begin(count + 1, unit, into) - 1
    return SourceBounds(*(_moments(numbers, known, type_) for numbers in (first, last)))


_MOST = {"Y": 200_000, "M": 2_400_000, "D": 70_000_000, "h": 1_700_000_000}  # microseconds stay within 64 bits


def _begin(count: np.ndarray, unit: str, into: str) -> np.ndarray:
    return count.astype(f"datetime64[{unit}]").astype(f"datetime64[{into}]").astype(np.int64)


def _moments(numbers: np.ndarray, known: np.ndarray, type_: pa.DataType) -> pa.Array:
    width = np.int32 if pa.types.is_date32(type_) else np.int64
    return pa.array(numbers.astype(width), mask=~known).view(type_)


# ---- buckets ---------------------------------------------------------------------------------------------------------


def in_buckets(
    field: PartitionField, values: pa.Array, keys: Sequence[Key], type_: pa.DataType, *, is_uuid: bool
) -> np.ndarray | None:
    """Return which files may hold one of some values, by bucket; None if the type cannot be hashed here."""
    if field.transform != BUCKET or not field.width:
        return None
    forms = [_hashed_form(key, type_, is_uuid) for key in keys]
    if any(form is None for form in forms):
        return None
    wanted = {(mmh3.hash(form) & 0x7FFFFFFF) % field.width for form in forms if form is not None}
    is_in = pc.is_in(values, pa.array(sorted(wanted), values.type))
    return is_in.to_numpy(zero_copy_only=False).astype(bool)


def _hashed_form(key: Key, type_: pa.DataType, is_uuid: bool) -> bytes | None:
    """Return the bytes that Iceberg hashes: integers and times as 64 bits, decimals as short as possible."""
    if is_uuid:
        return _uuid_bytes(key)
    if isinstance(key, bytes):
        return key
    if pa.types.is_decimal128(type_):
        return key.to_bytes((key + (key < 0)).bit_length() // 8 + 1, "big", signed=True)
    whole = pa.types.is_integer(type_) or pa.types.is_date32(type_) or pa.types.is_timestamp(type_)
    return key.to_bytes(8, "little", signed=True) if whole else None


def _uuid_bytes(key: Key) -> bytes | None:
    try:
        return uuid.UUID(bytes(key).decode()).bytes if isinstance(key, bytes) else None
    except ValueError:
        return None
