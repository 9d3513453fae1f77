"""The first half of MurmurHash3 x64_128 with seed 0 (Appleby) of many byte strings at once, bit-exact to ``mmh3``.

Hashes are uint64; numpy computes modulo 2^64. Work is done in chunks whose arrays fit a core's cache. No
function changes its input arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import mmh3
import numpy as np

Halves: TypeAlias = tuple[np.ndarray, np.ndarray]  # the state of n hashes: uint64 of shape (n,) each

CHUNK = 1 << 15  # values at once
CHUNK_BYTES = 1 << 21  # bytes that a chunk may span
LONG = 256  # bytes; ``mmh3`` hashes longer strings one by one, where its 150 ns per call hardly matter

_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_FIRST_OF_TAIL = np.array(
    [(1 << 8 * min(n, 8)) - 1 for n in range(16)], np.uint64
)  # by the bytes after the whole blocks
_SECOND_OF_TAIL = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(16)], np.uint64)


def hash_slices(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Hash every ``data[start : start + length]``: uint8 of shape (m,), integers of shape (n,) each.

    Correct for starts in any order; memory is bounded if they ascend.
    """
    short = lengths <= LONG
    if short.all():
        return _hash_short(data, starts, lengths)
    hashes = np.empty(len(starts), np.uint64)
    hashes[short] = _hash_short(data, starts[short], lengths[short])
    hashes[~short] = _one_by_one(data, starts[~short], lengths[~short])
    return hashes


def mix(x: np.ndarray) -> np.ndarray:
    """Apply MurmurHash3's 64-bit finaliser: uint64 of any shape."""
    mixed = np.empty(x.shape, np.uint64)
    mix_into(x, mixed, np.empty(x.shape, np.uint64))
    return mixed


def mix_into(x: np.ndarray, mixed: np.ndarray, aside: np.ndarray) -> None:
    """As :func:`mix`, into an array of the same shape; `aside` is another one, which is overwritten."""
    np.right_shift(x, 33, out=aside)
    np.bitwise_xor(x, aside, out=mixed)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed *= factor
        np.right_shift(mixed, 33, out=aside)
        mixed ^= aside


def _rotate(x: np.ndarray, bits: int) -> np.ndarray:
    rotated = x << bits
    rotated |= x >> (64 - bits)
    return rotated


def _scramble(k: np.ndarray, before: int, bits: int, after: int) -> np.ndarray:
    k = _rotate(k * before, bits)
    k *= after
    return k


def _first(k: np.ndarray) -> np.ndarray:
    return _scramble(k, _C1, 31, _C2)


def _second(k: np.ndarray) -> np.ndarray:
    return _scramble(k, _C2, 33, _C1)


def _block(h1: np.ndarray, h2: np.ndarray, k1: np.ndarray, k2: np.ndarray) -> Halves:
    """Return the state after 16 more bytes."""
    h1 = _rotate(h1 ^ _first(k1), 27)
    h1 += h2
    h1 *= 5
    h1 += 0x52DCE729
    h2 = _rotate(h2 ^ _second(k2), 31)
    h2 += h1
    h2 *= 5
    h2 += 0x38495AB5
    return h1, h2


def _finish(h1: np.ndarray, h2: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Return the first half of the hash."""
    h1, h2 = h1 ^ length, h2 ^ length
    h1 += h2
    h2 += h1
    h1 = mix(h1)
    h1 += mix(h2)
    return h1


def _one_by_one(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    view = np.ascontiguousarray(data).data
    places = zip(starts.tolist(), lengths.tolist(), strict=True)
    digests = b"".join([mmh3.mmh3_x64_128_digest(view[start : start + length]) for start, length in places])
    return np.frombuffer(digests, "<u8")[::2]


def _hash_short(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    hashes = np.empty(len(starts), np.uint64)
    for chunk in _spans(starts):
        begins, sizes = starts[chunk].astype(np.int64), lengths[chunk].astype(np.int64)
        low, high = int(begins.min()), int((begins + sizes).max())
        words = np.zeros((high - low) // 8 + 1, "<u8")  # reads past the end of a string hit the padding
        words.view(np.uint8)[: high - low] = data[low:high]
        hashes[chunk] = _hash_any_order(words, begins - low, sizes)
    return hashes


def _spans(starts: np.ndarray) -> Iterator[slice]:
    """Cut strings into chunks, also where they span many bytes: there may be unused bytes between them."""
    begin = 0
    while begin < len(starts):
        most = starts[begin : begin + CHUNK]
        size = max(1, int(np.searchsorted(most, int(most[0]) + CHUNK_BYTES)))
        yield slice(begin, begin + size)
        begin += size


def _hash_any_order(words: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Hash the strings with the most blocks first, so that those with another block are a prefix at every step."""
    blocks = lengths >> 4
    if blocks.min() == blocks.max():
        return _hash_descending(words, starts, lengths)
    order = np.argsort((LONG // 16 - blocks).astype(np.uint8), kind="stable")  # a radix sort
    hashes = np.empty(len(starts), np.uint64)
    hashes[order] = _hash_descending(words, starts[order], lengths[order])
    return hashes


def _hash_descending(words: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    read = _Reader(words, starts)
    h1, h2 = np.zeros((2, len(starts)), np.uint64)
    with_more = np.cumsum(np.bincount(lengths >> 4)[:0:-1])[::-1]  # number of strings with more than i blocks
    for n in with_more.tolist():
        h1[:n], h2[:n] = _block(h1[:n], h2[:n], read.next(n), read.next(n))
    tail = lengths & 15
    longest = int(tail.max())
    if longest > 0:
        h1 ^= _first(read.next(len(tail)) & _FIRST_OF_TAIL[tail])
    if longest > 8:
        h2 ^= _second(read.next(len(tail)) & _SECOND_OF_TAIL[tail])
    return _finish(h1, h2, lengths.view(np.uint64))


class _Reader:
    """Reads strings side by side, 8 bytes of each at a time, from the aligned words that contain them."""

    def __init__(self, words: np.ndarray, starts: np.ndarray) -> None:
        self.words = words
        self.at = starts >> 3
        self.shift = ((starts & 7) << 3).view(np.uint64)
        self.back = 64 - self.shift
        self.low = words.take(self.at, mode="clip")

    def next(self, n: int) -> np.ndarray:
        """Return the next 8 bytes of the first n strings: uint64."""
        at = self.at[:n]
        at += 1
        high = self.words.take(at, mode="clip")
        word = self.low[:n] >> self.shift[:n]
        word |= high << self.back[:n]  # numpy shifts by 64 to 0, which is right for an aligned string
        self.low[:n] = high
        return word
