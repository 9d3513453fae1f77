"""Page locations of a file's row groups, from its footer, page index and page headers, as an index stores them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from secateur.concurrency import at_once, in_turn
from secateur.errors import InvalidParquet
from secateur.index.zones.page_locations import UNKNOWN, FileLocations
from secateur.io.parquet.chunk_locations import ChunkLocations, ColumnLocations, column_locations
from secateur.io.parquet.column_chunk import Chunk
from secateur.io.parquet.footer import Footer
from secateur.io.parquet.location_codec import encode_locations
from secateur.io.parquet.page_index import PageLocations, read_pages
from secateur.io.parquet.page_walk import walked
from secateur.io.parquet.schema import SchemaColumn
from secateur.io.parquet.thrift import MalformedThrift, decode_struct
from secateur.io.storage.byte_ranges import LOCAL_GAP, READ_THREADS, Range, read_ranges


def file_locations(file: pa.NativeFile, footer: Footer, gap: int = LOCAL_GAP) -> FileLocations:
    """Return the encoded file metadata and page locations of an open file; see :func:`locations_of_file`. Raises
    OSError.
    """
    placed = np.where((footer.placed < 0).any(axis=0), UNKNOWN, footer.placed)
    return FileLocations(footer.head.data, placed, [*map(encode_locations, locations_of_file(file, footer, gap))])


def locations_of_file(file: pa.NativeFile, footer: Footer, gap: int = LOCAL_GAP) -> list[ChunkLocations]:
    """Return the page locations of every row group, for all leaves that do not require pyarrow's reader.

    All OffsetIndexes of the file are read at once. If a chunk has no usable one, its page headers are used, if they are
    consistent. On an object store, where `gap` is greater than that of a local disk, such chunks are read whole, many
    in parallel. Raises OSError.
    """
    chunks = [chunk for row_group in range(len(footer.row_count)) for chunk in footer.chunks(row_group)]
    indexes, leaves = _offset_indexes(file, chunks, gap), range(len(footer.head.columns))
    stated = [_stated(file, footer, row_group, leaves, indexes) for row_group in range(len(footer.row_count))]
    return [_completed(file, footer, row_group, locations, gap) for row_group, locations in enumerate(stated)]


def read_locations(
    file: pa.NativeFile, footer: Footer, row_group: int, leaves: Sequence[int], gap: int = LOCAL_GAP
) -> ChunkLocations:
    """Return the locations of some leaves of a row group, by ordinal, without those that only pyarrow can read.

    The pages of a leaf without a usable OffsetIndex are unknown. Raises OSError.
    """
    chunks = footer.chunks(row_group)
    indexes = _offset_indexes(file, [chunks[leaf] for leaf in leaves], gap)
    return _stated(file, footer, row_group, leaves, indexes)


def _stated(
    file: pa.NativeFile, footer: Footer, row_group: int, leaves: Sequence[int], indexes: dict[Range, bytes]
) -> ChunkLocations:
    """Return the locations of some leaves according to the footer and the OffsetIndexes."""
    rows, size, chunks = int(footer.row_count[row_group]), file.size(), {}
    for leaf in leaves:
        chunk = footer.chunks(row_group)[leaf]
        pages = _pages(chunk, indexes, rows, size)
        locations = None if chunk.stored is None else column_locations(chunk.stored, pages, size)
        if locations is not None:
            chunks[leaf] = locations
    return ChunkLocations(rows, chunks)


def _completed(
    file: pa.NativeFile, footer: Footer, row_group: int, locations: ChunkLocations, gap: int
) -> ChunkLocations:
    """Fill in pages that have no OffsetIndex from their headers, if these are consistent."""
    unknown = [leaf for leaf, chunk in locations.chunks.items() if chunk.pages is None]
    walk = partial(_walked, file, footer, row_group, footer.head.columns, gap)
    chunks = at_once(walk, unknown, READ_THREADS) if gap > LOCAL_GAP else in_turn(walk, unknown)
    completed = {leaf: chunk for leaf, chunk in zip(unknown, chunks, strict=True) if chunk is not None}
    return ChunkLocations(locations.row_count, {**locations.chunks, **completed})


def _walked(
    file: pa.NativeFile, footer: Footer, row_group: int, columns: tuple[SchemaColumn, ...], gap: int, leaf: int
) -> ColumnLocations | None:
    """Return the location of a chunk by its page headers; None if they are not consistent."""
    stored = footer.chunks(row_group)[leaf].stored
    assert stored is not None, "so it is for the leaves that have locations"
    walk = walked(file, stored, columns[leaf], int(footer.row_count[row_group]), gap)
    return None if walk is None else column_locations(*walk, file.size())


def _offset_indexes(file: pa.NativeFile, chunks: Sequence[Chunk], gap: int) -> dict[Range, bytes]:
    """Read the OffsetIndexes that lie in the file; none if their total length exceeds it."""
    size = file.size()
    places = [range_ for chunk in chunks if (range_ := chunk.offset_index) is not None and sum(range_) <= size]
    if sum(length for _, length in places) > size:
        return {}
    return dict(zip(places, map(bytes, read_ranges(file, places, gap)), strict=True))


def _pages(chunk: Chunk, indexes: dict[Range, bytes], rows: int, file_size: int) -> PageLocations | None:
    """Return the pages by the OffsetIndex of a chunk; None if it has no usable one."""
    data = None if chunk.offset_index is None else indexes.get(chunk.offset_index)
    if data is None:
        return None
    try:
        return read_pages(decode_struct(data), rows, file_size)
    except (MalformedThrift, InvalidParquet):
        return None
