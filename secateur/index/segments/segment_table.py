"""What a snapshot records about its segments: names, files, chunk locations and merged zone maps.

Segments come from a build (as summaries returned by its tasks) and from the previous snapshot (those that stay). Both
become :class:`Segments`, are mapped to the columns of the new snapshot, joined, and put in key order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from secateur.index.container.index_file import Place
from secateur.index.filters.bloom_fragment import BloomFragment
from secateur.index.filters.bloom_matrix import BloomMatrices, no_bloom_matrices
from secateur.index.identity import FileIdentity
from secateur.index.model import Filter, IndexedColumn, is_tuple_column
from secateur.index.segments.file_table import FileTable
from secateur.index.segments.segment_file import BLOCK_KINDS, BLOCKS, COLUMN_KINDS, FILTER_KINDS
from secateur.index.segments.segment_files import SegmentFiles
from secateur.index.zones import zonemap
from secateur.index.zones.zonemap import ZoneMap
from secateur.values.kinds import ordered_kind, same_keys

ChunkName = tuple[str, int]  # kind of chunk, number of its column or filter; -1 if it has neither
OF_BLOCKS: tuple[ChunkName, ...] = tuple((kind, -1) for kind in BLOCK_KINDS)
BLOCK_TABLE: ChunkName = (BLOCKS, -1)


@dataclass(frozen=True)
class SegmentSummary:
    """The result of a build task for a segment that it wrote: all that the driver ever sees of the segment."""

    name: str
    size: int
    row_count: int
    block_count: int
    files: Sequence[FileIdentity]
    file_counts: np.ndarray  # int64 of shape (n_files, 3): blocks, rows, bytes
    zone_maps: Sequence[ZoneMap]  # by column, one unit each
    places: Mapping[str, Place]  # locations of its chunks
    fragments: Mapping[int, Sequence[BloomFragment]]  # by filter: bloom fragments, which are merged into bloom matrices


@dataclass(frozen=True)
class Directory:
    """Where the chunks of one kind and column lie in their segment files: arrays of shape (n_segments,)."""

    at: np.ndarray  # int64
    size: np.ndarray  # int64; 0 where a segment has no such chunk
    crc: np.ndarray  # uint32

    def take(self, segments: np.ndarray) -> Directory:
        """Return the entries of the given segments."""
        return Directory(self.at[segments], self.size[segments], self.crc[segments])


@dataclass(frozen=True)
class Segments:
    """n segments with the same columns and filters."""

    columns: Sequence[IndexedColumn]
    filters: Sequence[Filter]
    name: Sequence[str]
    size: np.ndarray  # bytes of the file
    block_count: np.ndarray
    row_count: np.ndarray
    files: SegmentFiles
    directory: Mapping[ChunkName, Directory]
    zone_maps: Sequence[ZoneMap]  # by column, over the segments
    bloom_matrices: Mapping[int, BloomMatrices]  # by filter

    def __len__(self) -> int:
        return len(self.name)

    @property
    def stored_bytes(self) -> int:
        """Bytes of the segments' files and of those of their bloom matrices."""
        sizes = {
            name: size
            for matrices in self.bloom_matrices.values()
            for name, size in zip(matrices.file_name, matrices.file_size.tolist(), strict=True)
        }
        return int(self.size.sum()) + sum(sizes.values())

    def take(self, segments: np.ndarray) -> Segments:
        """Return the given segments, in that order."""
        if np.array_equal(segments, np.arange(len(self))):
            return self
        return Segments(
            self.columns,
            self.filters,
            [self.name[i] for i in segments.tolist()],
            self.size[segments],
            self.block_count[segments],
            self.row_count[segments],
            self.files.take(segments),
            {chunk: stored.take(segments) for chunk, stored in self.directory.items()},
            [zone_map.take(segments) for zone_map in self.zone_maps],
            {f: bloom_matrices.take(segments, len(self)) for f, bloom_matrices in self.bloom_matrices.items()},
        )

    def under(self, columns: Sequence[IndexedColumn], filters: Sequence[Filter]) -> Segments:
        """Map the segments to other columns and filters; those that they lack are unknown."""
        numbers = [self._number(column) for column in columns]
        directory = {chunk: self.directory[chunk] for chunk in OF_BLOCKS if chunk in self.directory}
        bloom_matrices = {}
        own_filters = [self._filter(filter_) for filter_ in filters]
        for kinds, own_numbers in ((COLUMN_KINDS, numbers), (FILTER_KINDS, own_filters)):
            for c, number in enumerate(own_numbers):
                for kind in kinds:
                    if number is not None and (kind, number) in self.directory:
                        directory[kind, c] = self.directory[kind, number]
        for f, number in enumerate(own_filters):
            if number is not None and number in self.bloom_matrices:
                bloom_matrices[f] = self.bloom_matrices[number]
        zone_maps = [
            zonemap.unknown(ordered_kind(column.type), len(self)) if number is None else self.zone_maps[number]
            for column, number in zip(columns, numbers, strict=True)
        ]
        return replace(
            self,
            columns=columns,
            filters=filters,
            directory=directory,
            zone_maps=zone_maps,
            bloom_matrices=bloom_matrices,
        )

    def _filter(self, wanted: Filter) -> int | None:
        """Return the number of this table's filter that is equal to `wanted` or serves for it."""
        for f, filter_ in enumerate(self.filters):
            if same_filter(filter_, wanted):
                return f
        return None

    def _number(self, column: IndexedColumn) -> int | None:
        """Return the number of this table's column whose keys serve for another."""
        for c, stored in enumerate(self.columns):
            if stored.path == column.path:
                return c if same_keys(stored.type, column.type) else None
        return None


