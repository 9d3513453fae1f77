"""The blocks to read, as arrays that go from the plan to the executors.

There is no Python object per block, and one per file only while the file is read: ten million blocks are a few arrays,
and a task has a few bytes per block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.arrays import binaries, from_numpy
from secateur.index.zones.page_locations import BlockLocations, unknown_locations
from secateur.io.parquet.row_group_reader import StoredRows
from secateur.io.parquet.row_selection import RowSelection
from secateur.io.tables.file_rows import FileBlocks
from secateur.io.tables.listing import Listing
from secateur.pruning.row_ranges import RowRanges, no_ranges
from secateur.ragged import offsets_of

_ZSTD = pa.Codec("zstd")
_PATH, _SIZE, _MODIFIED, _WITNESS, _OPTIONS = range(5)  # columns of the files
_COUNT = pa.field("count", pa.int32())
_BLOCKS = pa.schema([("row_group", pa.int32()), ("residual", pa.int32()), ("ranges", pa.int32())])
_LOCATIONS = pa.schema([("head", pa.int32()), ("locations", pa.large_binary())])
_HEADS = pa.schema([("head", pa.large_binary())])
_RANGES = pa.schema([("start", pa.int64()), ("stop", pa.int64())])


@dataclass(frozen=True, eq=False)
class BlockList:
    """Row groups ordered by file and position in the file; file f has the blocks [first[f], first[f + 1])."""

    files: pa.RecordBatch  # a row per file: path, size, modification time, reader options
    first: np.ndarray  # int64 of shape (n_files + 1,)
    row_group: np.ndarray  # int32 of shape (n_blocks,)
    residual: np.ndarray  # int32 of shape (n_blocks,), indices into the reader's residuals
    ranges: RowRanges  # rows that may match; empty for a block of which all rows may
    page_locations: BlockLocations | None = None  # page locations; None: readers use footers
    byte_count: float = math.inf  # about how many compressed bytes are to be read, if that is known

    def __len__(self) -> int:
        return len(self.row_group)

    def between(self, start: int, stop: int) -> BlockList:
        """Return the blocks [start, stop), which may begin and end within a file; only `first` is copied."""
        low = int(self.first.searchsorted(start, "right")) - 1
        high = int(self.first.searchsorted(stop, "left"))
        first = self.first[low : high + 1].clip(start, stop) - start
        return BlockList(
            self.files.slice(low, high - low),
            first,
            self.row_group[start:stop],
            self.residual[start:stop],
            self.ranges.between(start, stop),
            None if self.page_locations is None else self.page_locations.take(np.arange(start, stop)),
        )

    def by_file(self) -> Iterator[FileBlocks]:
        """Yield the reader's description of each file, created lazily."""
        for i in range(self.files.num_rows):
            path = self.files.column(_PATH)[i].as_py()
            blocks = slice(int(self.first[i]), int(self.first[i + 1]))
            options = self.files.column(_OPTIONS)[i]
            yield FileBlocks(
                path=path,
                size=self.files.column(_SIZE)[i].as_py(),
                stamp=self.files.column(_MODIFIED)[i].as_py(),
                witness=self.files.column(_WITNESS)[i].as_py(),
                row_groups=tuple(self.row_group[blocks].tolist()),
                residual=tuple(self.residual[blocks].tolist()),
                rows=tuple(self._rows(block) for block in range(blocks.start, blocks.stop)),
                options=dict(options) if options.is_valid else {},
                stored=self._stored(blocks),
            )

    def _rows(self, block: int) -> RowSelection | None:
        begin, end = self.ranges.offsets[block : block + 2].tolist()
        return RowSelection(self.ranges.start[begin:end], self.ranges.stop[begin:end]) if begin < end else None

    def _stored(self, blocks: slice) -> StoredRows | None:
        """Return the index's page locations for blocks of one file, which share its file metadata."""
        if self.page_locations is None:
            return None
        known = dict(zip(self.row_group[blocks].tolist(), self.page_locations.blocks[blocks], strict=True))
        if not any(known.values()):
            return None
        return StoredRows(self.page_locations.heads[int(self.page_locations.head[blocks].max())], known)

    def to_bytes(self) -> bytes:
        """Encode as Arrow IPC messages, compressed together: files (schema, rows), blocks, ranges, locations, heads.

        Compressing Arrow's buffers one by one takes twice the time for a task of some hundred blocks.
        """
        count = pa.array(np.diff(self.first), pa.int32())
        files = pa.RecordBatch.from_arrays([*self.files.columns, count], schema=self.files.schema.append(_COUNT))
        counts = np.diff(self.ranges.offsets).astype(np.int32)
        blocks = pa.RecordBatch.from_arrays([*map(pa.array, (self.row_group, self.residual, counts))], schema=_BLOCKS)
        ranges = pa.RecordBatch.from_arrays([pa.array(self.ranges.start), pa.array(self.ranges.stop)], schema=_RANGES)
        messages = [
            files.schema.serialize(),
            files.serialize(),
            blocks.serialize(),
            ranges.serialize(),
            *self._location_messages(),
        ]
        data: bytes = _ZSTD.compress(b"".join(messages), asbytes=True)
        return data

    def _location_messages(self) -> list[pa.Buffer]:
        """Return the messages of the page locations; none if there are none."""
        if self.page_locations is None:
            return []
        head, blocks, heads = (
            pa.array(self.page_locations.head),
            binaries(self.page_locations.blocks),
            binaries(self.page_locations.heads),
        )
        return [
            pa.RecordBatch.from_arrays([head, blocks], schema=_LOCATIONS).serialize(),
            pa.RecordBatch.from_arrays([heads], schema=_HEADS).serialize(),
        ]

    @staticmethod
    def from_bytes(data: bytes) -> BlockList:
        """Decode the result of :meth:`to_bytes`."""
        stream = pa.CompressedInputStream(pa.BufferReader(data), "zstd")
        messages = pa.ipc.MessageReader.open_stream(stream)
        schema = pa.ipc.read_schema(messages.read_next_message())
        counted = pa.ipc.read_record_batch(messages.read_next_message(), schema)
        row_group, residual, counts = pa.ipc.read_record_batch(messages.read_next_message(), _BLOCKS).columns
        start, stop = pa.ipc.read_record_batch(messages.read_next_message(), _RANGES).columns
        ranges = RowRanges(offsets_of(counts.to_numpy()), start.to_numpy(), stop.to_numpy())
        page_locations = _locations_in(messages)
        *columns, count = counted.columns
        files = pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(schema)[:-1]))
        first = np.cumsum(np.append(0, count.to_numpy()), dtype=np.int64)
        return BlockList(files, first, row_group.to_numpy(), residual.to_numpy(), ranges, page_locations)


