"""The values of keys, as Arrow arrays: the inverse of :func:`secateur.values.keys_of`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags, from_numpy
from secateur.values import Keys, Kind, binaries_of, byte_matrix, doubles_of, is_float, kind_of


def values_of(keys: Keys, type_: pa.DataType, present: np.ndarray) -> pa.Array:
    """Return the values of keys; NULL where they are not present. A zero is 0.0, and a NaN one of the many."""
    match kind_of(type_):
        case Kind.BYTES:
            _, inside = byte_matrix(keys)
            binary = binaries_of(keys, inside).cast(pa.binary())
            values = binary if type_ == pa.binary() else pa.Array.from_buffers(type_, len(binary), binary.buffers())
        case Kind.WIDE | Kind.WORD if pa.types.is_decimal128(type_):
            high, low = keys.words if keys.kind is Kind.WIDE else (keys.words[0] >> 63, keys.words[0].view(np.uint64))
            words = np.stack([low, high.view(np.uint64)], axis=1)
            values = pa.Array.from_buffers(type_, len(words), [None, pa.py_buffer(np.ascontiguousarray(words))])
        case _ if is_float(type_):
            values = from_numpy(doubles_of(keys.words[0])).cast(type_, safe=False)
        case _ if pa.types.is_boolean(type_):
            values = flags(keys.words[0] != 0)
        case _:
            word = np.where(present, keys.words[0], 0)
            whole = from_numpy(word.astype(np.int32)) if pa.types.is_date32(type_) else from_numpy(word)
            values = whole.cast(type_)
    return values if present.all() else pc.if_else(flags(present), values, pa.scalar(None, type_))
