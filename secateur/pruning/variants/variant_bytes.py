"""Read scalars at a path in the bytes of VARIANT values, many rows at a time.

A VARIANT has two byte strings: `metadata`, a dictionary of names, and `value`. Numbers in them are little-endian, and
headers say how many bytes they have. What is not as the specification says is malformed: nothing is known of it.

Source: Parquet's VariantEncoding.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import numbers, present
from secateur.ragged import offsets_of, spread

PRIMITIVE, SHORT_TEXT, OBJECT, ARRAY = range(4)
NULL_VALUE, TRUE_VALUE, FALSE_VALUE, INT8, INT16, INT32, INT64, DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16 = range(11)
DATE, INSTANT_MICROS, LOCAL_MICROS, FLOAT, BINARY, TEXT = range(11, 17)
_VERSION = 1
_WORD = 8  # bytes read at once; buffers have as many zeros behind them


@dataclass(frozen=True)
class Bytes:
    """Byte strings one after the other: string i is data[offsets[i]:offsets[i + 1]], with zeros behind the last."""

    data: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, binaries: pa.Array) -> Bytes:
        """Return the bytes of an array; a NULL is empty."""
        if not len(binaries):
            return cls(np.zeros(_WORD, np.uint8), np.zeros(1, np.int64))
        array = pc.fill_null(binaries.cast(pa.large_binary()), b"")
        offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
        data = array.buffers()[2]
        used = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[: offsets[-1]]
        return cls(np.concatenate([used, np.zeros(_WORD, np.uint8)]), offsets)

    def number(self, at: np.ndarray, width: np.ndarray | int, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read unsigned numbers of 1 to 4 bytes: int64, and which of them end by `end`."""
        inside = (at >= 0) & (at + width <= end)
        at = np.where(inside, at, 0)
        total = self.data[at].astype(np.int64)
        for k in range(1, int(np.max(width, initial=1))):
            total += np.where(k < width, self.data[at + k].astype(np.int64) << (8 * k), 0)
        return total, inside


@dataclass(frozen=True)
class ValuePlaces:
    """Where values begin in their bytes: int64 of shape (n,). Where `lacking`, there is none; `malformed`, unknown."""

    at: np.ndarray
    end: np.ndarray  # of the byte string that the value is in
    lacking: np.ndarray
    malformed: np.ndarray

    @property
    def is_there(self) -> np.ndarray:
        """Whether there is a value."""
        return ~self.lacking & ~self.malformed


def roots(values: Bytes) -> ValuePlaces:
    """Return the places of whole values."""
    begin, end = values.offsets[:-1], values.offsets[1:]
    return ValuePlaces(begin, end, np.zeros(len(begin), bool), begin == end)