def _locations_in(messages: pa.ipc.MessageReader) -> BlockLocations | None:
    """Read page locations from the remaining messages; None if there are none."""
    try:
        message = messages.read_next_message()
    except (StopIteration, EOFError):
        return None
    head, blocks = pa.ipc.read_record_batch(message, _LOCATIONS).columns
    (heads,) = pa.ipc.read_record_batch(messages.read_next_message(), _HEADS).columns
    return BlockLocations(heads.to_pylist(), head.to_numpy(), unknown_locations(len(blocks)).placed, blocks.to_pylist())


def reading_order(file: np.ndarray, row_group: np.ndarray) -> np.ndarray:
    """Return the positions of blocks ordered by file, then row group: int64."""
    key = (file.astype(np.int64) << 32) | row_group
    if (key[1:] > key[:-1]).all():
        return np.arange(len(key))
    return np.argsort(key, kind="stable")  # a stable sort exploits the sorted runs of segments


def block_list(
    listing: Listing,
    options: pa.StructArray,
    file: np.ndarray,
    row_group: np.ndarray,
    residual: np.ndarray,
    ranges: RowRanges | None = None,
    page_locations: BlockLocations | None = None,
    byte_count: float = math.inf,
) -> BlockList:
    """Build a list of blocks in reading order, from the positions of their files in the listing.

    `options` has the reader options of every file with blocks. Without `ranges`, or if a block has no range there, all
    rows are read, about so many bytes.
    """
    starts = np.flatnonzero(np.diff(file, prepend=-1))
    ordinals = file[starts]
    numbers = (from_numpy(values[ordinals]) for values in (listing.size, listing.stamp, listing.witness))
    columns = [listing.paths.take(from_numpy(ordinals)), *numbers, options]
    return BlockList(
        pa.RecordBatch.from_arrays(columns, names=["path", "size", "stamp", "witness", "options"]),
        np.append(starts, len(file)),
        row_group.astype(np.int32, copy=False),
        residual.astype(np.int32),
        no_ranges(len(file)) if ranges is None else ranges,
        page_locations,
        byte_count,
    )