def same_filter(a: Filter, b: Filter) -> bool:
    """Whether two filters hash equal values alike, so that one can replace the other."""
    return same_keys(a.type, b.type) and replace(a, type=b.type) == b


def summarised(
    columns: Sequence[IndexedColumn],
    filters: Sequence[Filter],
    summaries: Sequence[SegmentSummary],
    bloom_matrices: Mapping[int, BloomMatrices],
) -> Segments:
    """Build Segments from the summaries of build tasks and the bloom matrices of their filters."""
    files = [file for summary in summaries for file in summary.files]
    counts = np.concatenate([np.zeros((0, 3), np.int64), *(summary.file_counts for summary in summaries)])
    block_count, row_count, byte_count = (np.ascontiguousarray(counts[:, i]) for i in range(3))
    table = FileTable(
        pa.array([file.path for file in files], pa.large_string()),
        _integers([file.size for file in files]),
        _integers([file.stamp for file in files]),
        _integers([file.witness for file in files]),
        _integers([file.end for file in files]),
        block_count,
        row_count,
        byte_count,
        np.repeat(np.arange(len(summaries), dtype=np.int32), [len(summary.files) for summary in summaries]),
    )
    directory = {
        chunk: _directory([summary.places.get(written_name(chunk)) for summary in summaries])
        for chunk in chunk_names(columns, filters)
    }
    return Segments(
        columns,
        filters,
        [summary.name for summary in summaries],
        _integers([summary.size for summary in summaries]),
        _integers([summary.block_count for summary in summaries]),
        _integers([summary.row_count for summary in summaries]),
        SegmentFiles.of(table, len(summaries)),
        {chunk: stored for chunk, stored in directory.items() if stored.size.any() or chunk == BLOCK_TABLE},
        [_concat([s.zone_maps[c] for s in summaries], column) for c, column in enumerate(columns)],
        bloom_matrices,
    )


def chunk_names(columns: Sequence[IndexedColumn], filters: Sequence[Filter]) -> list[ChunkName]:
    """Return the chunks that segments with these columns and filters may have."""
    of_columns = [(kind, c) for c in range(len(columns)) for kind in COLUMN_KINDS]
    return [*OF_BLOCKS, *of_columns, *((kind, f) for f in range(len(filters)) for kind in FILTER_KINDS)]


def _concat(parts: Sequence[ZoneMap], column: IndexedColumn) -> ZoneMap:
    return zonemap.concat(parts) if parts else zonemap.unknown(ordered_kind(column.type), 0)


def written_name(chunk: ChunkName) -> str:
    """Return the name of a chunk in its segment file."""
    kind, number = chunk
    return kind if number < 0 else f"{kind}/{number}"


def chunk_name(written: str) -> ChunkName:
    """Return the chunk with a given name in segment files."""
    kind, _, number = written.partition("/")
    return kind, int(number) if number else -1


def _directory(places: Sequence[Place | None]) -> Directory:
    at, size, crc = zip(*(place or Place(0, 0, 0) for place in places), strict=True) if places else ((), (), ())
    return Directory(_integers(at), _integers(size), np.array(crc, np.uint32))


def _integers(values: Sequence[int]) -> np.ndarray:
    return np.array(values, np.int64)


def joined(first: Segments, second: Segments) -> Segments:
    """Concatenate two tables of segments with the same columns and filters."""
    chunks = {**first.directory, **second.directory}
    directory = {chunk: _beside(_places(first, chunk), _places(second, chunk)) for chunk in chunks}
    bloom_matrices = {
        f: first.bloom_matrices.get(f, no_bloom_matrices()).followed_by(
            second.bloom_matrices.get(f, no_bloom_matrices()), len(first)
        )
        for f in {**first.bloom_matrices, **second.bloom_matrices}
    }
    return Segments(
        first.columns,
        first.filters,
        [*first.name, *second.name],
        np.concatenate([first.size, second.size]),
        np.concatenate([first.block_count, second.block_count]),
        np.concatenate([first.row_count, second.row_count]),
        first.files.followed_by(second.files),
        directory,
        [zonemap.concat(pair) for pair in zip(first.zone_maps, second.zone_maps, strict=True)],
        bloom_matrices,
    )


def _places(segments: Segments, chunk: ChunkName) -> Directory:
    return segments.directory.get(chunk) or _directory([None] * len(segments))


def _beside(a: Directory, b: Directory) -> Directory:
    pairs = ((a.at, b.at), (a.size, b.size), (a.crc, b.crc))
    return Directory(*(np.concatenate(pair) for pair in pairs))


def in_key_order(segments: Segments, sort_key: Sequence[tuple[str, ...]]) -> Segments:
    """Sort segments by lower bound of the sort key (its tuples, or its first column); without one keep the order."""
    paths = [column.path for column in segments.columns]
    for path in [*(path for path in paths if is_tuple_column(path)), *sort_key[:1]]:
        if path in paths:
            lower = segments.zone_maps[paths.index(path)].lower
            return segments.take(np.lexsort(tuple(reversed(lower.words))))
    return segments
