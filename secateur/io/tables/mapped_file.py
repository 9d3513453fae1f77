"""A Parquet file whose columns are found by field id, seen through the table's schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.errors import InvalidParquet, NotInFile
from secateur.index.filters.parquet_bloom import NativeFilters
from secateur.index.model import IndexedColumn
from secateur.index.naming import Path
from secateur.index.zones import zonemap
from secateur.index.zones.page_statistics import PageTable
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.parquet.arrow_types import batch_of
from secateur.io.parquet.bloom_filter import no_filters
from secateur.io.parquet.row_selection import RowSelection
from secateur.io.tables.field_ids import MappedName, fields_by_id, has_ids, id_of, paths, with_mapped_ids
from secateur.io.tables.immutable_file import ImmutableFile
from secateur.io.tables.projection import absent, is_uuid, projected
from secateur.pruning.interval import RowValues
from secateur.pruning.predicate.variant_paths import column_of, is_variant_path, of_column
from secateur.values.kinds import ordered_kind


@dataclass(frozen=True)
class View:
    """How a table's files are read: its columns, and the values of columns that a file lacks."""

    schema: pa.Schema  # every field with its id
    defaults: Mapping[int, pa.Scalar] = field(default_factory=dict)  # initial defaults, by id
    from_partitions: frozenset[int] = frozenset()  # columns whose value partitions may give for files that lack them
    mapping: Mapping[str, MappedName] | None = None  # for files without ids
    by_name: bool = False  # the mapping is for all files, whatever ids they have
    without_ids: str = "set its property schema.name-mapping.default"  # what to do about files that cannot be mapped

    @cached_property
    def ids(self) -> dict[Path, tuple[int, ...]]:
        """The ids along the path of every column."""
        return dict(paths(self.schema))

    @cached_property
    def fields(self) -> dict[int, pa.Field]:
        """The columns by id."""
        return fields_by_id(self.schema)


