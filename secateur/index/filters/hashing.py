"""Hashes of whole columns and of single keys: 64 bits per value, uint64 of shape (n,).

A key of 64 bits is mixed by MurmurHash3's finaliser, one of 128 bits half by half; bytes have the first half of their
MurmurHash3 x64_128 with seed 0. A finaliser takes 3 ns per key, the whole of MurmurHash3 13.

Postings keep every value of a block once, and there may be so many hashes that duplicates must be removed to hold them.
This works on the hashes themselves, which are spread evenly whatever the values are, with a table of positions: 20 to
30 ns per value on any machine. Sorting 64-bit words takes 8 to 60 ns, depending on the vector instructions that numpy
finds.
"""

from __future__ import annotations

from collections.abc import Sequence

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy, numbers, present, text_parts
from secateur.errors import IndexFault
from secateur.index.filters import murmur3
from secateur.index.filters.murmur3 import CHUNK
from secateur.values.conversion import keys_of
from secateur.values.key import Key, canonical_bytes
from secateur.values.kinds import Kind

MOST = 1 << 22  # distinct hashes of one block: 64 MiB
ENOUGH = 1 << 20  # hashes collected before duplicates are removed, unless there are few distinct ones

_SAMPLE = 4096  # values sampled to see whether values repeat
_SELDOM = 0.98  # share of distinct values in a sample; below it there are about 100,000 distinct values or fewer
_RECENT_BITS = 18  # size of the table of recent words: 2 MiB, about what a core's cache holds
_SPREAD = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd (Knuth, The Art of Computer Programming 3, 6.4)
_OFTEN = 0.9  # share of distinct values in a sample; below it there are about 20,000 distinct values or fewer
_ROUNDS = 6  # after these, one hash in 10,000 is still undecided
_FEW = 64  # hashes that are sorted instead


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate the hashes of all parts."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.uint64), *parts])


def hash_present(values: pa.Array) -> np.ndarray:
    """Hash the non-null values of an ordered column; every value occurs, some of them repeatedly.

    For :class:`DistinctHashes`, which removes duplicates across arrays. Dictionary arrays are hashed as their values,
    large strings and binaries as small ones. Raises IndexFault for a type without an order.
    """
    values = used_values(values)
    if is_binary(values.type):
        return murmur3.hash_slices(*binary_slices(distinct_where_repeated(values)))
    keys = keys_of(values.drop_null())
    if keys.kind is Kind.WIDE:
        high, low = (word.view(np.uint64) for word in keys.words)
        return without_most_repeated(_hash_wide(low, high))
    words, ascending = _without_runs(keys.words[0])
    return hash_words(words.view(np.uint64) if ascending else without_most_repeated(words.view(np.uint64)))


def hash_each(values: pa.Array) -> np.ndarray:
    """Return one hash per non-null value of an ordered column, in order. Raises IndexFault as :func:`hash_present`."""
    values = values.drop_null()
    if is_binary(values.type):
        encoded = values.dictionary_encode()
        return hash_binaries(encoded.dictionary)[numbers(encoded.indices, np.int32)]
    keys = keys_of(values)
    if keys.kind is Kind.WIDE:
        high, low = (word.view(np.uint64) for word in keys.words)
        return _hash_wide(low, high)
    return hash_words(keys.words[0].view(np.uint64))


