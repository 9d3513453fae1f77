"""Where the column chunks of a row group lie in their file, and their pages: what a read of chosen rows needs.

Everything here was held against the footer, the OffsetIndex and the size of the file when it was made: chunks lie
inside the file, pages inside their chunk, in order and without overlap, and each holds a row. What contradicts itself
has no pages here, and is read whole.
Source: parquet.thrift, ColumnMetaData, PageEncodingStats, OffsetIndex.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from secateur.io.parquet.column_chunk import StoredChunk
from secateur.io.parquet.page_index import PageLocations
from secateur.io.parquet.row_selection import RowSelection

MAGIC_BYTES = 4  # at the start of a file


@dataclass(frozen=True, eq=False)
class ColumnLocations:
    """One column chunk."""

    start: int  # byte of the file, of the dictionary page if there is one
    size: int  # bytes
    codec: int
    value_count: int  # NULLs, and levels of empty lists, included
    uncompressed: int  # bytes of all pages with their headers
    dictionary: int  # bytes of the dictionary page with its header; 0 where there is none
    dictionary_pages: int  # so many data pages, the first ones, may need the dictionary
    pages: PageLocations | None  # None: not known

    @property
    def stop(self) -> int:
        """The byte behind the chunk."""
        return self.start + self.size


@dataclass(frozen=True, eq=False)
class ChunkLocations:
    """Some column chunks of a row group, by the ordinals of their leaves."""

    row_count: int
    chunks: Mapping[int, ColumnLocations]

    @property
    def has_pages(self) -> bool:
        """Whether the pages of all these chunks are known."""
        return all(chunk.pages is not None for chunk in self.chunks.values())

    @property
    def byte_count(self) -> int:
        """Compressed bytes of all these chunks."""
        return sum(chunk.size for chunk in self.chunks.values())

    def of(self, leaves: Collection[int]) -> ChunkLocations | None:
        """The same of some leaves alone; None where one of them is not here."""
        if not all(leaf in self.chunks for leaf in leaves):
            return None
        return ChunkLocations(self.row_count, {leaf: self.chunks[leaf] for leaf in leaves})


def chunk_layout(stored: StoredChunk, pages: PageLocations | None, file_size: int) -> ColumnLocations | None:
    """The layout of one chunk, with the pages that its OffsetIndex tells; None for one outside of its file."""
    start = stored.dictionary if 0 < stored.dictionary < stored.data else stored.data
    stop = start + stored.size
    if start < MAGIC_BYTES or stop > file_size or stored.data > stop:
        return None
    if min(stored.value_count, stored.uncompressed, stored.codec) < 0:
        return None
    if pages is not None and not _within(pages, start, stored.data, stop):
        pages = None
    # Some writers leave dictionary_page_offset out; their first data page then lies behind data_page_offset.
    first = stored.data if pages is None or not len(pages.offset) else int(pages.offset[0])
    n = 0 if pages is None else len(pages.rows)
    return ColumnLocations(
        start=start,
        size=stored.size,
        codec=stored.codec,
        value_count=stored.value_count,
        uncompressed=stored.uncompressed,
        dictionary=first - start,
        # A writer falls back from the dictionary once and for all, so the pages that need it come first; a read looks
        # at the encodings of its pages all the same.
        dictionary_pages=stored.by_dictionary if stored.page_count == n and 0 <= stored.by_dictionary <= n else n,
        pages=pages,
    )


def _within(pages: PageLocations, start: int, data: int, stop: int) -> bool:
    """Whether pages lie in their chunk, behind its dictionary."""
    if not len(pages.offset):
        return True
    first, last = int(pages.offset[0]), int(pages.offset[-1] + pages.size[-1])
    return data <= first and last <= stop and (start == data or first == data)


def selected_pages(pages: PageLocations, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Which pages hold a row of the ranges [start, stop), which ascend and do not overlap: bool of shape (n_pages,)."""
    begin, end = pages.first_row, pages.first_row + pages.rows
    return np.searchsorted(start, end, "left") > np.searchsorted(stop, begin, "right")


def selected_bytes(layout: ChunkLocations, rows: RowSelection) -> int:
    """Compressed bytes of the pages that hold some of the rows, with their dictionaries, over all chunks of a layout.

    Of a chunk whose pages are not known, all bytes.
    """
    return sum(_selected_bytes(chunk, rows) for chunk in layout.chunks.values())


def _selected_bytes(chunk: ColumnLocations, rows: RowSelection) -> int:
    if chunk.pages is None:
        return chunk.size
    chosen = selected_pages(chunk.pages, rows.start, rows.stop)
    dictionary = chunk.dictionary if chosen[: chunk.dictionary_pages].any() else 0
    return int(chunk.pages.size[chosen].sum()) + dictionary


def selected_count(layout: ChunkLocations, rows: RowSelection) -> int:
    """How many pages hold some of the rows, over all chunks whose pages are known."""
    known = (chunk.pages for chunk in layout.chunks.values() if chunk.pages is not None)
    return sum(int(np.count_nonzero(selected_pages(pages, rows.start, rows.stop))) for pages in known)
