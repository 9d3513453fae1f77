"""Read chunks of many segments at once: exact ranges, in parallel, each verified by its checksum."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Protocol

import numpy as np

from secateur.concurrency import Result, Wanted, at_once, in_turn
from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Range
from secateur.index.container.index_file import Place, as_it_lies, check, decode_chunk, encode_chunk
from secateur.index.model import Store
from secateur.pruning.report import Reads

DECODERS = min(8, os.cpu_count() or 1)
LEAST_SHARED = 16  # chunks; fewer are decoded in the calling thread
WAITING = 16  # threads of one call that wait for files of an object store

Arrays = list[np.ndarray]
_COUNTING = Lock()  # several threads of a plan read


class RangeCache(Protocol):
    """Keeps byte ranges of index files closer than the store; its own failures count as misses."""

    def find(self, key: str) -> bytes | None:
        """Return the bytes under a key, or None."""

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


@dataclass(eq=False)
class ChunkReader:
    """Reads chunks from a store, or from the local disk cache, which keeps them unencoded."""

    store: Store
    disk: RangeCache | None
    reads: Reads
    ahead: dict[IndexChunk, Arrays | IndexFault] = field(default_factory=dict)  # prefetched, not requested yet

    def read(self, chunks: Sequence[IndexChunk], along: Sequence[IndexChunk] = ()) -> list[Arrays | IndexFault]:
        """Return the arrays of every chunk, or its fault.

        If any must be read from the store, the chunks in `along` are prefetched with them.
        """
        arrays_of: dict[IndexChunk, Arrays | IndexFault | None] = {chunk: self.nearby(chunk) for chunk in chunks}
        missing = [chunk for chunk, arrays in arrays_of.items() if arrays is None]
        if missing:
            others = (chunk for chunk in along if chunk not in arrays_of and chunk not in self.ahead)
            missing += [chunk for chunk in dict.fromkeys(others) if not self._keep_ahead(chunk)]
        self.reads.stored += len(missing)
        self.reads.stored_bytes += sum(chunk.place.size for chunk in missing)
        for chunk, read in zip(missing, self._spread(missing), strict=True):
            if chunk in arrays_of:
                arrays_of[chunk] = read
            else:
                self.ahead[chunk] = read
        return [arrays for chunk in chunks if (arrays := arrays_of[chunk]) is not None]

    def nearby(self, chunk: IndexChunk) -> Arrays | IndexFault | None:
        """Return a chunk that was prefetched (handed out once) or is in the disk cache; None if it must be read."""
        return self.ahead.pop(chunk) if chunk in self.ahead else self._from_disk(chunk)

    def _keep_ahead(self, chunk: IndexChunk) -> bool:
        """Return whether a chunk is in the disk cache; if so, keep its arrays as prefetched."""
        arrays = self._from_disk(chunk)
        if arrays is not None:
            self.ahead[chunk] = arrays
        return arrays is not None

    def _spread(self, chunks: Sequence[IndexChunk]) -> list[Arrays | IndexFault]:
        """Read chunks from the store; if there are many, several threads read and decode a share each."""
        if len(chunks) < LEAST_SHARED:
            return self._stored(chunks)
        cuts = np.linspace(0, len(chunks), DECODERS + 1).astype(int).tolist()
        shares = [chunks[begin:end] for begin, end in pairwise(cuts)]
        return [arrays for share in _decoders().map(self._stored, shares) for arrays in share]

    def _stored(self, chunks: Sequence[IndexChunk]) -> list[Arrays | IndexFault]:
        wanted = [(chunk.segment, chunk.place.at, chunk.place.size) for chunk in chunks]
        return [self._decoded(*pair) for pair in zip(chunks, self.store.read_each(wanted), strict=True)]

    def read_ranges(self, segment: str, ranges: Sequence[Range]) -> list[bytes]:
        """Return the bytes of ranges of one segment file; the caller verifies their checksums. Raises IndexFault."""
        with _COUNTING:
            self.reads.stored += len(ranges)
            self.reads.stored_bytes += sum(size for _, size in ranges)
        return self.store.read_many(segment, ranges)

    def concurrently(self, read: Callable[[Wanted], Result], wanted: Sequence[Wanted]) -> list[Result]:
        """Return `read` of everything wanted, in order, where each reads another file.

        On an object store several threads wait for the files.
        """
        return in_turn(read, wanted) if self.store.is_local else at_once(read, wanted, WAITING)

    def read_bytes(self, parts: Sequence[IndexChunk]) -> list[bytes | IndexFault]:
        """Return the bytes of parts of chunks that have their own checksum, or the fault of each part.

        Parts of one file are read together, close ones in one request; several files are read by several threads.
        """
        contents: list[bytes | IndexFault | None] = [self._bytes_from_disk(part) for part in parts]
        by_file: dict[str, list[int]] = {}
        for i in (i for i, data in enumerate(contents) if data is None):
            by_file.setdefault(parts[i].segment, []).append(i)
        shares = [[parts[i] for i in numbers] for numbers in by_file.values()]
        self.reads.stored += sum(map(len, shares))
        self.reads.stored_bytes += sum(part.place.size for share in shares for part in share)
        read = _decoders().map(self._stored_bytes, shares) if len(shares) > 1 else map(self._stored_bytes, shares)
        for numbers, of_file in zip(by_file.values(), read, strict=True):
            for i, data in zip(numbers, of_file, strict=True):
                contents[i] = data
        return [data for data in contents if data is not None]

    def _stored_bytes(self, parts: Sequence[IndexChunk]) -> list[bytes | IndexFault]:
        """Return the bytes of parts of chunks of one file."""
        try:
            read = self.store.read_many(parts[0].segment, [(part.place.at, part.place.size) for part in parts])
        except IndexFault as fault:
            return [fault] * len(parts)
        return [self._checked(*pair) for pair in zip(parts, read, strict=True)]

    def _checked(self, part: IndexChunk, data: bytes) -> bytes | IndexFault:
        try:
            check(data, part.place, str(part))
        except IndexFault as fault:
            return fault
        if self.disk is not None:
            self.disk.keep(self._key(part), data)
        return data

    def _bytes_from_disk(self, part: IndexChunk) -> bytes | None:
        data = None if self.disk is None else self.disk.find(self._key(part))
        if data is None or len(data) != part.place.size or zlib.crc32(data) != part.place.crc:
            return None
        self.reads.cached += 1
        self.reads.cached_bytes += len(data)
        return data

    def _from_disk(self, chunk: IndexChunk) -> Arrays | None:
        """Return the arrays of a chunk from the disk cache; None if it is missing there or damaged."""
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


@dataclass(frozen=True)
class StoredFilters:
    """Filter files of a store, each with the size that it is known to have."""

    chunks: ChunkReader
    sizes: Mapping[str, int]

    def read(self, name: str, ranges: Sequence[Range]) -> list[bytes]:
        """Read ranges of a file. Raises IndexFault."""
        if any(at + count > self.sizes[name] for at, count in ranges):
            raise IndexFault(f"{name}: a filter lies outside the file")
        return self.chunks.read_ranges(name, ranges)

    def concurrently(self, read: Callable[[Wanted], Result], wanted: Sequence[Wanted]) -> list[Result]:
        """Return `read` of everything wanted, as :meth:`ChunkReader.concurrently` does."""
        return self.chunks.concurrently(read, wanted)


@cache
def _decoders() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(DECODERS, thread_name_prefix="secateur-decoder")


os.register_at_fork(after_in_child=_decoders.cache_clear)  # a forked child has none of the pool's threads
