"""Select the pages of one column chunk that hold selected rows, and check their bytes after they are read.

Before a page is decoded, its header is checked against the page locations: its length, its kind, its row count, and
that it takes no more memory than its bytes can expand to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from secateur.errors import InvalidParquet
from secateur.io.parquet.chunk_locations import ColumnLocations, selected_pages
from secateur.io.parquet.page_header import DICTIONARY_PAGE, PageHeader, page_header
from secateur.io.parquet.page_index import PageLocations
from secateur.io.parquet.row_selection import RowSelection, merged
from secateur.io.parquet.schema import SchemaColumn
from secateur.io.storage.byte_ranges import Range, View
from secateur.ragged import runs_of

# Maximum expansion of a byte, by CompressionCodec: Snappy copies 64 bytes by 3, LZ4 adds up to 255 with each byte,
# DEFLATE has codes of 258 bytes in 2 bits, ZSTD blocks of 128 KiB in 4 bytes. Brotli has no such limit.
_NONE, _SNAPPY, _GZIP, _LZ4, _ZSTD, _LZ4_RAW = 0, 1, 2, 5, 6, 7
_MOST_GROWTH = {_NONE: 1, _SNAPPY: 32, _GZIP: 1100, _LZ4: 256, _ZSTD: 1 << 15, _LZ4_RAW: 256}
_LEAST_SIZE = 1 << 17  # uncompressed bytes that any page may have


Page: TypeAlias = tuple[memoryview, PageHeader]  # all its bytes


@dataclass(frozen=True, eq=False)
class PageSelection:
    """The pages of a chunk that are read for some rows."""

    place: str  # file, row group and column, for errors
    column: SchemaColumn
    chunk: ColumnLocations
    pages: PageLocations  # all pages of the chunk
    number: np.ndarray  # of the selected pages, ascending
    cover: RowSelection  # all rows of these pages
    ranges: Sequence[Range]  # of bytes; consecutive pages are one range

    @property
    def byte_count(self) -> int:
        """Bytes of the pages, and of the dictionary if it is likely to be needed."""
        return sum(size for _, size in self.ranges) + (self.chunk.dictionary if self.is_dictionary_likely else 0)

    @property
    def dictionary(self) -> Range:
        """The byte range of the dictionary page."""
        return self.chunk.start, self.chunk.dictionary

    @property
    def is_dictionary_likely(self) -> bool:
        """Whether some of the pages are recorded to need the dictionary."""
        return bool(self.chunk.dictionary) and int(self.number[0]) < self.chunk.dictionary_pages

    def checked(self, data: Iterator[View]) -> list[Page]:
        """Return the pages from the bytes of their ranges. Raises InvalidParquet."""
        checked_pages: list[Page] = []
        sizes, rows = self.pages.size[self.number].tolist(), self.pages.rows[self.number].tolist()
        for _ in self.ranges:
            run, at = memoryview(next(data)), 0
            while at < len(run):
                page = run[at : at + sizes[len(checked_pages)]]
                try:
                    checked_pages.append((page, self._header(page, rows[len(checked_pages)])))
                except InvalidParquet as error:
                    raise self.trouble(len(checked_pages), error) from None
                at += len(page)
        return checked_pages

    def _header(self, data: memoryview, rows: int) -> PageHeader:
        header = page_header(data)
        if header.type == DICTIONARY_PAGE:
            raise InvalidParquet("a dictionary page where a data page should be")
        self._require_sizes(header, len(data))
        count = header.row_count if self.column.repetition else header.value_count
        if count is not None and count != rows:
            raise InvalidParquet(f"it says that it has {count} rows instead of {rows}")
        if header.value_count < rows or header.value_count > self.chunk.value_count:
            raise InvalidParquet(
                f"it says that it has {header.value_count} values for {rows} rows, "
                f"its whole column chunk {self.chunk.value_count}"
            )
        return header

    def require_dictionary(self, data: memoryview) -> None:
        """Raise InvalidParquet if the bytes are not one dictionary page."""
        try:
            header = page_header(data)
            if header.type != DICTIONARY_PAGE:
                raise InvalidParquet("a data page where the dictionary page should be")
            self._require_sizes(header, len(data))
            if header.value_count > header.uncompressed:  # every entry takes at least a byte
                raise InvalidParquet(f"it says that it has {header.value_count} entries in {header.uncompressed} bytes")
        except InvalidParquet as error:
            raise InvalidParquet(f"{self.place}, the dictionary page: {error}") from None

    def _require_sizes(self, header: PageHeader, size: int) -> None:
        if header.size + header.compressed != size:
            raise InvalidParquet(f"it says that it has {header.size + header.compressed} bytes instead of {size}")
        growth = _MOST_GROWTH.get(self.chunk.codec)
        most = self.chunk.uncompressed if growth is None else growth * header.compressed + _LEAST_SIZE
        if header.uncompressed > most:
            raise InvalidParquet(
                f"it says that it has {header.uncompressed} bytes uncompressed, of {header.compressed} in the file, "
                f"which can be {most} at most"
            )

    def only(self, i: int) -> PageSelection:
        """Return the i-th page only."""
        return _chosen(self.place, self.column, self.chunk, self.pages, self.number[i : i + 1])

    def trouble(self, i: int, error: Exception) -> InvalidParquet:
        """Return an error that names the i-th page."""
        page = int(self.number[i])
        first, rows = int(self.pages.first_row[page]), int(self.pages.rows[page])
        return InvalidParquet(f"{self.place}, page {page} (rows {first:,} to {first + rows - 1:,}): {error}")


def chosen_pages(place: str, column: SchemaColumn, chunk: ColumnLocations, rows: RowSelection) -> PageSelection:
    """Return the pages of a chunk that hold some of these rows; there are some, and the chunk's pages are known."""
    pages = chunk.pages
    assert pages is not None, "required of the caller"
    return _chosen(place, column, chunk, pages, selected_pages(pages, rows))


def _chosen(
    place: str, column: SchemaColumn, chunk: ColumnLocations, pages: PageLocations, number: np.ndarray
) -> PageSelection:
    """Return pages by their numbers."""
    first_row, offset = pages.first_row[number], pages.offset[number]
    end, stop = first_row + pages.rows[number], offset + pages.size[number]
    if len(number) == 1:
        range_ = int(offset[0]), int(pages.size[number[0]])
        return PageSelection(place, column, chunk, pages, number, RowSelection(first_row, end), [range_])
    first, last = runs_of(offset[1:] != stop[:-1], len(number))
    ranges = list(zip(offset[first].tolist(), (stop[last] - offset[first]).tolist(), strict=True))
    return PageSelection(place, column, chunk, pages, number, merged(first_row, end), ranges)
