"""Bloom filters inside Parquet files: how they hash a value, and where its bits lie.

Such a filter ("split block") has z blocks of 8 words of 32 bits. The XXH64 with seed 0 of a value's PLAIN bytes selects
a block by its upper half and one bit in each of the block's words by its lower half. A file's filter is an array of
uint32 of shape (z, 8). z is a power of two here, so a block's number is the hash's top bits: a filter folds exactly
into one of half the size by OR of neighbours, and widens to twice the size by repeating every block. Its little-endian
bytes are a vector of z * 256 bits, which :mod:`secateur.index.filters.bloom` transposes like its own.

The hash is of the value as the file stores it, which the key does not determine: the same key is 4 bytes in one file
and 8 in another. :class:`Encoding` describes a file's column.

Source: "Apache Parquet format, Bloom Filter"; Putze, Sanders, Singler 2007, "Cache-, Hash- and Space-Efficient Bloom
Filters"; XXH64 of ``xxhash``.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log1p
from typing import Literal

import numpy as np
import pyarrow as pa
from xxhash import xxh64_intdigest

from secateur.errors import IndexFault
from secateur.values.key import INT64_MAX, Key

WORDS, WORD_BITS = 8, 32  # of a block
BLOCK_BITS = WORDS * WORD_BITS
LEAST_LOG2_BITS, MOST_LOG2_BITS = 8, 27  # one block; 16 MiB
MOST_WIDTH = 16  # bytes of a fixed-width decimal; a key has 128 bits
MOST_CODE = 16 + MOST_WIDTH  # the greatest number of an encoding

_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)


class NativeForm(enum.IntEnum):
    """How a key becomes the bytes of a value."""

    INT32 = 1
    INT64 = 2
    UINT32 = 3
    UINT64 = 4
    FLOAT = 5
    DOUBLE = 6
    BYTES = 7
    MILLIS = 8
    FIXED = 16


@dataclass(frozen=True)
class Encoding:
    """How a column of a file writes the values that its bloom filter hashes.

    =======  ====================================================  ==================================================
    code     bytes that are hashed                                 columns
    =======  ====================================================  ==================================================
    1        the key in 4, little-endian two's complement          integers to 32 bits, uint8, uint16, date, decimal
    2        the key in 8, little-endian two's complement          64-bit integers, timestamps in µs, decimal
    3        the key in 4, little-endian, unsigned                 uint32, which Spark reads as long
    4        the key in 8, little-endian, unsigned                 uint64, which Spark reads as decimal(20, 0)
    5        4, IEEE 754, little-endian                            float
    6        8, IEEE 754, little-endian                            double
    7        the key, without its length                           string, binary, fixed-length binary
    8        the milliseconds in 8, little-endian two's complement timestamps in ms
    16 + w   the key in w, big-endian two's complement             decimal of fixed length, 1 <= w <= 16
    =======  ====================================================  ==================================================
    """

    form: NativeForm
    width: int = 0  # bytes of a FIXED value, else 0

    @property
    def code(self) -> int:
        """The number of the encoding in an index."""
        return self.form + self.width


def encoding_of_code(code: int) -> Encoding:
    """Return the encoding with a number in an index. Raises IndexFault for an unknown number."""
    if NativeForm.FIXED < code <= NativeForm.FIXED + MOST_WIDTH:
        return Encoding(NativeForm.FIXED, code - NativeForm.FIXED)
    if code == NativeForm.FIXED or code not in NativeForm.__members__.values():
        raise IndexFault(f"a bloom filter has the unknown encoding {code}")
    return Encoding(NativeForm(code))


@dataclass(frozen=True, eq=False)
class NativeFilters:
    """The usable bloom filters of one column of a file, by row group."""

    encoding: Encoding | None  # None: no row group has one
    filters: Sequence[np.ndarray | None]  # uint32 of shape (z, 8), z a power of two
    reasons: Sequence[str]  # why a row group has none; "" where it has one


# ---- hashing ---------------------------------------------------------------------------------------------------------


def hashes_of(key: Key, type_: pa.DataType, encoding: Encoding) -> list[int] | None:
    """Return the hashes of all byte forms of a key in a column with this encoding; None: cannot tell.

    `type_` is the table's type, which defines the key; a decimal is stored at its scale. Sound: a row group holds no
    such value if its filter has none of these hashes. An empty list means that the column cannot hold the value.
    """
    forms = byte_forms(key, type_, encoding)
    return None if forms is None else [xxh64_intdigest(form) for form in forms]


def byte_forms(key: Key, type_: pa.DataType, encoding: Encoding) -> list[bytes] | None:
    """Return the PLAIN bytes of all values with this key; None for NaN, or if the type is read differently."""
    if not _stores(encoding.form, type_):
        return None
    if isinstance(key, bytes):
        return [key]
    match encoding.form:
        case NativeForm.INT32:
            return _integer(key, 4, "little", signed=True)
        case NativeForm.INT64:
            return _integer(key, 8, "little", signed=True)
        case NativeForm.UINT32:
            return _integer(key, 4, "little", signed=False)
        case NativeForm.UINT64:
            return _integer(key, 8, "little", signed=False)
        case NativeForm.MILLIS:
            return [] if key % 1000 else _integer(key // 1000, 8, "little", signed=True)
        case NativeForm.FIXED:
            return _integer(key, encoding.width, "big", signed=True)
        case NativeForm.FLOAT:
            return _floating(key, "<f")
        case NativeForm.DOUBLE:
            return _floating(key, "<d")
        case NativeForm.BYTES:
            return None


def _stores(form: NativeForm, type_: pa.DataType) -> bool:
    """Whether a value stored in this form is a value of the type, with the key that the type gives it."""
    match form:
        case NativeForm.INT32:
            return bool(pa.types.is_signed_integer(type_) or pa.types.is_date32(type_) or _is_decimal(type_))
        case NativeForm.INT64:
            return type_ == pa.int64() or _is_micros(type_) or _is_decimal(type_)
        case NativeForm.UINT32:
            return bool(type_ == pa.int64())
        case NativeForm.UINT64:
            return _is_decimal(type_) and type_.scale == 0
        case NativeForm.MILLIS:
            return _is_micros(type_)
        case NativeForm.FIXED:
            return _is_decimal(type_)
        case NativeForm.FLOAT:
            return type_ in (pa.float32(), pa.float64())
        case NativeForm.DOUBLE:
            return bool(type_ == pa.float64())
        case NativeForm.BYTES:
            return type_ in (pa.string(), pa.binary())


def _is_decimal(type_: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(type_))


def _is_micros(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.unit == "us")


def _integer(value: int, width: int, order: Literal["little", "big"], *, signed: bool) -> list[bytes]:
    """Return the single form of an integer, or none if it does not fit."""
    try:
        return [value.to_bytes(width, order, signed=signed)]
    except OverflowError:
        return []


def _floating(key: int, layout: str) -> list[bytes] | None:
    """Return the forms of a double's key: zero has two, NaN too many (None), a double that is no float none."""
    (value,) = struct.unpack("<d", struct.pack("<q", key if key >= 0 else key ^ INT64_MAX))
    if value != value:
        return None
    if value == 0:
        return [struct.pack(layout, 0.0), struct.pack(layout, -0.0)]
    try:
        form = struct.pack(layout, value)
    except OverflowError:  # beyond the greatest float
        return []
    return [form] if struct.unpack(layout, form) == (value,) else []


