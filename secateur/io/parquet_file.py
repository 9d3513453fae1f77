"""One Parquet file of a table: its statistics by the table's columns, and its row groups as Arrow data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from secateur.errors import InvalidParquet, OldCalendar, StalePlan
from secateur.index import zonemap
from secateur.index.layouts import FileLayouts
from secateur.index.model import IndexedColumn
from secateur.index.native import NativeFilters
from secateur.index.pages import PageTable, Places, page_row_counts
from secateur.index.zonemap import ZoneMap
from secateur.io.chosen_rows import ChosenRows, cut_out
from secateur.io.file_layouts import file_layouts
from secateur.io.footer import (
    Bounds,
    Footer,
    Leaf,
    PageIndex,
    chunk_bounds,
    read_footer,
    read_layout,
    read_page_index,
)
from secateur.io.layout import Layout, selected_bytes
from secateur.io.listed_file import ListedFile, vanished
from secateur.io.objects import ObjectFile, open_file
from secateur.io.page_reader import PageReader
from secateur.io.parquet_bloom import native_filters, no_filters
from secateur.io.ranges import LOCAL_GAP, Range, gap_of
from secateur.io.schema import conform, file_schema, spark_type
from secateur.io.shown import trouble
from secateur.values import is_float, ordered_kind, same_keys

BATCH_ROWS = 65_536
MOST_BY_PAGES = 0.5  # of the bytes of a row group's columns; where more is wanted, reading all of them costs less
_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_CALENDARS_AGREE = {  # from here on; source: RebaseDateTime.lastSwitchJulianDay, lastSwitchJulianTs
    pa.date32(): dt.date(1582, 10, 15),
    pa.timestamp("us", "UTC"): dt.datetime(1900, 1, 1, tzinfo=dt.UTC),
}


@dataclass(frozen=True, eq=False)
class ParquetSource:
    """An open Parquet file; errors name it."""

    path: str
    file: pa.NativeFile
    footer: Footer
    reader: pq.ParquetFile
    gap: int = LOCAL_GAP  # bytes; how far apart ranges of it may lie to be read together

    @property
    def row_count(self) -> np.ndarray:
        """Rows of every row group."""
        return self.footer.row_count

    @property
    def byte_count(self) -> np.ndarray:
        """Compressed bytes of every row group."""
        return self.footer.byte_count

    @cached_property
    def schema(self) -> pa.Schema:
        """The file's schema as Spark reads it."""
        return file_schema(self.reader)

    def zone_map(self, path: tuple[str, ...], type_: pa.DataType) -> ZoneMap:
        """The zone map of a column over the row groups, by the footer alone; NaN counts are unknown there."""
        kind = ordered_kind(type_)
        if self._type_of(path) is None:
            return zonemap.all_null(kind, self.row_count)
        leaf = self.leaf(path)
        if leaf is None:
            return zonemap.unknown(kind, len(self.row_count))
        nan_count = np.full(len(self.row_count), -1 if is_float(type_) else 0, np.int64)
        return self._zone_map(leaf, type_, chunk_bounds(self.footer, leaf), nan_count, self.row_count)

    def pages(self, zone_maps: Mapping[IndexedColumn, ZoneMap]) -> dict[IndexedColumn, PageTable]:
        """The pages of those columns that have a page index in every row group.

        `zone_maps` are those of the row groups: where a row group holds no NaN, neither do its pages.
        """
        columns = {leaf.path: column for column in zone_maps if (leaf := self.leaf(column.path)) is not None}
        leaves = [leaf for leaf in self.footer.leaves if leaf.path in columns]
        indexes = self._guarded_page_index(leaves)
        return {
            columns[leaf.path]: self._page_table(leaf, columns[leaf.path], indexes[leaf.path], zone_maps)
            for leaf in leaves
            if leaf.path in indexes
        }

    def layouts(self) -> FileLayouts:
        """What reads of single pages need of all row groups. Raises InvalidParquet."""
        try:
            return file_layouts(self.file, self.footer, self.gap)
        except OSError as error:
            raise trouble(f"cannot read {self.path}", error, InvalidParquet) from None

    def native_filters(self, path: tuple[str, ...], type_: pa.DataType, fpr: float) -> NativeFilters:
        """The file's own bloom filters of a column, of which a key of the table's type can be asked.

        A filter is folded as far as its false-positive rate stays within `fpr`. Where the file stores values of other
        keys (another scale, the calendar of Spark 2), it has no filters.
        """
        leaf = self.leaf(path)
        if leaf is None:
            return no_filters(len(self.row_count), "the file does not have the column outside of lists and maps")
        if not _keys_agree(spark_type(leaf.type), type_):
            return no_filters(len(self.row_count), f"the file has the column as {leaf.type}, the table as {type_}")
        if self._in_legacy_calendar(type_):
            return no_filters(len(self.row_count), "days and instants are of the calendar of Spark 2")
        return native_filters(self.file, self.footer, leaf, fpr)

    def _guarded_page_index(self, leaves: Sequence[Leaf]) -> dict[tuple[str, ...], PageIndex]:
        """The page index, or nothing where it is malformed: it is optional, and the blocks' bounds serve without."""
        try:
            return read_page_index(self.file, self.footer, leaves, self.gap)
        except InvalidParquet:
            return {}

    def _page_table(
        self, leaf: Leaf, column: IndexedColumn, index: PageIndex, zone_maps: Mapping[IndexedColumn, ZoneMap]
    ) -> PageTable:
        row_count = page_row_counts(index.page_offsets, index.first_row, self.row_count)
        nan_free = np.repeat(zone_maps[column].nan_count == 0, np.diff(index.page_offsets))
        nan_count = np.where(nan_free, 0, -1)
        zone_map = self._zone_map(leaf, column.type, index.bounds, nan_count, row_count)
        places = Places(index.offset, index.size)
        return PageTable(index.page_offsets, index.first_row, zone_map, places)

    def _zone_map(
        self, leaf: Leaf, type_: pa.DataType, bounds: Bounds, nan_count: np.ndarray, row_count: np.ndarray
    ) -> ZoneMap:
        n = len(row_count)
        known = bounds.lower.type != pa.null() and not self._in_legacy_calendar(type_)
        lower, upper = (bounds.lower, bounds.upper) if known else (pa.nulls(n, type_), pa.nulls(n, type_))
        return zonemap.from_bounds(type_, lower, upper, bounds.null_count, nan_count, row_count)

    def _in_legacy_calendar(self, type_: pa.DataType) -> bool:
        """Whether values of a type were written in the hybrid calendar, which Spark rebases when it reads."""
        return (pa.types.is_date(type_) or pa.types.is_timestamp(type_)) and self._has_legacy_calendar

    @cached_property
    def _has_legacy_calendar(self) -> bool:
        """Whether days and instants are of the hybrid calendar.

        Source: ``DataSourceUtils.datetimeRebaseSpec`` and ``int96RebaseSpec``.
        """
        version = self.footer.metadata.get(_SPARK_VERSION, b"").split(b".")[0]
        old = version.isdigit() and int(version) < 3
        return old or any(key in self.footer.metadata for key in _LEGACY_CALENDAR)

    def leaf(self, path: tuple[str, ...]) -> Leaf | None:
        """The leaf column of a path, whatever its case; None where it has none that is outside lists and maps."""
        folded = _folded(path)
        found = [leaf for leaf in self.footer.leaves if _folded(leaf.path) == folded]
        return next((leaf for leaf in found if leaf.path == path), found[0] if found else None)

    def _type_of(self, path: tuple[str, ...]) -> pa.DataType | None:
        """The type of a path in this file, or None where the file does not have it."""
        type_: pa.DataType = pa.struct(list(self.schema))
        for name in path:
            if not pa.types.is_struct(type_):
                return type_
            own = [f for f in type_ if f.name.lower() == name.lower()]
            if not own:
                return None
            type_ = next((f for f in own if f.name == name), own[0]).type
        return type_

    def read(
        self, row_group: int, fields: Sequence[pa.Field], rows: ChosenRows | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The chosen rows of a row group, or all: some top-level columns of the table, as batches of the table's types.

        Raises OldCalendar for days and instants that only Spark converts, StalePlan, InvalidParquet.
        """
        schema = pa.schema(fields)
        for batch in self.batches(row_group, self._own_names(fields), rows):
            arrays = conform(batch, fields)
            self.require_todays_calendar(arrays)
            yield pa.RecordBatch.from_arrays(arrays, schema=schema) if fields else batch

    def _own_names(self, fields: Sequence[pa.Field]) -> list[str]:
        """What the file calls some columns of the table, whatever their case."""
        wanted = {field.name.lower() for field in fields}
        return [name for name in self.reader.schema_arrow.names if name.lower() in wanted]

    def batches(self, row_group: int, names: Sequence[str], rows: ChosenRows | None = None) -> Iterator[pa.RecordBatch]:
        """The chosen rows of a row group, or all: some top-level columns of the file, as they are.

        Without any column, its rows as a batch of a column that is not the table's. Raises StalePlan, InvalidParquet.
        """
        if row_group >= self.reader.num_row_groups:
            raise StalePlan(
                f"the plan is stale: {self.path} has no row group {row_group}, so it has changed: plan again"
            )
        count = int(self.row_count[row_group])
        if not names:  # pyarrow gives no rows where it reads no column
            yield pa.RecordBatch.from_arrays([pa.nulls(count if rows is None else len(rows))], names=[""])
        elif rows is None or len(rows) == count:
            yield from self._all_batches(row_group, names)
        elif self._reads_pages(row_group, names, rows):
            for table in self.page_reader.read(row_group, names, rows):
                yield from table.to_batches(BATCH_ROWS)
        else:
            yield from cut_out(self._all_batches(row_group, names), rows)

    def _all_batches(self, row_group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        try:
            if isinstance(self.file, ObjectFile):
                self.file.read_ahead(self._chunks(row_group, names))
            yield from self.reader.iter_batches(BATCH_ROWS, row_groups=[row_group], columns=names, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise trouble(f"cannot read row group {row_group} of {self.path}", error, InvalidParquet) from None

    def _reads_pages(self, row_group: int, names: Sequence[str], rows: ChosenRows) -> bool:
        """Whether the chosen rows are read by their pages: these are known, and few enough of all."""
        layout = self._layout_of(row_group, names)
        if layout is None or not layout.has_pages:
            return False
        return selected_bytes(layout, rows) <= MOST_BY_PAGES * layout.byte_count

    def is_light(self, row_group: int, fields: Sequence[pa.Field], rows: ChosenRows | None) -> bool:
        """Whether the chosen values of some columns of the table are few bytes."""
        return self.is_light_by_name(row_group, self._own_names(fields), rows)

    def is_light_by_name(self, row_group: int, names: Sequence[str], rows: ChosenRows | None) -> bool:
        """Whether the chosen values of some top-level columns of the file are few bytes."""
        layout = self._layout_of(row_group, names)
        if layout is None:
            return False
        return (layout.byte_count if rows is None else selected_bytes(layout, rows)) <= self.gap

    def _layout_of(self, row_group: int, names: Sequence[str]) -> Layout | None:
        return self._layout(row_group, self.footer.head.leaves(names))

    def _layout(self, row_group: int, leaves: Sequence[int]) -> Layout | None:
        """Where some leaves of a row group lie; None where only pyarrow can tell, or nobody."""
        key = (row_group, tuple(leaves))
        if key not in self._layouts:
            try:
                self._layouts[key] = read_layout(self.file, self.footer, row_group, leaves, self.gap)
            except InvalidParquet:
                self._layouts[key] = None
        return self._layouts[key]

    @cached_property
    def _layouts(self) -> dict[tuple[int, tuple[int, ...]], Layout | None]:
        return {}

    @cached_property
    def page_reader(self) -> PageReader:
        """Reads those row groups of which a layout has all pages."""

        def layout(row_group: int, leaves: Sequence[int]) -> Layout:
            found = self._layout(row_group, leaves)
            assert found is not None
            return found

        return PageReader(self.path, self.file, self.footer.head, layout, self.gap)

    def _chunks(self, row_group: int, names: Sequence[str]) -> list[Range]:
        """Where the chunks of some top-level columns lie."""
        group = self.reader.metadata.row_group(row_group)
        chunks = (group.column(i) for i in range(group.num_columns))
        of_names = (chunk for chunk in chunks if f"{chunk.path_in_schema}.".startswith(tuple(f"{n}." for n in names)))
        return [(_start(chunk), chunk.total_compressed_size) for chunk in of_names]

    def require_todays_calendar(self, arrays: Sequence[pa.Array]) -> None:
        """Raises OldCalendar where values have days or instants that only Spark converts."""
        if self._has_legacy_calendar and any(map(_calendars_differ, arrays)):
            raise OldCalendar(
                f"{self.path} holds days before 1582-10-15 or instants before 1900 in the calendar of Spark 2, "
                "which only Spark converts: use plan.to_spark(spark, via='native')"
            )


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    """Where the first page of a chunk begins, bytes; some writers put 0 where there is no dictionary."""
    return min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)


def _keys_agree(stored: pa.DataType, type_: pa.DataType) -> bool:
    """Whether a value has the same key in both types: decimals of one scale have it even where its words differ."""
    if pa.types.is_decimal128(stored) and pa.types.is_decimal128(type_):
        return bool(stored.scale == type_.scale)
    return same_keys(stored, type_)


def _calendars_differ(array: pa.Array) -> bool:
    """Whether an array holds a day or an instant from before the old calendar and today's agree."""
    match array.type:
        case pa.StructType():
            return any(map(_calendars_differ, array.flatten()))
        case pa.ListType():
            return _calendars_differ(array.flatten())
        case pa.MapType():
            return _calendars_differ(array.keys) or _calendars_differ(array.items)
        case type_:
            since = _CALENDARS_AGREE.get(type_)
            return since is not None and bool(pc.any(pc.less(array, pa.scalar(since, type_))).as_py())


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


def open_parquet(filesystem: pafs.FileSystem, path: str, shown: str, listed: ListedFile | None = None) -> ParquetSource:
    """A Parquet file opened for reading, the one that was `listed`, if any.

    Raises InvalidParquet, StalePlan or AccessDenied, naming the file as `shown`.
    """
    try:
        if listed is None:
            file = open_file(filesystem, path)
        else:
            file = open_file(filesystem, path, listed.size, listed.accept)
            listed.require(file)
    except (FileNotFoundError, NotADirectoryError):
        raise vanished(shown) from None
    except OSError as error:
        if listed is not None:
            listed.require()
        raise trouble(f"cannot open {shown}", error, InvalidParquet) from None
    try:
        footer = read_footer(file)
        reads_ahead = isinstance(file, ObjectFile)  # see `batches`; pyarrow would ask it for one range at a time
        reader = pq.ParquetFile(file, coerce_int96_timestamp_unit="us", pre_buffer=not reads_ahead)
        return ParquetSource(shown, file, footer, reader, gap_of(filesystem))
    except InvalidParquet as error:
        raise InvalidParquet(f"{shown}: {error}") from None
    except FileNotFoundError:
        raise vanished(shown) from None
    except (pa.ArrowException, OSError) as error:
        raise trouble(shown, error, InvalidParquet) from None
