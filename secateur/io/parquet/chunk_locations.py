"""Locations of a row group's column chunks and their pages, as needed to read selected rows.

Everything here has been checked against the footer, the OffsetIndex and the size of the file: chunks are inside the
file, pages inside their chunk, in order and without overlap, and every page holds a row. A chunk with contradictory
metadata has no pages here, and is read whole. Source: parquet.thrift, ColumnMetaData, PageEncodingStats, OffsetIndex.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from secateur.io.parquet.column_chunk import StoredChunk
from secateur.io.parquet.page_index import PageLocations
from secateur.io.parquet.row_selection import RowSelection
from secateur.ragged import spread

MAGIC_BYTES = 4  # at the start of a file


@dataclass(frozen=True, eq=False)
class ColumnLocations:
    """The location of one column chunk and its pages."""

    start: int  # byte offset in the file, of the dictionary page if there is one
    size: int  # bytes
    codec: int
    value_count: int  # including NULLs and levels of empty lists
    uncompressed: int  # bytes of all pages with their headers
    dictionary: int  # bytes of the dictionary page with its header; 0 if there is none
    dictionary_pages: int  # this many leading data pages may need the dictionary
    pages: PageLocations | None  # None: unknown

    @property
    def stop(self) -> int:
        """The byte after the chunk."""
        return self.start + self.size


@dataclass(frozen=True, eq=False)
class ChunkLocations:
    """Locations of some column chunks of a row group, by leaf ordinal."""

    row_count: int
    chunks: Mapping[int, ColumnLocations]

    @cached_property
    def has_pages(self) -> bool:
        """Whether the pages of all these chunks are known."""
        return all(chunk.pages is not None for chunk in self.chunks.values())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays in memory."""
        pages = [chunk.pages for chunk in self.chunks.values() if chunk.pages is not None]
        return sum(array.nbytes for of_chunk in pages for array in vars(of_chunk).values())

    @cached_property
    def byte_count(self) -> int:
        """Compressed bytes of all these chunks."""
        return sum(chunk.size for chunk in self.chunks.values())

    def of(self, leaves: Collection[int]) -> ChunkLocations | None:
        """Return the locations of some leaves only; None if one of them is missing."""
        if not all(leaf in self.chunks for leaf in leaves):
            return None
        return ChunkLocations(self.row_count, {leaf: self.chunks[leaf] for leaf in leaves})


def column_locations(stored: StoredChunk, pages: PageLocations | None, file_size: int) -> ColumnLocations | None:
    """Return the location of one chunk with the pages of its OffsetIndex; None for a chunk outside its file."""
    start = stored.dictionary if 0 < stored.dictionary < stored.data else stored.data
    stop = start + stored.size
    if start < MAGIC_BYTES or stop > file_size or stored.data > stop:
        return None
    if min(stored.value_count, stored.uncompressed, stored.codec) < 0:
        return None
    if pages is not None and not _within(pages, start, stored.data, stop):
        pages = None
    # Some writers omit dictionary_page_offset; their first data page is then after data_page_offset.
    first = stored.data if pages is None or not len(pages.offset) else int(pages.offset[0])
    n = 0 if pages is None else len(pages.rows)
    return ColumnLocations(
        start=start,
        size=stored.size,
        codec=stored.codec,
        value_count=stored.value_count,
        uncompressed=stored.uncompressed,
        dictionary=first - start,
        # A writer that falls back from the dictionary never returns to it, so the pages that need it come first. A read
        # checks the encodings of its pages regardless.
        dictionary_pages=stored.by_dictionary if stored.page_count == n and 0 <= stored.by_dictionary <= n else n,
        pages=pages,
    )


def _within(pages: PageLocations, start: int, data: int, stop: int) -> bool:
    """Return whether pages are inside their chunk, after its dictionary."""
    if not len(pages.offset):
        return True
    first, last = int(pages.offset[0]), int(pages.offset[-1] + pages.size[-1])
    return data <= first and last <= stop and (start == data or first == data)


def selected_pages(pages: PageLocations, rows: RowSelection) -> np.ndarray:
    """Return the numbers of the pages that hold some of the rows, ascending; the rows are rows of the pages."""
    first = pages.first_row.searchsorted(rows.start, "right") - 1  # a page begins where the one before ends
    last = pages.first_row.searchsorted(rows.stop, "left")
    if len(first) == 1:
        return np.arange(first[0], last[0])
    first[1:] = np.maximum(first[1:], last[:-1])
    return spread(first, np.maximum(last - first, 0))


def selected_bytes(locations: ChunkLocations, rows: RowSelection) -> int:
    """Return the compressed bytes of the pages that hold some of the rows, with their dictionaries, over all chunks.

    A chunk whose pages are unknown counts with all its bytes.
    """
    return selected_size(locations, rows)[0]


def selected_size(locations: ChunkLocations, rows: RowSelection) -> tuple[int, int]:
    """Return the bytes as :func:`selected_bytes`, and how many pages of chunks whose pages are known these are."""
    size = count = 0
    for chunk in locations.chunks.values():
        if chunk.pages is None:
            size += chunk.size
            continue
        chosen = selected_pages(chunk.pages, rows)
        count += len(chosen)
        size += int(chunk.pages.size[chosen].sum())
        size += chunk.dictionary if len(chosen) and chosen[0] < chunk.dictionary_pages else 0
    return size, count