@dataclass(frozen=True, eq=False)
class MappedFile(ImmutableFile):
    """An open data file; see :class:`secateur.io.tables.file_source.OpenedFile`."""

    view: View
    constants: Mapping[int, pa.Scalar] | None = None  # partition values by id; None: not loaded

    @property
    def schema(self) -> pa.Schema:
        """The table's schema."""
        return self.view.schema

    @cached_property
    def stored(self) -> pa.Schema:
        """The file's own schema with ids. Raises InvalidParquet if the ids cannot be determined."""
        schema = self.rows.head.schema
        if not len(schema) or (has_ids(schema) and not self.view.by_name):
            return schema
        if self.view.mapping is None:
            raise InvalidParquet(
                f"the columns of {self.path} have no field ids, and the table has no name mapping: "
                f"{self.view.without_ids}"
            )
        return with_mapped_ids(schema, self.view.mapping)

    def stored_path(self, path: Path) -> Path | None:
        """Return the file's path of a table column; None if the file lacks it."""
        fields, names = list(self.stored), []
        for number in self.view.ids[path]:
            child = next((field for field in fields if id_of(field) == number), None)
            if child is None:
                return None
            names.append(child.name)
            fields = list(child.type) if pa.types.is_struct(child.type) else []
        return tuple(names)

    def zone_map(self, path: Path, type_: pa.DataType) -> ZoneMap:
        """Return the zone map of a column over the row groups, from the footer only."""
        if is_variant_path(path):
            variant = self.stored_path(column_of(path))
            if variant is None:
                return self._absent_variant(column_of(path), type_)
            return self.source.zone_map(of_column(path, variant), type_)
        stored = self.stored_path(path)
        if stored is None:
            return self._absent(path, type_)
        kind = ordered_kind(type_)
        if is_uuid(self._field(path)):
            return zonemap.unknown(kind, len(self.row_count))
        return self.source.zone_map(stored, type_)

    def _absent_variant(self, path: Path, type_: pa.DataType) -> ZoneMap:
        """Return the zone map of values at a path into a VARIANT that the file lacks: NULL, as far as that is known."""
        kind = ordered_kind(type_)
        if self._has_no_other_source(self.view.ids[path]):
            return zonemap.all_null(kind, self.row_count)
        return zonemap.unknown(kind, len(self.row_count))

    def _has_no_other_source(self, ids: Sequence[int]) -> bool:
        """Return whether no default and no partition gives the values of columns with these ids."""
        return self.view.from_partitions.isdisjoint(ids) and self.view.defaults.keys().isdisjoint(ids)

    def _absent(self, path: Path, type_: pa.DataType) -> ZoneMap:
        """Return the zone map of a column that the file lacks: NULL, unless a default or partition may give a value."""
        kind, ids = ordered_kind(type_), self.view.ids[path]
        if self._has_no_other_source(ids):
            return zonemap.all_null(kind, self.row_count)
        if len(ids) > 1 or ids[0] in self.view.from_partitions:
            return zonemap.unknown(kind, len(self.row_count))
        none = np.zeros(len(self.row_count), np.int64)
        values = absent(pa.field("", type_, metadata=self.view.fields[ids[0]].metadata), len(none), self.view.defaults)
        return zonemap.from_bounds(type_, values, values, none, none, self.row_count)

    def pages(self, zone_maps: Mapping[IndexedColumn, ZoneMap]) -> dict[IndexedColumn, PageTable]:
        """Return the pages of those columns that have a page index in every row group."""
        columns = {
            IndexedColumn(stored, column.type): column
            for column in zone_maps
            if (stored := self.stored_path(column.path)) is not None and not is_uuid(self._field(column.path))
        }
        pages_of = self.source.pages({stored: zone_maps[column] for stored, column in columns.items()})
        return {columns[stored]: pages for stored, pages in pages_of.items()}

    def native_filters(self, path: Path, type_: pa.DataType, fpr: float) -> NativeFilters:
        """Return the file's own bloom filters of a column."""
        stored = self.stored_path(path)
        if stored is None or is_uuid(self._field(path)):
            return no_filters(len(self.row_count), "the file does not have the column as the table does")
        return self.source.native_filters(stored, type_, fpr)

    def _field(self, path: Path) -> pa.Field:
        return self.view.fields[self.view.ids[path][-1]]

    def read(self, row_group: int, fields: Sequence[pa.Field]) -> Iterator[pa.RecordBatch]:
        """Yield all rows of a row group; see :meth:`read_selected`."""
        return self.read_selected((row_group,), fields)

    def values_at_path(self, row_group: int, path: Path) -> Iterator[RowValues]:
        """Yield the values at a path into a VARIANT column on all rows of a row group.

        Raises NotInFile if the file lacks the column.
        """
        variant = self.stored_path(column_of(path))
        if variant is None:
            raise NotInFile(f"{self.path} lacks the VARIANT column")
        yield from self.source.values_at_path(row_group, of_column(path, variant))

    def read_selected(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of some row groups, or all: top-level columns, matched by field id.

        Raises NotInFile if only the partition has their values, OldCalendar, StalePlan, InvalidParquet.
        """
        if self.constants is None:
            self._require_stored(fields)
        stored_fields = {id_of(field): field for field in self.stored}
        values = {**self.view.defaults, **(self.constants or {})}
        kept = self.names([field for field in fields if pa.types.is_dictionary(field.type)])
        for batch in self.rows.batches(row_groups, self.names(fields), rows, kept):
            arrays = [
                projected(batch.column(stored_fields[id_of(field)].name), stored_fields[id_of(field)], field, values)
                if id_of(field) in stored_fields
                else absent(field, batch.num_rows, values)
                for field in fields
            ]
            self.rows.require_todays_calendar(arrays)
            yield batch_of(arrays, fields) if fields else batch

    def names(self, fields: Sequence[pa.Field]) -> list[str]:
        """Return the file's names of those columns that it has."""
        stored = {id_of(field): field.name for field in self.stored}
        return [stored[id_of(field)] for field in fields if id_of(field) in stored]

    def _require_stored(self, fields: Sequence[pa.Field]) -> None:
        """Raise NotInFile if the file lacks a column, or a part of one, whose value its partition may give."""
        roots = {field.name for field in fields}
        for path, ids in self.view.ids.items():
            if path[0] in roots and not self.view.from_partitions.isdisjoint(ids) and self.stored_path(path) is None:
                raise NotInFile(f"{self.path} lacks the column {'.'.join(path)}, which its partition may give")
