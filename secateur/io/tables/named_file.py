"""An open Parquet file of a table whose files are never written twice, with columns that have the table's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.index.filters.parquet_bloom import NativeFilters
from secateur.index.model import IndexedColumn
from secateur.index.naming import Path
from secateur.index.zones.page_statistics import PageTable
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.parquet.row_selection import RowSelection
from secateur.io.tables.immutable_file import ImmutableFile
from secateur.pruning.interval import RowValues


@dataclass(frozen=True, eq=False)
class NamedFile(ImmutableFile):
    """An open file whose columns have the table's names; see :class:`secateur.io.tables.file_source.OpenedFile`."""

    schema: pa.Schema  # the table's columns, with its types

    def zone_map(self, path: Path, type_: pa.DataType) -> ZoneMap:
        """Return the zone map of a column over the row groups, from the footer only."""
        return self.source.zone_map(path, type_)

    def pages(self, zone_maps: Mapping[IndexedColumn, ZoneMap]) -> dict[IndexedColumn, PageTable]:
        """Return the pages of those columns that have a page index in every row group."""
        return self.source.pages(zone_maps)

    def native_filters(self, path: Path, type_: pa.DataType, fpr: float) -> NativeFilters:
        """Return the file's own bloom filters of a column."""
        return self.source.native_filters(path, type_, fpr)

    def read(self, row_group: int, fields: Sequence[pa.Field]) -> Iterator[pa.RecordBatch]:
        """Yield all rows of a row group: top-level columns, in the table's types."""
        return self.read_selected((row_group,), fields)

    def values_at_path(self, row_group: int, path: Path) -> Iterator[RowValues]:
        """Yield the values at a path into a VARIANT column on all rows of a row group."""
        return self.source.values_at_path(row_group, path)

    def read_selected(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of some row groups, or all: top-level columns, in the table's types."""
        return self.rows.read(row_groups, fields, rows)

    def names(self, fields: Sequence[pa.Field]) -> list[str]:
        """Return the file's names of those columns that it has."""
        return self.rows.names(fields)
