"""Keys of values and values of keys, one at a time or as Arrow arrays."""

from __future__ import annotations

import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa

from secateur.arrays import numbers
from secateur.errors import IndexFault
from secateur.values.key import INT64_MAX, NAN_KEY, Key
from secateur.values.keys import Keys, bytes_keys
from secateur.values.kinds import Kind, is_float, kind_of


def key_of(value: object, type_: pa.DataType) -> Key:
    """Return the key of one non-null Python value of a column type, as ``pa.scalar(value, type).as_py()`` gives it."""
    return keys_of(pa.array([value], type_)).at(0)


def scalar_of(key: Key, type_: pa.DataType) -> pa.Scalar:
    """Return the value of a key: the inverse of :func:`key_of`, except for -0.0 and the many NaNs."""
    match key:
        case bytes():
            return pa.array([key], pa.binary()).view(type_)[0]
        case _ if is_float(type_):
            (value,) = struct.unpack("<d", struct.pack("<q", key if key >= 0 else key ^ INT64_MAX))
            return pa.scalar(value, pa.float64()).cast(type_)
        case _ if pa.types.is_decimal128(type_):
            digits = tuple(map(int, str(abs(key))))
            return pa.scalar(Decimal((int(key < 0), digits, -type_.scale)), type_)
        case _:
            stored = pa.int32() if pa.types.is_date32(type_) else pa.int64()
            return pa.scalar(key, stored).cast(type_)


def text_of(value: pa.Scalar) -> str:
    """Return a value as text, also a date or time beyond the years that Python knows."""
    try:
        return str(value)
    except (ValueError, OverflowError):
        return str(value.cast(pa.string()))


def keys_of(array: pa.Array) -> Keys:
    """Return the keys of an Arrow array of an ordered type; null slots get an arbitrary key.

    Raises IndexFault for a type without an order: callers check :func:`kind_of` first.
    """
    type_ = array.type
    kind = kind_of(type_)
    match kind:
        case Kind.BYTES:
            return bytes_keys(array)
        case Kind.WIDE:
            words = np.frombuffer(_values_buffer(array), np.uint64).reshape(-1, 2)
            words = words[array.offset : array.offset + len(array)]
            return Keys(kind, (words[:, 1].astype(np.int64), words[:, 0].copy()))
        case Kind.WORD:
            return Keys(kind, (_word_keys(array),))
        case None:
            raise IndexFault(f"values of type {type_} have no order")


def _values_buffer(array: pa.Array) -> pa.Buffer:
    return array.buffers()[1] if len(array) else pa.py_buffer(b"")


def _word_keys(array: pa.Array) -> np.ndarray:
    type_ = array.type
    if pa.types.is_decimal128(type_):
        return np.frombuffer(_values_buffer(array), np.int64)[::2][array.offset : array.offset + len(array)].copy()
    if is_float(type_):
        return float_keys(numbers(array.cast(pa.float64()), np.float64))
    integers = array.cast(pa.int32()) if pa.types.is_date32(type_) else array
    return numbers(integers.cast(pa.int64()), np.int64)


def float_keys(values: np.ndarray) -> np.ndarray:
    """Return the keys of doubles, as :func:`float_key` does: float64 of shape (n,) to int64 of shape (n,)."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN like any other
        bits = (values + 0.0).view(np.int64)
    keys = np.where(bits >= 0, bits, bits ^ np.int64(INT64_MAX))
    return np.where(np.isnan(values), np.int64(NAN_KEY), keys)


def doubles_of(keys: np.ndarray) -> np.ndarray:
    """Return the doubles with these keys, the inverse of :func:`float_keys`: float64 of shape (n,)."""
    return np.where(keys >= 0, keys, keys ^ np.int64(INT64_MAX)).view(np.float64)


def byte_matrix(keys: Keys) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of BYTES keys, and which of them belong to the value: uint8 and bool of shape (n, 8 x words)."""
    *body, length = keys.words
    matrix = np.stack(body, axis=1).astype(">u8").view(np.uint8).reshape(len(keys), 8 * len(body))
    return matrix, np.arange(matrix.shape[1]) < length[:, None]


def binaries_of(keys: Keys, chosen: np.ndarray) -> pa.Array:
    """Return the chosen bytes of BYTES keys as binary values; `chosen` has the shape of :func:`byte_matrix`."""
    matrix, _ = byte_matrix(keys)
    offsets = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int64)
    data = pa.py_buffer(np.ascontiguousarray(matrix[chosen]))
    return pa.Array.from_buffers(pa.large_binary(), len(keys), [None, pa.py_buffer(offsets), data])
