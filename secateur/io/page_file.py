"""A Parquet file of one row group, put together in memory from pages of another file, copied byte for byte.

Pages of different columns end at different rows. Columns that are decoded together have to have the same rows: one
whose chosen pages do not reach as far as those of another is filled up with pages of NULLs, a few bytes for any number
of rows; what they stand for is never part of the answer. Pages of both versions and filling ones mix in one chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import InvalidParquet
from secateur.io.chosen_pages import ChosenPages
from secateur.io.chosen_rows import ChosenRows, merged
from secateur.io.head import MAGIC, ChunkPlace, Head, opened_small_file
from secateur.io.nested import has_fixed_lists, joined
from secateur.io.page_header import PageHeader, null_page
from secateur.io.parquet_schema import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    INT96,
    Column,
)
from secateur.io.ranges import View

_WIDTH = {INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8, BYTE_ARRAY: 4}  # of a PLAIN zero, or an empty text


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


@dataclass(frozen=True, eq=False)
class Unit:
    """Leaves that are decoded in one go, over the same rows."""

    leaves: Sequence[int]
    cover: ChosenRows


def decoded(head: Head, read: Mapping[int, ReadPages], rows: ChosenRows) -> pa.Table:
    """The rows of the top-level columns that some leaves make up, in the order of the file.

    Raises InvalidParquet where a column has another number of rows, and what pyarrow raises.
    """
    planned = units(head, {leaf: each.chosen for leaf, each in read.items()})
    file = opened_small_file(small_file(head, planned, read))
    found: dict[str, list[pa.ChunkedArray]] = {}
    for unit in planned:
        table = rows.within(unit.cover, _read(file, unit))
        for name, column in zip(table.column_names, table.columns, strict=True):
            found.setdefault(name, []).append(column)
    schema = head.schema_of(found)
    return pa.Table.from_arrays([_whole(field.type, found[field.name]) for field in schema], schema=schema)


def require_readable(head: Head, leaf: int, page: ReadPages) -> None:
    """Decode one page by itself. Raises what :func:`decoded` does."""
    unit = Unit([leaf], merged(*page.chosen.reach))
    _read(opened_small_file(small_file(head, [unit], {leaf: page})), unit)


def units(head: Head, chosen: Mapping[int, ChosenPages]) -> list[Unit]:
    """How leaves are decoded: in one go, but for the columns that cannot be filled up, leaf by leaf over its own pages.

    Sibling leaves under a repeated node are such: on rows of which only one has the values, their lists have other
    lengths. So are lists of a fixed size, because NULL has another, and texts of a fixed length that are never NULL.
    """
    roots: dict[bytes, list[int]] = {}
    for leaf in chosen:
        roots.setdefault(head.columns[leaf].names[0], []).append(leaf)
    filled = [leaf for own in roots.values() if _is_filled(head, own) for leaf in own]
    alone = [leaf for leaf in chosen if leaf not in filled]
    return [_unit(each, chosen) for each in ([filled] if filled else []) + [[leaf] for leaf in alone]]


def _unit(leaves: Sequence[int], chosen: Mapping[int, ChosenPages]) -> Unit:
    """Leaves over the rows from the first to the last page that any range needs of any of them."""
    starts, stops = zip(*(chosen[leaf].reach for leaf in leaves), strict=True)
    return Unit(leaves, merged(np.minimum.reduce(starts), np.maximum.reduce(stops)))


def _is_filled(head: Head, own: Sequence[int]) -> bool:
    """Whether the leaves of a top-level column can be filled up."""
    columns = [head.columns[leaf] for leaf in own]
    if any(column.physical == FIXED_LEN_BYTE_ARRAY and not column.definition for column in columns):
        return False
    if not any(column.repetition for column in columns):
        return True
    return len(own) == 1 and not has_fixed_lists(head.schema.field(columns[0].names[0].decode()).type)


def small_file(head: Head, planned: Sequence[Unit], read: Mapping[int, ReadPages]) -> bytes:
    """A file of one row group with the chosen pages; it says that it has one row more than any unit can have."""
    parts: list[View] = [MAGIC]
    places: dict[int, ChunkPlace] = {}
    position = len(MAGIC)
    for unit in planned:
        for leaf in unit.leaves:
            own, values = _chunk(head.columns[leaf], read[leaf], unit.cover)
            size = sum(map(len, own))
            codec, dictionary = read[leaf].chosen.chunk.codec, len(read[leaf].dictionary)
            places[leaf] = ChunkPlace(position, size, dictionary, values, codec)
            parts += own
            position += size
    rows = max(len(unit.cover) for unit in planned)
    return b"".join([*parts, head.footer(rows + 1, places)])


def _chunk(column: Column, read: ReadPages, cover: ChosenRows) -> tuple[list[View], int]:
    """A chunk of chosen pages, and filling ones where the cover goes beyond them; and how many values it has."""
    pages, number = read.chosen.pages, read.chosen.number
    starts, rows = pages.first_row[number].tolist(), pages.rows[number].tolist()
    parts: list[View] = [read.dictionary] if read.dictionary else []
    values = sum(header.value_count for header in read.headers)
    page = 0
    for begin, end in zip(cover.start.tolist(), cover.stop.tolist(), strict=True):
        at = begin
        while at < end:
            is_page = page < len(starts) and starts[page] < end
            until = starts[page] if is_page else end
            if until > at:
                parts.append(_filling(column, until - at))
                values += until - at
            at = until
            if is_page:
                parts.append(read.data[page])
                at += rows[page]
                page += 1
    return parts, values


def _filling(column: Column, rows: int) -> bytes:
    """A page of so many rows of nothing: NULLs, or zeros of a column that has none."""
    plain = b"" if column.definition else _zeros(column, rows)
    return null_page(rows, column.definition, column.repetition, plain)


def _zeros(column: Column, rows: int) -> bytes:
    return bytes((rows + 7) // 8) if column.physical == BOOLEAN else bytes(rows * _WIDTH[column.physical])


def _read(file: pq.ParquetFile, unit: Unit) -> pa.Table:
    table = file.reader.read_row_group(0, column_indices=unit.leaves, use_threads=False)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if len(column) != len(unit.cover):
            raise InvalidParquet(f"the pages of column {name} hold {len(column)} rows instead of {len(unit.cover)}")
    return table


def _whole(type_: pa.DataType, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """A column of its leaves."""
    return parts[0] if len(parts) == 1 else pa.chunked_array([joined(type_, [each.combine_chunks() for each in parts])])
