"""A Parquet file of one row group, assembled in memory from pages that are copied byte for byte from another file.

Every leaf column holds the rows of its own pages, so columns whose pages end at different rows are decoded one by one.
The memory of one file is reused for the next. Lists, structs and maps are assembled from their leaves after these are
cut to the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import InvalidParquet
from secateur.io.parquet.file_metadata import MAGIC, ChunkPlace, FileMetadata, opened_small_file
from secateur.io.parquet.nested import joined
from secateur.io.parquet.page_selection import Page, PageSelection
from secateur.io.parquet.row_selection import RowSelection
from secateur.io.storage.byte_ranges import View


@dataclass(frozen=True, eq=False)
class ReadPages:
    """The bytes of selected pages, and of the dictionary that they need."""

    chosen: PageSelection
    pages: Sequence[Page]
    dictionary: View  # empty if none is needed

    def only(self, i: int) -> ReadPages:
        """Return the i-th page only."""
        return ReadPages(self.chosen.only(i), self.pages[i : i + 1], self.dictionary)


def decoded(head: FileMetadata, read: Mapping[int, ReadPages], rows: RowSelection) -> pa.Table:
    """Decode the rows of the top-level columns that some leaves make up, in file order.

    Raises InvalidParquet if a column has another number of rows, and any error of pyarrow.
    """
    file = opened_small_file(small_file(head, read))
    columns: dict[str, list[pa.ChunkedArray]] = {}
    for leaves in _in_step(head, read):
        table = rows.within(read[leaves[0]].chosen.cover, _decoded_leaves(file, leaves, read))
        for name, column in zip(table.column_names, table.columns, strict=True):
            columns.setdefault(name, []).append(column)
    schema = head.schema_of(columns)
    return pa.Table.from_arrays([_whole(field.type, columns[field.name]) for field in schema], schema=schema)


def _in_step(head: FileMetadata, read: Mapping[int, ReadPages]) -> list[list[int]]:
    """Group leaves that can be decoded together: columns that are not nested, and whose pages hold the same rows."""
    alike: dict[tuple[int, bytes, bytes], list[int]] = {}
    for leaf, pages in read.items():
        cover, column = pages.chosen.cover, head.columns[leaf]
        nested = leaf if column.repetition or len(column.names) > 1 else -1
        alike.setdefault((nested, cover.start.tobytes(), cover.stop.tobytes()), []).append(leaf)
    return list(alike.values())


def _decoded_leaves(file: pq.ParquetFile, leaves: Sequence[int], read: Mapping[int, ReadPages]) -> pa.Table:
    """Decode leaves whose pages hold the same rows; raises for the first that cannot be decoded separately."""
    rows = len(read[leaves[0]].chosen.cover)
    if len(leaves) > 1:
        with suppress(pa.ArrowException, OSError):
            table = file.reader.read_row_group(0, column_indices=leaves, use_threads=False)
            if all(len(column) == rows for column in table.columns):
                return table
    tables = [_decoded_leaf(file, leaf, read[leaf].chosen) for leaf in leaves]
    names = [table.column_names[0] for table in tables]
    return tables[0] if len(tables) == 1 else pa.Table.from_arrays([table.column(0) for table in tables], names=names)


def require_readable(head: FileMetadata, leaf: int, read: ReadPages) -> None:
    """Decode some pages separately, to check them. Raises as :func:`decoded`."""
    _decoded_leaf(opened_small_file(small_file(head, {leaf: read})), leaf, read.chosen)


def small_file(head: FileMetadata, read: Mapping[int, ReadPages]) -> bytes:
    """Build a file of one row group with some pages; it declares one row more than any leaf can have."""
    parts: list[View] = [MAGIC]
    places: dict[int, ChunkPlace] = {}
    start = len(MAGIC)
    for leaf, pages in read.items():
        contents = [pages.dictionary, *(page for page, _ in pages.pages)]
        size = sum(map(len, contents))
        values = sum(header.value_count for _, header in pages.pages)
        places[leaf] = ChunkPlace(start, size, len(pages.dictionary), values, pages.chosen.chunk.codec)
        parts += contents
        start += size
    rows = max(len(pages.chosen.cover) for pages in read.values())
    return b"".join([*parts, head.footer(rows + 1, places)])


def _decoded_leaf(file: pq.ParquetFile, leaf: int, chosen: PageSelection) -> pa.Table:
    """Decode a table of one column that has only this leaf."""
    table = file.reader.read_row_group(0, column_indices=[leaf], use_threads=False)
    if len(table) != len(chosen.cover):
        raise InvalidParquet(f"{chosen.place}: its pages hold {len(table)} rows instead of {len(chosen.cover)}")
    return table


def _whole(type_: pa.DataType, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Assemble a column from its leaves."""
    return parts[0] if len(parts) == 1 else pa.chunked_array([joined(type_, [part.combine_chunks() for part in parts])])
