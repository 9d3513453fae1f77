"""Many keys, as numpy words that are compared from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.arrays import binaries
from secateur.values.key import INT64_MAX, INT128_MAX, Key
from secateur.values.kinds import Kind

FEW_THRESHOLDS = 16  # up to this many, comparisons are faster than a binary search, which jumps in memory
FEW_TIES = 16  # up to one tie in so many keys is resolved by position; with more ties whole words are compared
UNBOUNDED = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Keys:
    """n keys as words of shape (n,): a key is less than another iff its words are, compared left to right.

    Sound for the BYTES layout: zero padding orders two strings correctly unless they differ only in trailing zeros;
    then the shorter string, which is the lesser, has the lesser last word.
    """

    kind: Kind
    words: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return len(self.words[0])

    def at(self, index: int) -> Key:
        """Return one key."""
        words = [word[index] for word in self.words]
        match self.kind:
            case Kind.WORD:
                return int(words[0])
            case Kind.WIDE:
                return (int(words[0]) << 64) | int(words[1])
            case Kind.BYTES:
                return b"".join(int(word).to_bytes(8, "big") for word in words[:-1])[: int(words[-1])]

    def take(self, indices: np.ndarray | slice) -> Keys:
        """Return the keys at the given positions."""
        return Keys(self.kind, tuple(word[indices] for word in self.words))

    @cached_property
    def width(self) -> int:
        """Number of words that hold bytes, for BYTES keys."""
        return len(self.words) - 1

    @cached_property
    def common(self) -> list[np.generic]:
        """The leading words that all keys share, without the last word; computed once for all comparisons."""
        return common_words(self.words[:-1])

    def at_least(self, key: Key) -> np.ndarray:
        """Mark the keys >= `key`: bool of shape (n,). Exact for a `key` of any length."""
        return _at_least(self.words, words_of(key, self.kind, self.width))

    def rank(self, thresholds: Keys) -> np.ndarray:
        """Return for every key the number of thresholds that are at most the key: int of shape (n,).

        `thresholds` are sorted, and built by :func:`keys_from` with as many words of bytes as these keys have.
        """
        table = thresholds.words
        if len(thresholds) <= FEW_THRESHOLDS:
            ranks = np.zeros(len(self), np.int8)
            for target in zip(*table, strict=True):
                ranks += _at_least(self.words, target)
            return ranks
        return _rank(self.words, table)


def common_words(words: Sequence[np.ndarray]) -> list[np.generic]:
    """Return the values of the leading words that are equal in all keys; each word has shape (n,)."""
    common = []
    for word in words:
        if not len(word) or word[0] != word[-1] or (word != word[0]).any():
            break
        common.append(word[0])
    return common


def words_of(key: Key, kind: Kind, width: int) -> tuple[np.generic, ...]:
    """Return a key in the words of a :class:`Keys` with `width` words of bytes.

    A longer `key` is truncated, but the last word keeps its full length. An array key that ties on the other words is
    no longer than them, so it is a shorter prefix of `key` and correctly compares as less.
    """
    match key:
        case bytes():
            padded = key[: 8 * width].ljust(8 * width, b"\0")
            return (*np.frombuffer(padded, ">u8").astype(np.uint64), np.uint64(len(key)))
        case _ if kind is Kind.WIDE:
            return (np.int64(key >> 64), np.uint64(key & (2**64 - 1)))
        case _:
            return (np.int64(key),)


def _at_least(words: tuple[np.ndarray, ...], target: tuple[np.generic, ...]) -> np.ndarray:
    """Mark the keys >= `target` by the first word, and by the others where that is equal."""
    result = words[0] >= target[0]
    if len(words) == 1:
        return result
    equal = words[0] == target[0]
    ties = np.count_nonzero(equal)
    if ties * FEW_TIES > len(equal):
        later = _at_least(words[1:], target[1:])
        result &= later | ~equal
    elif ties:
        tied = np.flatnonzero(equal)
        result[tied] = _at_least(tuple(word[tied] for word in words[1:]), target[1:])
    return result


def _rank(words: tuple[np.ndarray, ...], table: tuple[np.ndarray, ...]) -> np.ndarray:
    """Rank keys among many thresholds: by binary search for the first word, then among those that share it."""
    ranks = np.searchsorted(table[0], words[0], side="right")
    if len(words) == 1:
        return ranks
    first = np.searchsorted(table[0], words[0], side="left")
    tied = np.flatnonzero(first < ranks)
    if len(tied):
        ranks[tied] = _rank_within(tuple(word[tied] for word in words), table, first[tied], ranks[tied])
    return ranks


def _rank_within(
    words: tuple[np.ndarray, ...], table: tuple[np.ndarray, ...], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Binary search for all keys at once, each within its own limits; passes: log2 of the widest limits."""
    for _ in range(int((high - low).max()).bit_length()):
        active = low < high
        middle = np.minimum((low + high) // 2, len(table[0]) - 1)
        reached = np.ones(len(low), bool)
        for word, column in reversed(list(zip(words, table, strict=True))):
            bound = column[middle]
            reached = (word > bound) | ((word == bound) & reached)
        low = np.where(active & reached, middle + 1, low)
        high = np.where(active & ~reached, middle, high)
    return low


_MATRIX_BYTES = 1 << 20  # fits a processor's cache


def bytes_keys(array: pa.Array) -> Keys:
    """Return the keys of strings: their bytes are laid into zeroed matrices of 8-byte words, one after the other."""
    binary = array.cast(pa.large_binary())
    offsets = np.frombuffer(binary.buffers()[1], np.int64)[binary.offset : binary.offset + len(binary) + 1]
    lengths = np.diff(offsets)
    width = max(1, -(-int(lengths.max(initial=0)) // 8))
    words = np.zeros((width, len(binary)), np.uint64)
    if binary.buffers()[2] is not None:
        data, places = np.frombuffer(binary.buffers()[2], np.uint8), np.arange(8 * width)
        step = max(1, _MATRIX_BYTES // len(places))
        for start in range(0, len(binary), step):
            part = slice(start, min(start + step, len(binary)))
            matrix = np.zeros((part.stop - start, len(places)), np.uint8)
            matrix[places < lengths[part, None]] = data[offsets[start] : offsets[part.stop]]
            words[:, part] = matrix.view(">u8").T
    return Keys(Kind.BYTES, (*words, lengths.astype(np.uint64)))


def keys_from(kind: Kind, keys: Sequence[Key], width: int) -> Keys:
    """Return an array of keys, each laid out by :func:`words_of`."""
    match kind:
        case Kind.BYTES:
            lengths = np.array(list(map(len, keys)), np.uint64)  # type: ignore[arg-type]
            if lengths.max(initial=0) > 8 * width:
                keys = [key[: 8 * width] for key in keys]  # type: ignore[index]
            cut = bytes_keys(binaries(keys))  # type: ignore[arg-type]
            padding = [np.zeros(len(keys), np.uint64)] * (width - cut.width)
            return Keys(kind, (*cut.words[:-1], *padding, lengths))
        case Kind.WIDE:
            return integer_keys(kind, np.array(keys, object))
        case Kind.WORD:
            return integer_keys(kind, np.array(keys, np.int64))


def integer_keys(kind: Kind, values: np.ndarray) -> Keys:
    """Return the keys equal to these integers: of any dtype for WIDE keys, within int64 for WORD."""
    if kind is Kind.WORD:
        return Keys(kind, (values.astype(np.int64, copy=False),))
    whole = values.astype(object)
    return Keys(kind, ((whole >> 64).astype(np.int64), (whole & (2**64 - 1)).astype(np.uint64)))


def constant_keys(key: Key, kind: Kind, n: int) -> Keys:
    """Return n copies of a key."""
    width = max(1, -(-len(key) // 8)) if isinstance(key, bytes) else 0
    return Keys(kind, tuple(np.full(n, part) for part in words_of(key, kind, width)))


def greatest_keys(kind: Kind, n: int) -> Keys:
    """Return n copies of a key that no value exceeds."""
    match kind:
        case Kind.WORD:
            return constant_keys(INT64_MAX, kind, n)
        case Kind.WIDE:
            return constant_keys(INT128_MAX, kind, n)
        case Kind.BYTES:
            return Keys(kind, (np.full(n, UNBOUNDED), np.full(n, UNBOUNDED)))
