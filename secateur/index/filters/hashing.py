"""Hashes of whole columns and of single keys: MurmurHash3 x64_128 with seed 0 of the canonical bytes of a key.

Postings hold every value of a block once, and so many hashes may be that they have to be made distinct to be held. That
is done on the hashes themselves, which are spread evenly whatever the values are, by a table of positions, in 20 to 30
ns per value on any machine: sorting 64-bit words takes from 8 to 60, by the vector instructions that numpy finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy, numbers, present, text_parts
from secateur.errors import IndexFault
from secateur.index.filters import murmur3
from secateur.index.filters.murmur3 import CHUNK
from secateur.values import Key, Kind, canonical_bytes, keys_of

MOST = 1 << 22  # distinct hashes of one block: 64 MiB
ENOUGH = 1 << 20  # hashes that are made distinct at once, unless there are few distinct ones

_SAMPLE = 4096  # values that tell whether values repeat
_SELDOM = 0.5  # distinct among a sample, below which it pays to make integers distinct before bits are set
_OFTEN = 0.9  # distinct values of a sample over all: below, about 20,000 distinct values or fewer
_ROUNDS = 6  # after which one hash in 10,000 has not found a place of its own
_FEW = 64  # hashes that are sorted


@dataclass(frozen=True)
class Hashes:
    """The two 64-bit halves of every value's hash: uint64 of shape (n,)."""

    first: np.ndarray
    second: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def take(self, positions: np.ndarray) -> Hashes:
        """The hashes at the given positions."""
        return Hashes(self.first.take(positions), self.second.take(positions))


def joined(parts: Sequence[Hashes]) -> Hashes:
    """The hashes of all parts in order."""
    if len(parts) == 1:
        return parts[0]
    nothing = np.zeros(0, np.uint64)
    first = np.concatenate([nothing, *(part.first for part in parts)])
    return Hashes(first, np.concatenate([nothing, *(part.second for part in parts)]))


def hash_present(values: pa.Array) -> Hashes:
    """The hashes of the non-null values of a column with an order: every value's at least once, few of them often.

    For :class:`DistinctHashes`, which makes them distinct over several arrays. Dictionary arrays are hashed as their
    values, large strings and binaries as small ones. Raises IndexFault for a type without an order.
    """
    hashes, known_distinct = _hash_column(values)
    return hashes if known_distinct or not _repeat(hashes.first) else distinct(hashes)


