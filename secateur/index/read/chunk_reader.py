"""Reading chunks of many segments at once: exact ranges, in parallel, each proven by its checksum."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Protocol

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Range
from secateur.index.container.index_file import Place, as_it_lies, check, decode_chunk, encode_chunk
from secateur.index.model import Store
from secateur.pruning.report import Reads

DECODERS = min(8, os.cpu_count() or 1)
LEAST_SHARED = 16  # chunks; fewer are decoded by who asks for them

Arrays = list[np.ndarray]


class PieceCache(Protocol):
    """Keeps pieces of index files nearer than their store is; trouble of its own is a miss."""

    def find(self, key: str) -> bytes | None:
        """The bytes under a key, if they are here."""

    def keep(self, key: str, data: bytes) -> None:
        """Keep bytes under a key."""


@dataclass(frozen=True)
class IndexChunk:
    """A chunk of a segment file."""

    segment: str
    kind: str
    place: Place

    def __str__(self) -> str:
        return f"{self.segment}: chunk {self.kind} at {self.place.at}"


@dataclass(frozen=True)
class ChunkReader:
    """Reads chunks from a store, or from a cache on local disk where they lie without encoding."""

    store: Store
    disk: PieceCache | None
    reads: Reads
    ahead: dict[IndexChunk, Arrays | IndexFault] = field(
        default_factory=dict
    )  # read along with others, not asked for yet

    def read(self, chunks: Sequence[IndexChunk], along: Sequence[IndexChunk] = ()) -> list[Arrays | IndexFault]:
        """The arrays of every chunk, or the fault that it has.

        Where some have to be read, those in `along` are read with them, and are here when they are asked for.
        """
        found: dict[IndexChunk, Arrays | IndexFault | None] = {chunk: self.nearby(chunk) for chunk in chunks}
        missing = [chunk for chunk, arrays in found.items() if arrays is None]
        if missing:
            others = (chunk for chunk in along if chunk not in found and chunk not in self.ahead)
            missing += [chunk for chunk in dict.fromkeys(others) if not self._keep_ahead(chunk)]
        self.reads.stored += len(missing)
        self.reads.stored_bytes += sum(chunk.place.size for chunk in missing)
        for chunk, read in zip(missing, self._spread(missing), strict=True):
            if chunk in found:
                found[chunk] = read
            else:
                self.ahead[chunk] = read
        return [arrays for chunk in chunks if (arrays := found[chunk]) is not None]

    def nearby(self, chunk: IndexChunk) -> Arrays | IndexFault | None:
        """What was read along with others, for this time only, or lies on disk; None where it has to be read."""
        return self.ahead.pop(chunk) if chunk in self.ahead else self._from_disk(chunk)

    def _keep_ahead(self, chunk: IndexChunk) -> bool:
        """Whether a chunk lies on disk; what it holds is then kept here."""
        arrays = self._from_disk(chunk)
        if arrays is not None:
            self.ahead[chunk] = arrays
        return arrays is not None

    def _spread(self, chunks: Sequence[IndexChunk]) -> list[Arrays | IndexFault]:
        """The arrays of chunks of the store; where there are many, several threads read and decode a share each."""
        if len(chunks) < LEAST_SHARED:
            return self._stored(chunks)
        cuts = np.linspace(0, len(chunks), DECODERS + 1).astype(int).tolist()
        shares = [chunks[begin:end] for begin, end in pairwise(cuts)]
        return [arrays for share in _decoders().map(self._stored, shares) for arrays in share]

    def _stored(self, chunks: Sequence[IndexChunk]) -> list[Arrays | IndexFault]:
        wanted = [(chunk.segment, chunk.place.at, chunk.place.size) for chunk in chunks]
        return [self._decoded(*pair) for pair in zip(chunks, self.store.read_each(wanted), strict=True)]

    def read_ranges(self, segment: str, ranges: Sequence[Range]) -> list[bytes]:
        """The bytes of ranges of one segment file, whose checksums the caller knows. Raises IndexFault."""
        self.reads.stored += len(ranges)
        self.reads.stored_bytes += sum(size for _, size in ranges)
        return self.store.read_many(segment, ranges)

    def read_bytes(self, pieces: Sequence[IndexChunk]) -> list[bytes | IndexFault]:
        """The bytes of parts of chunks that have a checksum of their own, or the fault of each.

        Those of one file are read together, close ones by one request, those of many files by several threads.
        """
        found: list[bytes | IndexFault | None] = [self._piece_from_disk(piece) for piece in pieces]
        by_file: dict[str, list[int]] = {}
        for i in (i for i, data in enumerate(found) if data is None):
            by_file.setdefault(pieces[i].segment, []).append(i)
        shares = [[pieces[i] for i in mine] for mine in by_file.values()]
        self.reads.stored += sum(map(len, shares))
        self.reads.stored_bytes += sum(piece.place.size for share in shares for piece in share)
        read = _decoders().map(self._stored_bytes, shares) if len(shares) > 1 else map(self._stored_bytes, shares)
        for mine, of_file in zip(by_file.values(), read, strict=True):
            for i, data in zip(mine, of_file, strict=True):
                found[i] = data
        return [data for data in found if data is not None]

    def _stored_bytes(self, pieces: Sequence[IndexChunk]) -> list[bytes | IndexFault]:
        """The bytes of parts of chunks of one file."""
        try:
            read = self.store.read_many(pieces[0].segment, [(each.place.at, each.place.size) for each in pieces])
        except IndexFault as fault:
            return [fault] * len(pieces)
        return [self._checked(*pair) for pair in zip(pieces, read, strict=True)]

    def _checked(self, piece: IndexChunk, data: bytes) -> bytes | IndexFault:
        try:
            check(data, piece.place, str(piece))
        except IndexFault as fault:
            return fault
        if self.disk is not None:
            self.disk.keep(self._key(piece), data)
        return data

    def _piece_from_disk(self, piece: IndexChunk) -> bytes | None:
        data = None if self.disk is None else self.disk.find(self._key(piece))
        if data is None or len(data) != piece.place.size or zlib.crc32(data) != piece.place.crc:
            return None
        self.reads.cached += 1
        self.reads.cached_bytes += len(data)
        return data

    def _from_disk(self, chunk: IndexChunk) -> Arrays | None:
        """The arrays of a chunk as it lies on disk; None where it does not, or is no chunk: the store has it."""
        data = None if self.disk is None else self.disk.find(self._key(chunk))
        if data is None:
            return None
        try:
            arrays = decode_chunk(data, f"{chunk}, in the disk cache")
        except IndexFault:
            return None
        self.reads.cached += 1
        self.reads.cached_bytes += len(data)
        return arrays

    def _decoded(self, chunk: IndexChunk, data: bytes | IndexFault) -> Arrays | IndexFault:
        if isinstance(data, IndexFault):
            return data
        try:
            arrays = decode_chunk(check(data, chunk.place, str(chunk)), str(chunk))
        except IndexFault as fault:
            return fault
        if self.disk is not None:
            self.disk.keep(self._key(chunk), encode_chunk(arrays, as_it_lies))
        return arrays

    def _key(self, chunk: IndexChunk) -> str:
        place = chunk.place
        return f"{self.store.location}/{chunk.segment}:{place.at}+{place.size}#{place.crc}"


@cache
def _decoders() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(DECODERS, thread_name_prefix="secateur-decoder")


os.register_at_fork(after_in_child=_decoders.cache_clear)  # a child has none of its threads
