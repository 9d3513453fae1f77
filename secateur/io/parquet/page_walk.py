"""Find the pages of a column chunk by their own headers, for files without a page index.

Headers give the location of pages and, for flat columns or pages of version 2, their row counts. They are used only if
they are consistent: the pages fill the chunk to the byte, their value counts add up to the chunk's, and their row
counts to the row group's. For a repeated column in pages of version 1 rows are known only if one page has them all.
Source: parquet.thrift, PageHeader.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from secateur.errors import InvalidParquet
from secateur.io.parquet.column_chunk import StoredChunk
from secateur.io.parquet.location_codec import MOST_PAGES
from secateur.io.parquet.page_header import DICTIONARY_PAGE, PageHeader, page_header
from secateur.io.parquet.page_index import PageLocations
from secateur.io.parquet.schema import SchemaColumn
from secateur.io.storage.byte_ranges import LOCAL_GAP, LONGEST, read_ranges

_LOCAL_SPAN = 4 << 10  # bytes; a disk reads a memory page at once
_HEADERS = (256, 4 << 10, 64 << 10, 1 << 20)  # bytes searched for a header; bounds in it may be long


@dataclass
class _Window:
    """The bytes of a chunk, partly in memory."""

    file: pa.NativeFile
    stop: int  # the byte after the chunk
    gap: int
    begin: int = 0
    data: memoryview | bytes = b""

    def at(self, position: int, size: int) -> memoryview:
        """Return `size` bytes from a position on, fewer if the chunk ends."""
        end = min(position + size, self.stop)
        if not self.begin <= position <= end <= self.begin + len(self.data):
            span = LONGEST if self.gap > LOCAL_GAP else _LOCAL_SPAN
            length = min(max(size, span), self.stop - position)
            (data,) = read_ranges(self.file, [(position, length)], self.gap)
            self.begin, self.data = position, data
        return memoryview(self.data)[position - self.begin : end - self.begin]


def walked(
    file: pa.NativeFile, stored: StoredChunk, column: SchemaColumn, row_count: int, gap: int
) -> tuple[StoredChunk, PageLocations] | None:
    """Return the pages of a chunk in the file, and the chunk with its page counts; None if they are inconsistent.

    On an object store, recognised by `gap`, the chunk is read some megabytes at a time. Raises OSError.
    """
    start = stored.dictionary if 0 < stored.dictionary < stored.data else stored.data
    try:
        headers = _headers(_Window(file, start + stored.size, gap), start)
    except InvalidParquet:
        return None
    data = [(at, header) for at, header in headers if header.type != DICTIONARY_PAGE]
    if not data or any(header.type == DICTIONARY_PAGE for _, header in headers[1:]) or row_count <= 0:
        return None
    if sum(header.value_count for _, header in data) != stored.value_count:
        return None
    if max(header.uncompressed for _, header in headers) > stored.uncompressed:
        return None
    rows = _rows([header for _, header in data], column, row_count)
    if rows is None or min(rows) < 1 or sum(rows) != row_count:
        return None
    by_dictionary = max((i for i, (_, header) in enumerate(data, 1) if header.needs_dictionary), default=0)
    count = np.array(rows, np.int64)
    pages = PageLocations(
        np.array([at for at, _ in data], np.int64),
        np.array([header.size + header.compressed for _, header in data], np.int64),
        np.cumsum(count) - count,
        count,
    )
    return replace(stored, by_dictionary=by_dictionary, page_count=len(data)), pages


def _headers(window: _Window, start: int) -> list[tuple[int, PageHeader]]:
    """Return the start and header of every page of a chunk. Raises InvalidParquet if they do not fill the chunk."""
    headers: list[tuple[int, PageHeader]] = []
    position = start
    while position < window.stop:
        header = _header(window, position)
        headers.append((position, header))
        position += header.size + header.compressed
        if len(headers) > MOST_PAGES:
            raise InvalidParquet(f"more than {MOST_PAGES} pages")
    if position != window.stop:
        raise InvalidParquet("the last page does not end where its chunk does")
    return headers


def _header(window: _Window, position: int) -> PageHeader:
    """Read the header at a position, trying few bytes first, because most headers are short."""
    for size in _HEADERS:
        data = window.at(position, size)
        try:
            return page_header(data)
        except InvalidParquet:
            if len(data) < size:  # the chunk ends here
                raise
    raise InvalidParquet(f"a page header of more than {_HEADERS[-1]} bytes")


def _rows(headers: list[PageHeader], column: SchemaColumn, row_count: int) -> list[int] | None:
    """Return the rows of every page; None if unknown."""
    if not column.repetition:
        if any(header.row_count not in (None, header.value_count) for header in headers):
            return None
        return [header.value_count for header in headers]
    counts = [header.row_count for header in headers if header.row_count is not None]
    if len(counts) == len(headers):
        return counts
    return [row_count] if len(headers) == 1 else None
