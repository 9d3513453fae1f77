"""Decode bounds of column values from Parquet's PLAIN bytes.

Sound: a side that cannot be decoded with certainty is null, which means unknown. Source: parquet.thrift,
Statistics.min_value and .max_value, ColumnIndex.min_values and .max_values: PLAIN, without length prefix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import truths
from secateur.io.parquet.schema import INT32, INT64, Leaf, SchemaColumn

_MAX_BINARY = 2**31 - 1  # bytes; Arrow's binary array has 32-bit offsets
_NUMBERS: dict[pa.DataType, tuple[str, str]] = {  # stored as, decoded to
    pa.bool_(): ("u1", "?"),
    pa.int8(): ("<i4", "i1"),
    pa.int16(): ("<i4", "i2"),
    pa.int32(): ("<i4", "i4"),
    pa.int64(): ("<i8", "i8"),
    pa.uint8(): ("<u4", "u1"),
    pa.uint16(): ("<u4", "u2"),
    pa.uint32(): ("<u4", "u4"),
    pa.uint64(): ("<u8", "u8"),
    pa.date32(): ("<i4", "i4"),
    pa.float32(): ("<f4", "f4"),
    pa.float64(): ("<f8", "f8"),
}


@dataclass(frozen=True, eq=False)
class Bounds:
    """Statistics of a leaf over n units: row groups, or pages. Bounds may be loose and exclude NaN."""

    lower: pa.Array  # of the leaf's type, binary for strings; null = unknown
    upper: pa.Array
    null_count: npt.NDArray[np.int64]  # -1 = unknown
    nan_count: npt.NDArray[np.int64]  # of float and double; -1 = unknown


def bounds_type(leaf: Leaf) -> pa.DataType:
    """Return the type of a leaf's bounds: its own, but binary for strings, because a cut prefix need not be UTF-8."""
    return pa.binary() if leaf.type == pa.string() else leaf.type


def offers_bounds(leaf: Leaf) -> bool:
    """Return whether a leaf's bounds have a defined order. INT96's have none (parquet.thrift, ColumnOrder)."""
    return not leaf.int96 and leaf.type != pa.null()


def decode_bounds(
    column: SchemaColumn, leaf: Leaf, lower: Sequence[bytes | None], upper: Sequence[bytes | None]
) -> tuple[pa.Array, pa.Array]:
    """Decode lower and upper bounds of n units, null if unknown.

    A value of the wrong width, out of the type's range or of the decimal's precision is unknown. If lower > upper, or
    either is NaN, the writer and this reader disagree on the order: both are unknown.
    """
    if not offers_bounds(leaf):
        unknown = pa.nulls(len(lower), leaf.type)
        return unknown, unknown
    return _without_contradictions(_decode(column, leaf, lower), _decode(column, leaf, upper))


def bounds_of(
    column: SchemaColumn,
    leaf: Leaf,
    stored: tuple[Sequence[bytes | None], Sequence[bytes | None]],
    counts: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    row_count: npt.NDArray[np.int64],
) -> Bounds:
    """Return what n units state of a leaf: their stored lower and upper bounds, NULLs and NaNs (-1 = unknown).

    NaNs beside bounds of numbers leave room for a number; a count that does not is unknown.
    """
    lower, upper = decode_bounds(column, leaf, *stored)
    null_count, nan_count = counts
    not_null = row_count - np.maximum(null_count, 0)
    bounded = truths(pc.or_(lower.is_valid(), upper.is_valid()))
    possible = (nan_count >= 0) & (nan_count <= not_null - bounded)
    return Bounds(lower, upper, null_count, np.where(possible, nan_count, -1))


def _decode(column: SchemaColumn, leaf: Leaf, values: Sequence[bytes | None]) -> pa.Array:
    if pa.types.is_decimal128(leaf.type):
        return _decimals(values, column, leaf.type)
    if bounds_type(leaf) == pa.binary():
        if sum(len(value) for value in values if value is not None) > _MAX_BINARY:
            return pa.nulls(len(values), pa.binary())
        return pa.array(values, pa.binary())
    return _numbers(values, leaf.type)


def _numbers(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Decode little-endian values; those that a narrow type (bool, 8 and 16 bits) cannot hold are null."""
    stored, width = _NUMBERS.get(kind, ("<i8", "i8"))  # timestamps
    plain = np.dtype(stored)
    known = np.array([value is not None and len(value) == plain.itemsize for value in values], bool)
    blank = bytes(plain.itemsize)
    joined = b"".join(value if fits and value else blank for value, fits in zip(values, known, strict=True))
    wide = np.frombuffer(joined, plain)
    narrow = wide.astype(width)
    if plain.kind != "f":
        known &= narrow == wide
    return pa.array(narrow, mask=~known).view(kind)


def _decimals(values: Sequence[bytes | None], column: SchemaColumn, kind: pa.DataType) -> pa.Array:
    """Decode unscaled integers: little-endian INT32 and INT64, else big-endian two's complement of any width."""
    width = {INT32: 4, INT64: 8}.get(column.physical, column.width)  # 0 = any
    order: Literal["little", "big"] = "little" if column.physical in (INT32, INT64) else "big"
    limit = 10**kind.precision
    unscaled: list[int | None] = []
    for value in values:
        if not value or (width and len(value) != width):
            unscaled.append(None)
            continue
        number = int.from_bytes(value, order, signed=True)
        unscaled.append(number if -limit < number < limit else None)
    words = b"".join((number or 0).to_bytes(16, "little", signed=True) for number in unscaled)
    valid = pa.array([number is not None for number in unscaled], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(kind, len(unscaled), [valid, pa.py_buffer(words)])


def _without_contradictions(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array]:
    holds = pc.fill_null(pc.less_equal(lower, upper), True)  # a NaN compares false
    if pa.types.is_floating(lower.type):
        for side in (lower, upper):  # a NaN next to an unknown side
            holds = pc.and_not(holds, pc.fill_null(pc.is_nan(side), False))
    if holds.true_count == len(holds):
        return lower, upper
    unknown = pa.scalar(None, lower.type)
    return pc.if_else(holds, lower, unknown), pc.if_else(holds, upper, unknown)
