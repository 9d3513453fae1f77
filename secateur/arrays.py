"""Arrow arrays from numpy arrays and Python values, through their buffers.

``pyarrow.array``, ``pyarrow.scalar`` and ``to_numpy`` import pandas on first use, which takes longer than all the rest
of a first plan; these functions do not. Use ``numpy.from_dlpack`` for the way back of numbers without nulls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

_NUMBERS = {
    np.dtype(numpy): arrow
    for numpy, arrow in (
        (np.int8, pa.int8()),
        (np.int32, pa.int32()),
        (np.int64, pa.int64()),
        (np.uint8, pa.uint8()),
        (np.float64, pa.float64()),
    )
}

_AT_ONCE = 1 << 20  # elements that are compared at once


def from_numpy(values: np.ndarray) -> pa.Array:
    """Return numbers of shape (n,) as an Arrow array; contiguous memory is shared."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(_NUMBERS[values.dtype], len(values), [None, pa.py_buffer(values)])


def flags(values: np.ndarray) -> pa.Array:
    """Return booleans of shape (n,) as an Arrow array."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def strings(values: Sequence[str]) -> pa.Array:
    """Return texts as an Arrow array of strings. Raises UnicodeEncodeError for a lone surrogate."""
    joined = "".join(values)
    data = joined.encode()
    texts: Sequence[str | bytes] = values if len(data) == len(joined) else [value.encode() for value in values]
    ends = _ends(texts)
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError("strings of more than 2 GiB do not fit one array")
    return pa.Array.from_buffers(
        pa.string(), len(values), [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    )


def binaries(values: Sequence[bytes]) -> pa.Array:
    """Return byte strings as an Arrow array of large binary."""
    return pa.Array.from_buffers(
        pa.large_binary(), len(values), [None, pa.py_buffer(_ends(values)), pa.py_buffer(b"".join(values))]
    )


def _ends(values: Sequence[str | bytes] | Sequence[bytes]) -> np.ndarray:
    """Return where each value begins when all are joined, and the end of the last."""
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=ends[1:])
    return ends


def present(array: pa.Array) -> np.ndarray:
    """Mark the slots of an Arrow array that are not null: bool of shape (n,)."""
    return np.ones(len(array), bool) if not array.null_count else _bits(array, 0)


def truths(array: pa.Array) -> np.ndarray:
    """Mark the slots of an Arrow array of booleans that are true: bool of shape (n,)."""
    return _bits(array, 1) & present(array)


def numbers(array: pa.Array, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """Return the slots of an Arrow array of numbers as a view of its memory; null slots are arbitrary."""
    if not len(array):
        return np.zeros(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def text_parts(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets (n + 1,) and the bytes of strings or binaries.

    The offsets are int32, or int64 for large types, and start at 0. The contents of null slots are arbitrary.
    """
    is_large = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    dtype = np.int64 if is_large else np.int32
    if not len(texts):
        return np.zeros(1, dtype), np.zeros(0, np.uint8)
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, dtype)[texts.offset : texts.offset + len(texts) + 1]
    whole = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return offsets - offsets[0], whole[offsets[0] : offsets[-1]]


def common_ends(a: pa.Array, b: pa.Array) -> tuple[int, int]:
    """Return with how many equal texts two arrays begin, and with how many equal ones of the rest they end.

    Both are of one type, and have no nulls.
    """
    ends, data = zip(text_parts(a), text_parts(b), strict=True)
    n = min(len(a), len(b))
    lengths = [np.diff(offsets) for offsets in ends]
    first = _equal_at_start(lengths[0][:n], lengths[1][:n])
    same = _equal_at_start(data[0][: ends[0][first]], data[1][: ends[1][first]])
    first = min(first, int(np.searchsorted(ends[0], same, "right")) - 1)
    rest = n - first
    last = _equal_at_start(lengths[0][::-1][:rest], lengths[1][::-1][:rest])
    tails = [part[::-1][: offsets[-1] - offsets[-1 - last]] for part, offsets in zip(data, ends, strict=True)]
    from_end = ends[0][-1] - ends[0][::-1]
    return first, min(last, int(np.searchsorted(from_end, _equal_at_start(*tails), "right")) - 1)


def _equal_at_start(a: np.ndarray, b: np.ndarray) -> int:
    """Return with how many equal elements two arrays of one length begin."""
    for begin in range(0, len(a), _AT_ONCE):
        differ = a[begin : begin + _AT_ONCE] != b[begin : begin + _AT_ONCE]
        if differ.any():
            return begin + int(differ.argmax())
    return len(a)


def _bits(array: pa.Array, buffer: int) -> np.ndarray:
    if not len(array):
        return np.zeros(0, bool)
    bytes_ = np.frombuffer(array.buffers()[buffer], np.uint8)
    return np.unpackbits(bytes_, count=array.offset + len(array), bitorder="little")[array.offset :].view(bool)