# ---- positions and sizes ---------------------------------------------------------------------------------------------


def positions(hashes: int | np.ndarray, bits: int) -> np.ndarray:
    """Return the bit positions of every hash in a filter of so many bits: int64 of shape (n, 8), rows ascending."""
    hashes = np.atleast_1d(np.asarray(hashes, np.uint64))
    blocks = np.uint64(bits // BLOCK_BITS)
    block = ((hashes >> np.uint64(32)) * blocks) >> np.uint64(32)
    bit = (hashes.astype(np.uint32)[:, None] * _SALT) >> np.uint32(27)
    return (block.astype(np.int64) * BLOCK_BITS)[:, None] + np.arange(WORDS) * WORD_BITS + bit


def bit_vector(native: np.ndarray) -> np.ndarray:
    """Return the bits of a filter as a file stores them, least significant first: uint8 of shape (z * 32,)."""
    return native.astype("<u4", copy=False).reshape(-1).view(np.uint8)


def log2_bits_of(native: np.ndarray) -> int | None:
    """Return log2 of the bits, or None where the number of blocks is not a power of two: it cannot be sliced."""
    bits = len(native) * BLOCK_BITS
    return bits.bit_length() - 1 if bits and not bits & (bits - 1) else None


def holds(native: np.ndarray, hashes: int | np.ndarray) -> np.ndarray:
    """Mark the hashes that a filter of 2^x bits may hold: bool of shape (n,)."""
    log2_bits = log2_bits_of(native)
    assert log2_bits is not None, "sizes are powers of two, as checked when the filter was read"
    bits = positions(hashes, 1 << log2_bits)
    words = native.reshape(-1)[bits // WORD_BITS]
    return ((words >> (bits % WORD_BITS).astype(np.uint32)) & 1).all(axis=1)


def widen(native: np.ndarray, log2_bits: int) -> np.ndarray:
    """Return an equivalent filter of 2^log2_bits bits, at least as many as it has.

    A block is selected by the hash's top bits: the bits that select one of z blocks come before those that select a
    copy.
    """
    copies, rest = divmod(1 << (log2_bits - LEAST_LOG2_BITS), len(native))
    if not copies or rest:
        raise ValueError(f"a filter of {len(native)} blocks cannot be widened to 2^{log2_bits} bits")
    return np.repeat(native, copies, axis=0)


def halve(native: np.ndarray) -> np.ndarray:
    """Return the filter of the same values at half the size, exactly."""
    return native[::2] | native[1::2]


def fold(native: np.ndarray, fpr: float) -> np.ndarray:
    """Return the smallest filter of the same values with a rate of at most `fpr`, or `native` if its rate is higher.

    Writers that do not know the number of values in advance make filters of the largest size allowed.
    """
    while len(native) > 1 and expected_fpr(half := halve(native)) <= fpr:
        native = half
    return native


def expected_fpr(native: np.ndarray) -> float:
    """Estimate the false-positive rate: the mean over blocks of the product of their words' fill ratios."""
    return float(np.bitwise_count(native).prod(axis=1, dtype=np.int64).mean()) / WORD_BITS**WORDS


def distinct_values(native: np.ndarray) -> float:
    """Estimate how many values a filter holds; inf if it is full.

    Values reach a block as a Poisson process of n / z, and each leaves a word's bit unset with probability 31/32: on
    average a share of exp(-n / 32 z) of all bits stays unset.
    """
    fill = float(np.bitwise_count(native).mean()) / WORD_BITS
    return inf if fill == 1 else -WORD_BITS * len(native) * log1p(-fill)


def is_possible(native: np.ndarray) -> bool:
    """Whether values can have produced this filter: each sets a bit in every word of its block."""
    used = native != 0
    return bool((used.all(axis=1) == used.any(axis=1)).all())
