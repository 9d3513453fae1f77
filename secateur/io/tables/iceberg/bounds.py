"""Decode the bounds of Iceberg's manifests to Arrow values of a column's type.

Source: Iceberg's specification, "Binary single-value serialization" and "Type promotion and column bounds".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import text_parts

_STORED: dict[pa.DataType, tuple[str, ...]] = {  # little-endian forms of a type, including those widened to it
    pa.bool_(): ("?",),
    pa.int32(): ("<i4",),
    pa.int64(): ("<i8", "<i4"),
    pa.float32(): ("<f4",),
    pa.float64(): ("<f8", "<f4"),
    pa.date32(): ("<i4",),
    pa.timestamp("us"): ("<i8",),
    pa.timestamp("us", "UTC"): ("<i8",),
}
_WIDE_BYTES = 16  # of a decimal


def decoded(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Decode single-value bytes to values of a type; null if they are not in a form of that type.

    Text stays bytes, because a bound may be cut within a character.
    """
    if pa.types.is_decimal128(type_):
        return _decimals(values, type_)
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return values
    result = pa.nulls(len(values), type_)
    lengths = pc.fill_null(pc.binary_length(values), -1).to_numpy()
    for form in _STORED.get(type_, ()):
        dtype = np.dtype(form)
        rows = np.flatnonzero(lengths == dtype.itemsize)
        if len(rows):
            data = text_parts(values.take(pa.array(rows)).cast(pa.large_binary()))[1]
            of_size = _array(np.frombuffer(data.tobytes(), dtype), type_)
            result = _placed(result, rows, of_size)
    return result


def _array(numbers: np.ndarray, type_: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(type_):
        return pa.array(numbers)
    wide = numbers.astype(np.dtype(f"{numbers.dtype.kind}{type_.bit_width // 8}"))
    values = pa.array(wide)
    if numbers.dtype.kind == "f":  # a NaN bound carries no information
        return pc.if_else(pc.is_nan(values), pa.scalar(None, type_), values)
    return values if values.type == type_ else values.view(type_)


def _placed(into: pa.Array, rows: np.ndarray, values: pa.Array) -> pa.Array:
    mask = np.zeros(len(into), bool)
    mask[rows] = True
    return pc.replace_with_mask(into, pa.array(mask), values)


def _decimals(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Decode unscaled numbers of up to 16 bytes, big-endian, in two's complement."""
    n = len(values)
    offsets, data = text_parts(values.cast(pa.large_binary()))
    lengths = np.diff(offsets)
    fits = pc.is_valid(values).to_numpy(zero_copy_only=False) & (lengths > 0) & (lengths <= _WIDE_BYTES)
    little_endian = np.zeros((n, _WIDE_BYTES), np.uint8)
    rows = np.flatnonzero(fits)
    if len(rows):
        little_endian[rows] = np.where(data[offsets[rows]] >= 0x80, np.uint8(0xFF), np.uint8(0))[:, None]
    for i in range(int(lengths[rows].max(initial=0))):
        long_rows = rows[lengths[rows] > i]
        little_endian[long_rows, i] = data[offsets[long_rows + 1] - 1 - i]
    whole = pa.Array.from_buffers(type_, n, [None, pa.py_buffer(little_endian.tobytes())])
    return pc.if_else(pa.array(fits), whole, pa.scalar(None, type_))
