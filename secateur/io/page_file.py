"""A Parquet file of one row group, put together in memory from pages of another file, copied byte for byte.

Every leaf column has the rows of its own pages in it, so it is decoded by itself: pages of different columns end at
different rows. The memory that one takes serves the next, and lists, structs and maps are put together of their leaves
once these were cut to the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import InvalidParquet
from secateur.io.chosen_pages import ChosenPages
from secateur.io.chosen_rows import ChosenRows
from secateur.io.head import MAGIC, ChunkPlace, Head, opened_small_file
from secateur.io.nested import joined
from secateur.io.page_header import PageHeader
from secateur.io.ranges import View


@dataclass(frozen=True, eq=False)
class ReadPages:
    """The bytes of chosen pages, and of the dictionary that they need."""

    chosen: ChosenPages
    data: Sequence[memoryview]
    headers: Sequence[PageHeader]
    dictionary: View  # empty where none is needed

    def only(self, i: int) -> ReadPages:
        """The i-th of the pages."""
        return ReadPages(self.chosen.only(i), self.data[i : i + 1], self.headers[i : i + 1], self.dictionary)


def decoded(head: Head, read: Mapping[int, ReadPages], rows: ChosenRows) -> pa.Table:
    """The rows of the top-level columns that some leaves make up, in the order of the file.

    Raises InvalidParquet where a column has another number of rows, and what pyarrow raises.
    """
    file = opened_small_file(small_file(head, read))
    found: dict[str, list[pa.ChunkedArray]] = {}
    for leaf, pages in read.items():
        table = rows.within(pages.chosen.cover, _decoded_leaf(file, leaf, pages))
        found.setdefault(table.column_names[0], []).append(table.column(0))
    schema = head.schema_of(found)
    return pa.Table.from_arrays([_whole(field.type, found[field.name]) for field in schema], schema=schema)


def require_readable(head: Head, leaf: int, pages: ReadPages) -> None:
    """Decode some pages by themselves. Raises what :func:`decoded` does."""
    _decoded_leaf(opened_small_file(small_file(head, {leaf: pages})), leaf, pages)


def small_file(head: Head, read: Mapping[int, ReadPages]) -> bytes:
    """A file of one row group with some pages; it says that it has one row more than any leaf can have."""
    parts: list[View] = [MAGIC]
    places: dict[int, ChunkPlace] = {}
    start = len(MAGIC)
    for leaf, pages in read.items():
        own = [pages.dictionary, *pages.data]
        size = sum(map(len, own))
        values = sum(header.value_count for header in pages.headers)
        places[leaf] = ChunkPlace(start, size, len(pages.dictionary), values, pages.chosen.chunk.codec)
        parts += own
        start += size
    rows = max(len(pages.chosen.cover) for pages in read.values())
    return b"".join([*parts, head.footer(rows + 1, places)])


def _decoded_leaf(file: pq.ParquetFile, leaf: int, pages: ReadPages) -> pa.Table:
    """A table of one column, of which only this leaf is there."""
    table = file.reader.read_row_group(0, column_indices=[leaf], use_threads=False)
    found, expected = len(table), len(pages.chosen.cover)
    if found != expected:
        raise InvalidParquet(f"{pages.chosen.place}: its pages hold {found} rows instead of {expected}")
    return table


def _whole(type_: pa.DataType, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """A column of its leaves."""
    return parts[0] if len(parts) == 1 else pa.chunked_array([joined(type_, [each.combine_chunks() for each in parts])])