def _repeat(hashes: np.ndarray) -> bool:
    """Whether a sample says that most hashes come again."""
    if len(hashes) <= _SAMPLE:
        return False
    sample = hashes[:: len(hashes) // _SAMPLE]
    return len(np.unique(sample)) < _SELDOM * len(sample)


def hash_binaries(values: pa.Array) -> Hashes:
    """One hash per string or binary of an array, in its order. Raises ValueError where there are nulls."""
    if values.null_count:
        raise ValueError(f"{values.null_count} nulls have no hash")
    return Hashes(*murmur3.hash_slices(*_slices(values)))


def hash_keys(keys: Sequence[Key], kind: Kind) -> Hashes:
    """The hashes of single keys, in their order."""
    if kind is Kind.WORD:
        return Hashes(*murmur3.hash_words(np.array(keys, np.int64).view(np.uint64), 8))
    return hash_canonical([canonical_bytes(key, kind) for key in keys])


def hash_canonical(values: Sequence[bytes]) -> Hashes:
    """The hashes of canonical bytes, in their order."""
    digests = b"".join([mmh3.mmh3_x64_128_digest(value) for value in values])
    pairs = np.frombuffer(digests, "<u8").reshape(-1, 2)
    return Hashes(pairs[:, 0].copy(), pairs[:, 1].copy())


def is_binary(type_: pa.DataType) -> bool:
    """Whether values of the type lie as one run of bytes each: strings and binaries, small or large."""
    types = pa.types
    return bool(
        types.is_string(type_) or types.is_binary(type_) or types.is_large_string(type_) or types.is_large_binary(type_)
    )


def used_values(values: pa.Array) -> pa.Array:
    """The values of a dictionary that its array uses, each once; any other array as it is."""
    if not pa.types.is_dictionary(values.type):
        return values
    used = np.zeros(len(values.dictionary), bool)
    used[numbers(values.indices.drop_null().cast(pa.int64()), np.int64)] = True
    return values.dictionary.take(from_numpy(np.flatnonzero(used)))


def distinct_where_repeated(values: pa.Array) -> pa.Array:
    """Strings or binaries each once, or the array as it is where a sample says that few of them repeat."""
    if len(values) > _SAMPLE:
        sample = values.take(from_numpy(np.linspace(0, len(values) - 1, _SAMPLE).astype(np.int64)))
        if len(pc.unique(sample)) > _OFTEN * _SAMPLE:
            return values
    return pc.unique(values)


def binary_slices(values: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bytes that strings or binaries lie in, and where every one that is not null starts, and its length."""
    data, starts, lengths = _slices(values)
    if not values.null_count:
        return data, starts, lengths
    there = present(values)
    return data, starts[there], lengths[there]


def _slices(values: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not is_binary(values.type):
        raise IndexFault(f"values of type {values.type} are no strings or binaries")
    offsets, data = text_parts(values)
    return data, offsets[:-1], np.diff(offsets)


def _hash_column(values: pa.Array) -> tuple[Hashes, bool]:
    """The hashes of a column, and whether they are known to be distinct."""
    values = used_values(values)
    if is_binary(values.type):
        fewer = distinct_where_repeated(values)
        return Hashes(*murmur3.hash_slices(*binary_slices(fewer))), fewer is not values
    keys = keys_of(values.drop_null())
    if keys.kind is Kind.WIDE:
        high, low = (word.view(np.uint64) for word in keys.words)
        return Hashes(*murmur3.hash_pairs(low, high)), False
    words, ascending = _without_runs(keys.words[0])
    return Hashes(*murmur3.hash_words(words.view(np.uint64), 8)), ascending


def _without_runs(words: np.ndarray) -> tuple[np.ndarray, bool]:
    """Ascending integers each once, and True: as of many keys and times; others as they are."""
    if not (words[1:] >= words[:-1]).all():
        return words, False
    return words[np.append(True, words[1:] != words[:-1])[: len(words)]], True


def distinct(hashes: Hashes) -> Hashes:
    """The hashes each once, in whatever order."""
    kept = _one_of_each(hashes)
    return hashes if len(kept) == len(hashes) else hashes.take(kept)


def _one_of_each(hashes: Hashes) -> np.ndarray:
    """The position of one of every set of equal hashes: integers.

    Every hash writes its position into a table where its bits say, and reads whose position stayed. It is that one, or
    equal to it, or has to try again by other bits, with all that are equal to it. Exact: whatever is left is sorted.
    """
    first, second = hashes.first, hashes.second
    left = np.arange(len(hashes))
    kept = []
    for round_ in range(_ROUNDS):
        if len(left) <= _FEW:
            break
        won, lost = _contest(first, second, 8 * round_)
        kept.append(left.take(won))
        left, first, second = left.take(lost), first.take(lost), second.take(lost)
    order = np.lexsort((second, first))
    first, second = first.take(order), second.take(order)
    new = np.append(True, (first[1:] != first[:-1]) | (second[1:] != second[:-1]))[: len(order)]
    return np.concatenate([*kept, left.take(order[new])])


def _contest(first: np.ndarray, second: np.ndarray, skipped: int) -> tuple[np.ndarray, np.ndarray]:
    """Which positions stayed in the table, and which hashes are unlike the one that stayed in their place."""
    n = len(first)
    bits = (n - 1).bit_length() + 1  # from a quarter to half of the table is used
    table: np.ndarray = np.empty(1 << bits, np.int32 if n < 2**31 else np.int64)  # read only where it is written
    chunks = [np.arange(start, min(start + CHUNK, n), dtype=table.dtype) for start in range(0, n, CHUNK)]
    for positions in chunks:
        table[_places(first, positions, skipped, bits)] = positions
    won, lost = [], []
    for positions in chunks:
        start, own = int(positions[0]), slice(int(positions[0]), int(positions[-1]) + 1)
        stayed = table.take(_places(first, positions, skipped, bits), mode="clip")
        here = stayed == positions
        unlike = first.take(stayed, mode="clip") != first[own]
        alike = np.flatnonzero(~(unlike | here))  # by their first halves
        unlike[alike] = second.take(stayed.take(alike), mode="clip") != second[own].take(alike)
        won.append(np.flatnonzero(here) + start)
        lost.append(np.flatnonzero(unlike) + start)
    return np.concatenate(won), np.concatenate(lost)


def _places(first: np.ndarray, positions: np.ndarray, skipped: int, bits: int) -> np.ndarray:
    places = first[int(positions[0]) : int(positions[-1]) + 1] << skipped
    places >>= 64 - bits
    return places.view(np.int64)


class DistinctHashes:
    """Collects the distinct hashes of one block over its batches; gives up where they are more than `most`.

    Holds at most twice `most` hashes besides the batch last added, and as much again while it makes them distinct.
    """

    def __init__(self, most: int = MOST, enough: int = ENOUGH) -> None:
        self.most = most
        self.enough = enough  # hashes that are held before they are made distinct
        self.overflowed = False  # by more than `most` distinct hashes
        self.abandoned = False  # by a value that cannot be hashed
        self._parts: list[Hashes] = []  # the first holds `_distinct` hashes that are
        self._distinct = self._pending = 0

    @property
    def gave_up(self) -> bool:
        """Whether hashes are missing, so that no more need be added."""
        return self.overflowed or self.abandoned

    def add(self, hashes: Hashes) -> None:
        """Takes hashes of one more batch, distinct or not."""
        if self.gave_up or not len(hashes):
            return
        self._parts.append(hashes)
        self._pending += len(hashes)
        if self._pending >= min(self.most, max(self._distinct, self.enough)):
            self._merge()

    def abandon(self) -> None:
        """Says that a value of the block cannot be hashed: a filter without it would lose its row."""
        self.abandoned = True
        self._parts = []

    def held(self) -> Hashes | None:
        """The hashes of all batches, each at least once, and some again; None after giving up."""
        return None if self.gave_up else joined(self._parts)

    def found(self) -> Hashes | None:
        """The distinct hashes of all batches; None after giving up, when the block has to do without a filter."""
        if self._pending and not self.gave_up:
            self._merge()
        return self.held()

    def _merge(self) -> None:
        whole = joined(self._parts)
        self._parts = []
        merged = distinct(whole)
        self._distinct, self._pending = len(merged), 0
        self.overflowed = self._distinct > self.most
        if not self.overflowed:
            self._parts = [merged]