def without_most_repeated(words: np.ndarray) -> np.ndarray:
    """Remove most duplicates, if a sample suggests that there are many: uint64 of shape (n,), every value once or more.

    A value costs 3 ns; setting its bits in a filter, 30.
    """
    if len(words) <= _SAMPLE:
        return words
    sample = np.sort(words[:: len(words) // _SAMPLE])
    if np.count_nonzero(sample[1:] == sample[:-1]) < (1 - _SELDOM) * len(sample):
        return words
    recent = Recent()
    chunks = (words[start : start + CHUNK] for start in range(0, len(words), CHUNK))
    return np.concatenate([recent.missing(chunk, None) for chunk in chunks])


class Recent:
    """A table of recent words that filters out most repetitions.

    It is lossy: two words of one place evict each other and then count as new again.
    """

    def __init__(self) -> None:
        self._table = np.zeros(1 << _RECENT_BITS, np.uint64)
        self._table[0] = 1  # 1 belongs to another place, as 0 does for all other places: the table starts empty
        self._aside = np.empty(0, np.uint64)  # reused: new memory costs as much as the work

    def missing(self, words: np.ndarray, chosen: np.ndarray | None) -> np.ndarray:
        """Return the words, or the chosen ones, that are not in the table, and add them to it."""
        return words.take(self.where_missing(words, chosen))

    def where_missing(self, words: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """Return the positions, ascending, of the words that :meth:`missing` returns, and add them to the table."""
        if len(self._aside) < len(words):
            self._aside = np.empty(len(words), np.uint64)
        places = np.multiply(words, _SPREAD, out=self._aside[: len(words)])
        places >>= 64 - _RECENT_BITS
        at = places.view(np.int64)
        new = self._table.take(at, mode="clip") != words
        if chosen is not None:
            new &= chosen
        positions = np.flatnonzero(new)
        self._table[at.take(positions)] = words.take(positions)
        return positions


def hash_binaries(values: pa.Array) -> np.ndarray:
    """Return one hash per string or binary of an array, in order. Raises ValueError if there are nulls."""
    if values.null_count:
        raise ValueError(f"{values.null_count} nulls have no hash")
    return murmur3.hash_slices(*_slices(values))


def hash_keys(keys: Sequence[Key], kind: Kind) -> np.ndarray:
    """Return the hashes of single keys, in order."""
    match kind:
        case Kind.WORD:
            return hash_words(np.array(keys, np.int64).view(np.uint64))
        case Kind.WIDE:
            pairs = b"".join([canonical_bytes(key, kind) for key in keys])
            return _hash_wide(*np.frombuffer(pairs, "<u8").reshape(-1, 2).T)
        case Kind.BYTES:
            return hash_texts([canonical_bytes(key, kind) for key in keys])


def hash_texts(texts: Sequence[bytes]) -> np.ndarray:
    """Return the hashes of byte strings, in order."""
    digests = b"".join([mmh3.mmh3_x64_128_digest(text) for text in texts])
    return np.frombuffer(digests, "<u8")[::2].copy()


def hash_words(words: np.ndarray) -> np.ndarray:
    """Return the hashes of keys of 64 bits, uint64 of shape (n,), in order."""
    hashes = np.empty(len(words), np.uint64)
    aside = np.empty(min(len(words), CHUNK), np.uint64)
    for begin in range(0, len(words), CHUNK):
        chunk = words[begin : begin + CHUNK]
        murmur3.mix_into(chunk, hashes[begin : begin + CHUNK], aside[: len(chunk)])
    return hashes


def _hash_wide(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the hashes of keys of 128 bits, given their halves."""
    return hash_words(low ^ hash_words(high))


def is_binary(type_: pa.DataType) -> bool:
    """Whether each value of the type is one run of bytes: strings and binaries, small or large."""
    types = pa.types
    return bool(
        types.is_string(type_) or types.is_binary(type_) or types.is_large_string(type_) or types.is_large_binary(type_)
    )


def used_values(values: pa.Array) -> pa.Array:
    """Return the values of a dictionary that its array uses, once each; any other array unchanged."""
    if not pa.types.is_dictionary(values.type):
        return values
    used = np.zeros(len(values.dictionary), bool)
    used[numbers(values.indices.drop_null().cast(pa.int64()), np.int64)] = True
    return values.dictionary.take(from_numpy(np.flatnonzero(used)))


def distinct_where_repeated(values: pa.Array) -> pa.Array:
    """Remove duplicate strings or binaries, unless a sample suggests that there are few."""
    if len(values) > _SAMPLE:
        sample = values.take(from_numpy(np.linspace(0, len(values) - 1, _SAMPLE).astype(np.int64)))
        if len(pc.unique(sample)) > _OFTEN * _SAMPLE:
            return values
    return pc.unique(values)


def binary_slices(values: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bytes of strings or binaries, and the start and length of every non-null one."""
    data, starts, lengths = _slices(values)
    if not values.null_count:
        return data, starts, lengths
    there = present(values)
    return data, starts[there], lengths[there]


def _slices(values: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not is_binary(values.type):
        raise IndexFault(f"values of type {values.type} are neither strings nor binary")
    offsets, data = text_parts(values)
    return data, offsets[:-1], np.diff(offsets)


def _without_runs(words: np.ndarray) -> tuple[np.ndarray, bool]:
    """Remove duplicates from ascending integers, as many keys and times are; the flag says whether they ascend."""
    if not all((part[1:] >= part[:-1]).all() for part in (words[:_SAMPLE], words)):  # the first few tell mostly
        return words, False
    return words[np.append(True, words[1:] != words[:-1])[: len(words)]], True


def distinct(hashes: np.ndarray) -> np.ndarray:
    """Remove duplicate hashes; the order may change."""
    kept = _one_of_each(hashes)
    return hashes if len(kept) == len(hashes) else hashes.take(kept)


def _one_of_each(hashes: np.ndarray) -> np.ndarray:
    """Return the position of one hash of every set of equal ones.

    Every hash writes its position into a table at an index made of its bits, then reads the position that survived.
    That is its own, or that of an equal hash; otherwise it tries again with other bits, together with all hashes equal
    to it. Exact: whatever is left at the end is sorted.
    """
    left = np.arange(len(hashes))
    kept = []
    for round_ in range(_ROUNDS):
        if len(left) <= _FEW:
            break
        won, lost = _contest(hashes, 8 * round_)
        kept.append(left.take(won))
        left, hashes = left.take(lost), hashes.take(lost)
    _, firsts = np.unique(hashes, return_index=True)
    return np.concatenate([*kept, left.take(firsts)])


def _contest(hashes: np.ndarray, skipped: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions that survived in the table, and those whose hash differs from their survivor."""
    n = len(hashes)
    bits = (n - 1).bit_length() + 1  # a quarter to half of the table is used
    table: np.ndarray = np.empty(1 << bits, np.int32 if n < 2**31 else np.int64)  # read only where written
    chunks = [np.arange(start, min(start + CHUNK, n), dtype=table.dtype) for start in range(0, n, CHUNK)]
    for positions in chunks:
        table[_places(hashes, positions, skipped, bits)] = positions
    won, lost = [], []
    for positions in chunks:
        start, range_ = int(positions[0]), slice(int(positions[0]), int(positions[-1]) + 1)
        stayed = table.take(_places(hashes, positions, skipped, bits), mode="clip")
        won.append(np.flatnonzero(stayed == positions) + start)
        lost.append(np.flatnonzero(hashes.take(stayed, mode="clip") != hashes[range_]) + start)
    return np.concatenate(won), np.concatenate(lost)


def _places(hashes: np.ndarray, positions: np.ndarray, skipped: int, bits: int) -> np.ndarray:
    places = hashes[int(positions[0]) : int(positions[-1]) + 1] << skipped
    places >>= 64 - bits
    return places.view(np.int64)


class DistinctHashes:
    """Collects the distinct hashes of one block over its batches; gives up if there are more than `most`.

    Holds at most twice `most` hashes besides the last batch, and as many again while removing duplicates.
    """

    def __init__(self, most: int = MOST, enough: int = ENOUGH) -> None:
        self.most = most
        self.enough = enough  # hashes held before duplicates are removed
        self.overflowed = False  # more than `most` distinct hashes
        self.abandoned = False  # a value cannot be hashed
        self._parts: list[np.ndarray] = []  # the first has `_distinct` hashes, all distinct
        self._distinct = self._pending = 0

    @property
    def gave_up(self) -> bool:
        """Whether hashes are missing, so that adding more is pointless."""
        return self.overflowed or self.abandoned

    def add(self, hashes: np.ndarray) -> None:
        """Add the hashes of one more batch, distinct or not."""
        if self.gave_up or not len(hashes):
            return
        self._parts.append(hashes)
        self._pending += len(hashes)
        if self._pending >= min(self.most, max(self._distinct, self.enough)):
            self._merge()

    def abandon(self) -> None:
        """Give up because a value of the block cannot be hashed: a filter without it would lose its row."""
        self.abandoned = True
        self._parts = []

    def collected(self) -> np.ndarray | None:
        """Return the hashes of all batches, some repeatedly; None after giving up."""
        return None if self.gave_up else joined(self._parts)

    def distinct(self) -> np.ndarray | None:
        """Return the distinct hashes of all batches; None after giving up: the block then has no filter."""
        if self._pending and not self.gave_up:
            self._merge()
        return self.collected()

    def _merge(self) -> None:
        whole = joined(self._parts)
        self._parts = []
        merged = distinct(whole)
        self._distinct, self._pending = len(merged), 0
        self.overflowed = self._distinct > self.most
        if not self.overflowed:
            self._parts = [merged]
