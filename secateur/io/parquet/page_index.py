"""The page index of one leaf column: the locations of its pages, and statistics of their values.

The OffsetIndex gives the locations, so one that contradicts itself is not used at all. The ColumnIndex only describes
the contents, so one that contradicts the OffsetIndex leaves its pages with unknown bounds. Source: "Apache Parquet
format, ColumnIndex", parquet.thrift OffsetIndex, PageLocation, ColumnIndex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from secateur.io.parquet import thrift_fields as spec
from secateur.io.parquet.bounds import Bounds, bounds_of
from secateur.io.parquet.schema import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, Leaf, SchemaColumn
from secateur.io.parquet.thrift import Struct, ThriftField, optional_list, required, required_list


@dataclass(frozen=True, eq=False)
class PageIndex:
    """The data pages of one leaf, over all row groups of a file.

    Pages of row group g are ``[page_offsets[g], page_offsets[g + 1])``. A page of only NULLs has null bounds and its
    row count as null count.
    """

    page_offsets: npt.NDArray[np.int64]  # n_row_groups + 1
    first_row: npt.NDArray[np.int64]  # within the row group
    offset: npt.NDArray[np.int64]  # bytes from the start of the file
    size: npt.NDArray[np.int64]  # bytes as stored, page header included
    bounds: Bounds


@dataclass(frozen=True, eq=False)
class PageLocations:
    """The pages of one column chunk, from its OffsetIndex."""

    offset: npt.NDArray[np.int64]  # bytes from the start of the file
    size: npt.NDArray[np.int64]  # bytes, page header included
    first_row: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]  # per page


@dataclass(frozen=True, eq=False)
class PageStatistics:
    """The statistics of a ColumnIndex for the pages of one column chunk, not yet decoded."""

    lower: Sequence[bytes | None]
    upper: Sequence[bytes | None]
    null_count: npt.NDArray[np.int64]  # -1 = unknown
    nan_count: npt.NDArray[np.int64]  # as stated; -1 = unknown


def read_pages(offset_index: Struct, row_count: int, file_size: int) -> PageLocations | None:
    """Read the pages of a chunk of ``row_count`` rows; None if they contradict themselves or the file.

    Pages must start at row 0, hold a row each, follow one another in the file and lie inside it. Raises MalformedThrift
    for a field that is missing or of the wrong type.
    """
    locations = required_list(offset_index, spec.OffsetIndex.page_locations)
    offset = _column(locations, spec.PageLocation.offset)
    size = _column(locations, spec.PageLocation.compressed_page_size)
    first_row = _column(locations, spec.PageLocation.first_row_index)
    if not locations:
        return PageLocations(offset, size, first_row, first_row) if row_count == 0 else None
    # Limit the values first: differences of values near the ends of int64 could overflow.
    if min(offset.min(), size.min()) <= 0 or max(offset.max(), size.max()) > file_size:
        return None
    if first_row[0] != 0 or first_row.min() < 0 or first_row.max() >= row_count:
        return None
    stop = offset + size
    rows = np.diff(first_row, append=row_count)
    if rows.min() <= 0 or (stop[:-1] > offset[1:]).any() or stop[-1] > file_size:
        return None
    return PageLocations(offset, size, first_row, rows)


def _column(locations: Sequence[Struct], field: ThriftField[int]) -> npt.NDArray[np.int64]:
    return np.array([required(location, field) for location in locations], np.int64)


def read_page_statistics(column_index: Struct, column: SchemaColumn, pages: PageLocations) -> PageStatistics | None:
    """Read bounds and null counts per page; None if a list does not have one entry per page.

    Raises MalformedThrift for a field that is missing or of the wrong type.
    """
    null_page = required_list(column_index, spec.ColumnIndex.null_pages)
    lower = required_list(column_index, spec.ColumnIndex.min_values)
    upper = required_list(column_index, spec.ColumnIndex.max_values)
    null_count = optional_list(column_index, spec.ColumnIndex.null_counts)
    nan_count = optional_list(column_index, spec.ColumnIndex.nan_counts)
    lists = (null_page, lower, upper, null_count, nan_count)
    if any(values is not None and len(values) != len(pages.rows) for values in lists):
        return None
    # Writers that drop a long bound leave b"" in its place (ClickHouse/ClickHouse#103039). As a lower bound it still
    # holds; as an upper bound it would claim that the page has no value above the empty string.
    droppable = column.physical in (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)
    return PageStatistics(
        [None if null else value for value, null in zip(lower, null_page, strict=True)],
        [None if null or (droppable and not value) else value for value, null in zip(upper, null_page, strict=True)],
        _null_counts(np.array(null_page, bool), null_count, pages.rows),
        np.full(len(pages.rows), -1) if nan_count is None else np.array(nan_count, np.int64),
    )


def _null_counts(
    null_page: npt.NDArray[np.bool_], stated: list[int] | None, rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return NULLs per page: unknown if impossible, or if null_pages and null_counts contradict each other."""
    if stated is None:
        return np.where(null_page, rows, -1)
    counts = np.array(stated, np.int64)
    possible = (counts >= 0) & (counts <= rows) & ((counts == rows) == null_page)
    return np.where(possible, counts, -1)


def unknown_statistics(pages: PageLocations) -> PageStatistics:
    """Return statistics of pages about which nothing is known."""
    n = len(pages.rows)
    unknown = np.full(n, -1, np.int64)
    return PageStatistics([None] * n, [None] * n, unknown, unknown)


def assemble(
    column: SchemaColumn, leaf: Leaf, pages: Sequence[PageLocations], statistics: Sequence[PageStatistics]
) -> PageIndex:
    """Assemble the page index of a leaf, from one element per row group."""
    counts = np.array([0, *(len(chunk.rows) for chunk in pages)], np.int64)
    lower = [value for chunk in statistics for value in chunk.lower]
    upper = [value for chunk in statistics for value in chunk.upper]
    null_count, nan_count = (
        _concatenated([getattr(chunk, count) for chunk in statistics]) for count in ("null_count", "nan_count")
    )
    row_count = _concatenated([chunk.rows for chunk in pages])
    return PageIndex(
        page_offsets=np.cumsum(counts),
        first_row=_concatenated([chunk.first_row for chunk in pages]),
        offset=_concatenated([chunk.offset for chunk in pages]),
        size=_concatenated([chunk.size for chunk in pages]),
        bounds=bounds_of(column, leaf, (lower, upper), (null_count, nan_count), row_count),
    )


def _concatenated(arrays: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