def ids_of(metadata: pa.Array, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of a name in every row's dictionary, -1 where it is not in it, and which are malformed.

    Rows often have the same dictionary, which is looked into once.
    """
    encoded = metadata.cast(pa.binary()).dictionary_encode()
    ids, malformed = _ids_in(Bytes.of(encoded.dictionary), name.encode())
    at = numbers(pc.fill_null(encoded.indices, 0).cast(pa.int64()), np.int64)
    if not len(ids):
        return np.full(len(at), -1), np.ones(len(at), bool)
    return ids[at], malformed[at] | ~present(metadata)


def _ids_in(dictionaries: Bytes, name: bytes) -> tuple[np.ndarray, np.ndarray]:
    begin, end = dictionaries.offsets[:-1], dictionaries.offsets[1:]
    n = len(begin)
    header, has_header = dictionaries.number(begin, 1, end)
    width = (header >> 6) + 1
    count, has_count = dictionaries.number(begin + 1, width, end)
    first = begin + 1 + width  # of the offsets, one more than names
    texts = first + (count + 1) * width
    fine = has_header & has_count & (header & 15 == _VERSION) & (texts <= end)
    counts = np.where(fine, count, 0)
    row = np.repeat(np.arange(n), counts)
    within = _within(counts)
    place = first[row] + within * width[row]
    low, _ = dictionaries.number(place, width[row], end[row])
    high, _ = dictionaries.number(place + width[row], width[row], end[row])
    stop = texts[row] + high
    fine &= np.bincount(row[(high < low) | (stop > end[row])], minlength=n) == 0
    same = fine[row] & (high - low == len(name))
    at = np.where(same, texts[row] + low, 0)
    for k, byte in enumerate(name):
        same &= dictionaries.data[np.where(same, at + k, 0)] == byte
    ids = np.full(n, -1)
    ids[row[same]] = within[same]
    return ids, ~fine | (np.bincount(row[same], minlength=n) > 1)


def _within(counts: np.ndarray) -> np.ndarray:
    """Return the position of every element in its run."""
    return spread(np.zeros(len(counts), np.int64), counts)


def fields(values: Bytes, places: ValuePlaces, ids: np.ndarray, unknown_id: np.ndarray) -> ValuePlaces:
    """Return the places of one field of objects, by its number in their dictionaries; other values lack it."""
    header, fine = values.number(places.at, 1, places.end)
    is_object = places.is_there & fine & (header & 3 == OBJECT)
    offset_width, id_width = (header >> 2 & 3) + 1, (header >> 4 & 3) + 1
    count, has_count = values.number(places.at + 1, np.where(header >> 6 & 1 == 1, 4, 1), places.end)
    first = places.at + 1 + np.where(header >> 6 & 1 == 1, 4, 1)
    offsets = first + count * id_width
    data = offsets + (count + 1) * offset_width
    fine &= ~is_object | (has_count & (data <= places.end))
    looked_into = is_object & fine & ((ids >= 0) | unknown_id)
    counts = np.where(looked_into, count, 0)
    row = np.repeat(np.arange(len(ids)), counts)
    within = _within(counts)
    number, _ = values.number(first[row] + within * id_width[row], id_width[row], places.end[row])
    hits = np.flatnonzero(number == ids[row])
    position = np.full(len(ids), -1)
    position[row[hits]] = within[hits]
    has_field = position >= 0
    offset, inside = values.number(offsets + np.where(has_field, position, 0) * offset_width, offset_width, places.end)
    at = np.where(has_field, data + offset, 0)
    malformed = places.malformed | (places.is_there & ~fine) | (is_object & unknown_id & (count > 0))
    malformed |= has_field & (~inside | (at >= places.end))
    return ValuePlaces(at, places.end, ~has_field & ~malformed, malformed)


def items(values: Bytes, places: ValuePlaces, index: int) -> ValuePlaces:
    """Return the places of one item of arrays; other values, and arrays that end before it, lack it."""
    header, fine = values.number(places.at, 1, places.end)
    is_array = places.is_there & fine & (header & 3 == ARRAY)
    width, of_count = (header >> 2 & 3) + 1, np.where(header >> 4 & 1 == 1, 4, 1)
    count, has_count = values.number(places.at + 1, of_count, places.end)
    offsets = places.at + 1 + of_count
    data = offsets + (count + 1) * width
    fine &= ~is_array | (has_count & (data <= places.end))
    has_item = is_array & fine & (index < count)
    offset, inside = values.number(np.where(has_item, offsets + index * width, 0), width, places.end)
    at = np.where(has_item, data + offset, 0)
    malformed = places.malformed | (places.is_there & ~fine) | (has_item & (~inside | (at >= places.end)))
    return ValuePlaces(at, places.end, ~has_item & ~malformed, malformed)


@dataclass(frozen=True)
class Scalars:
    """What the headers of values say: arrays of shape (n,)."""

    basic: np.ndarray
    kind: np.ndarray  # of primitives; else -1
    at: np.ndarray  # where the content begins
    length: np.ndarray  # bytes of it


def scalars(values: Bytes, places: ValuePlaces) -> tuple[Scalars, np.ndarray]:
    """Return what is at places, and which are malformed; where nothing is, anything may be returned."""
    header, fine = values.number(places.at, 1, places.end)
    basic = header & 3
    kind = np.where(basic == PRIMITIVE, header >> 2, -1)
    is_long = (kind == BINARY) | (kind == TEXT)
    size, has_size = values.number(places.at + 1, 4, places.end)
    widths = np.zeros(64, np.int64)
    widths[[INT8, INT16, INT32, INT64, DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16]] = 1, 2, 4, 8, 8, 5, 9, 17
    widths[[DATE, INSTANT_MICROS, LOCAL_MICROS, FLOAT]] = 4, 8, 8, 4
    length = np.where(is_long, size, np.where(basic == SHORT_TEXT, header >> 2, widths[np.maximum(kind, 0)]))
    at = places.at + np.where(is_long, 5, 1)
    fine &= (~is_long | has_size) & (at + length <= places.end)
    return Scalars(basic, kind, at, length), places.is_there & ~fine


def words(values: Bytes, at: np.ndarray, width: int) -> np.ndarray:
    """Read signed numbers of 1, 2, 4 or 8 bytes: int64."""
    octets = values.data[at[:, None] + np.arange(width)]
    return np.ascontiguousarray(octets).view(f"<i{width}")[:, 0].astype(np.int64)


def texts(values: Bytes, at: np.ndarray, length: np.ndarray, type_: pa.DataType) -> pa.Array:
    """Return byte strings as text or binary. Raises pa.ArrowInvalid for text that is not UTF-8."""
    offsets = offsets_of(length)
    data = values.data[spread(at, length)] if len(at) else np.zeros(0, np.uint8)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(at), buffers).cast(type_)
