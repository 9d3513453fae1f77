"""One Parquet file of a table: its statistics by the table's columns, and its row groups as Arrow data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from secateur.errors import InvalidParquet
from secateur.index.filters.parquet_bloom import NativeFilters
from secateur.index.model import IndexedColumn
from secateur.index.read.memory_cache import ByteCache
from secateur.index.zones import zonemap
from secateur.index.zones.page_locations import FileLocations
from secateur.index.zones.page_statistics import PageTable, Places, page_row_counts
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.parquet.arrow_types import file_schema, spark_type
from secateur.io.parquet.bloom_filter import native_filters, no_filters
from secateur.io.parquet.file_locations import file_locations
from secateur.io.parquet.footer import Bounds, Footer, Leaf, PageIndex, chunk_bounds, read_footer, read_page_index
from secateur.io.parquet.known_footer import GivenFooter, KnownFooter
from secateur.io.parquet.rebase import has_legacy_calendar
from secateur.io.parquet.row_group_reader import RowGroupReader, StoredRows
from secateur.io.parquet.shredded_values import shredded_zone_map
from secateur.io.parquet.variant_reader import values_at_path
from secateur.io.storage.byte_ranges import LOCAL_GAP, gap_of
from secateur.io.storage.file_version import ListedFile, vanished
from secateur.io.storage.object_file import ObjectFile, open_file
from secateur.io.storage.redaction import trouble
from secateur.io.storage.witness import end_of
from secateur.pruning.interval import RowValues
from secateur.pruning.predicate.variant_paths import column_of, is_variant_path, steps_of
from secateur.values.kinds import is_float, ordered_kind, same_keys


@dataclass(eq=False)
class ParquetFile:
    """An open Parquet file; errors name it."""

    path: str
    file: pa.NativeFile
    reader: pq.ParquetFile
    known: KnownFooter
    gap: int = LOCAL_GAP  # bytes; ranges at most this far apart are read together

    def reader_of(self, encoded: tuple[str, ...]) -> pq.ParquetFile:
        """Return pyarrow's reader, which reads some texts as numbers of entries of dictionaries."""
        if not encoded:
            return self.reader
        if encoded not in self._readers:
            self._readers[encoded] = _reader(self.file, self.known, self.gap, encoded)
        return self._readers[encoded]

    @cached_property
    def _readers(self) -> dict[tuple[str, ...], pq.ParquetFile]:
        return {}

    @cached_property
    def footer(self) -> Footer:
        """The footer, decoded here. Raises InvalidParquet."""
        try:
            return self.known.decoded(self.file)
        except InvalidParquet as error:
            raise InvalidParquet(f"{self.path}: {error}") from None

    @cached_property
    def row_count(self) -> np.ndarray:
        """Rows of every row group. Raises InvalidParquet."""
        counts = self.known.row_count
        if (counts < 0).any():
            raise InvalidParquet(f"{self.path}: a row group has {counts.min()} rows")
        return counts

    @property
    def byte_count(self) -> np.ndarray:
        """Compressed bytes of every row group."""
        return self.footer.byte_count

    @cached_property
    def schema(self) -> pa.Schema:
        """The file's schema as Spark reads it."""
        return file_schema(self.reader)

    def zone_map(self, path: tuple[str, ...], type_: pa.DataType) -> ZoneMap:
        """Return the zone map of a column over the row groups, from the footer only."""
        if is_variant_path(path):
            return self._variant_zone_map(path, type_)
        kind = ordered_kind(type_)
        if self._type_of(path) is None:
            return zonemap.all_null(kind, self.row_count)
        leaf = self.leaf(path)
        if leaf is None:
            return zonemap.unknown(kind, len(self.row_count))
        return self._zone_map(leaf, type_, chunk_bounds(self.footer, leaf), self.row_count)

    def _variant_zone_map(self, path: tuple[str, ...], type_: pa.DataType) -> ZoneMap:
        """Return the zone map of the values at a path into VARIANT; NULL where the file lacks the column."""
        column = column_of(path)
        if self._type_of(column) is None:
            return zonemap.all_null(ordered_kind(type_), self.row_count)
        metadata = self.leaf((*column, "metadata"))
        if metadata is None:
            return zonemap.unknown(ordered_kind(type_), len(self.row_count))
        return shredded_zone_map(
            self.footer,
            metadata.path[:-1],
            steps_of(path),
            type_,
            lambda leaf: self._zone_map(leaf, leaf.type, chunk_bounds(self.footer, leaf), self.row_count),
        )

    def pages(self, zone_maps: Mapping[IndexedColumn, ZoneMap]) -> dict[IndexedColumn, PageTable]:
        """Return the pages of those columns that have a page index in every row group.

        `zone_maps` are those of the row groups: if a row group holds no NaN, neither do its pages.
        """
        columns = {leaf.path: column for column in zone_maps if (leaf := self.leaf(column.path)) is not None}
        leaves = [leaf for leaf in self.footer.leaves if leaf.path in columns]
        indexes = self._guarded_page_index(leaves)
        return {
            columns[leaf.path]: self._page_table(leaf, columns[leaf.path], indexes[leaf.path], zone_maps)
            for leaf in leaves
            if leaf.path in indexes
        }

    def end(self) -> int:
        """A checksum of the file's last bytes: :func:`secateur.io.storage.witness.end_of`. Raises InvalidParquet."""
        try:
            return end_of(self.file)
        except (OSError, pa.ArrowException) as error:
            raise trouble(self.path, error, InvalidParquet) from None

    def page_locations(self) -> FileLocations:
        """Return what is needed to read single pages of all row groups. Raises InvalidParquet."""
        try:
            return file_locations(self.file, self.footer, self.gap)
        except OSError as error:
            raise trouble(f"cannot read {self.path}", error, InvalidParquet) from None

    def native_filters(self, path: tuple[str, ...], type_: pa.DataType, fpr: float) -> NativeFilters:
        """Return the file's own bloom filters of a column, which can be probed with keys of the table's type.

        A filter is folded as long as its false-positive rate stays within `fpr`. If the file stores values with other
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
        """Return the page index, or nothing if it is malformed: it is optional, and the blocks' bounds suffice."""
        try:
            return read_page_index(self.file, self.footer, leaves, self.gap)
        except InvalidParquet:
            return {}

    def _page_table(
        self, leaf: Leaf, column: IndexedColumn, index: PageIndex, zone_maps: Mapping[IndexedColumn, ZoneMap]
    ) -> PageTable:
        row_count = page_row_counts(index.page_offsets, index.first_row, self.row_count)
        nan_free = np.repeat(zone_maps[column].nan_count == 0, np.diff(index.page_offsets))
        bounds = replace(index.bounds, nan_count=np.where(nan_free, 0, index.bounds.nan_count))
        zone_map = self._zone_map(leaf, column.type, bounds, row_count)
        places = Places(index.offset, index.size)
        return PageTable(index.page_offsets, index.first_row, zone_map, places)

    def _zone_map(self, leaf: Leaf, type_: pa.DataType, bounds: Bounds, row_count: np.ndarray) -> ZoneMap:
        n = len(row_count)
        nan_count = bounds.nan_count if is_float(type_) else np.zeros(n, np.int64)
        known = bounds.lower.type != pa.null() and not self._in_legacy_calendar(type_)
        lower, upper = (bounds.lower, bounds.upper) if known else (pa.nulls(n, type_), pa.nulls(n, type_))
        return zonemap.from_bounds(type_, lower, upper, bounds.null_count, nan_count, row_count)

    def _in_legacy_calendar(self, type_: pa.DataType) -> bool:
        """Return whether values of a type were written in the hybrid calendar, which Spark rebases when it reads."""
        has_days = pa.types.is_date(type_) or pa.types.is_timestamp(type_)
        return has_days and has_legacy_calendar(self.footer.head.metadata)

    def leaf(self, path: tuple[str, ...]) -> Leaf | None:
        """Return the leaf column of a path, ignoring case; None if there is none outside lists and maps."""
        leaves = self._leaves.get(_folded(path), ())
        return next((leaf for leaf in leaves if leaf.path == path), leaves[0] if leaves else None)

    @cached_property
    def _leaves(self) -> Mapping[tuple[str, ...], Sequence[Leaf]]:
        """The leaf columns by lower-case path."""
        leaves: dict[tuple[str, ...], list[Leaf]] = {}
        for leaf in self.footer.leaves:
            leaves.setdefault(_folded(leaf.path), []).append(leaf)
        return leaves

    @cached_property
    def _fields(self) -> Mapping[str, Sequence[pa.Field]]:
        """The columns by lower-case name."""
        fields: dict[str, list[pa.Field]] = {}
        for column in self.schema:
            fields.setdefault(column.name.lower(), []).append(column)
        return fields

    def _type_of(self, path: tuple[str, ...]) -> pa.DataType | None:
        """Return the type of a path in this file, or None if the file lacks it."""
        candidates, type_ = self._fields.get(path[0].lower(), ()), None
        for name, below in zip(path, (*path[1:], None), strict=True):
            if not candidates:
                return None
            type_ = next((f for f in candidates if f.name == name), candidates[0]).type
            if below is None or not pa.types.is_struct(type_):
                return type_
            candidates = [f for f in type_ if f.name.lower() == below.lower()]
        return type_

    def read(self, row_group: int, fields: Sequence[pa.Field]) -> Iterator[pa.RecordBatch]:
        """Yield all rows of a row group; see :meth:`secateur.io.parquet.row_group_reader.RowGroupReader.read`."""
        return self.rows.read((row_group,), fields)

    def values_at_path(self, row_group: int, path: tuple[str, ...]) -> Iterator[RowValues]:
        """Yield the values at a path into a VARIANT column on all rows of a row group; see :mod:`.variant_reader`."""
        return values_at_path(self.rows, row_group, path)

    @cached_property
    def rows(self) -> RowGroupReader[ParquetFile]:
        """The reader of the file's rows."""
        return RowGroupReader(self.path, self.file, self.gap, lambda: self)


def _keys_agree(stored: pa.DataType, type_: pa.DataType) -> bool:
    """Return whether a value has the same key in both types, as decimals of one scale do even if their words differ."""
    if pa.types.is_decimal128(stored) and pa.types.is_decimal128(type_):
        return bool(stored.scale == type_.scale)
    return same_keys(stored, type_)


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


def open_parquet(
    filesystem: pafs.FileSystem,
    path: str,
    redacted: str,
    listed: ListedFile | None = None,
    given: GivenFooter | None = None,
) -> ParquetFile:
    """Open a Parquet file for reading, with its footer; checks that it is the `listed` one, if given.

    Its own footer is not read where the `given` one is the same. Raises InvalidParquet, StalePlan or AccessDenied,
    naming the file as `redacted`.
    """
    if given is not None and (opened := _with_given(filesystem, path, redacted, given)) is not None:
        return opened
    return with_footer(open_data(filesystem, path, redacted, listed), redacted, gap_of(filesystem), listed)


def _with_given(filesystem: pafs.FileSystem, path: str, redacted: str, given: GivenFooter) -> ParquetFile | None:
    """Return an open file with a footer that was handed over; None if that is not the file's, or nobody can say so."""
    try:
        file = open_file(filesystem, path, given.size if given.is_equal else None)
        if not given.is_of(file):
            return None
        gap, known = gap_of(filesystem), given.known()
        return ParquetFile(redacted, file, _reader(file, known, gap), known, gap)
    except (pa.ArrowException, OSError, InvalidParquet):
        return None  # who reads the file's own footer says what is wrong


def open_rows(
    filesystem: pafs.FileSystem, path: str, redacted: str, listed: ListedFile, stored: StoredRows | None
) -> RowGroupReader[ParquetFile]:
    """Open the rows of the `listed` Parquet file; its footer is read only if `stored` is not enough.

    Raises InvalidParquet, StalePlan or AccessDenied, naming the file as `redacted`.
    """
    if stored is None:
        return open_parquet(filesystem, path, redacted, listed).rows
    file, gap = open_data(filesystem, path, redacted, listed), gap_of(filesystem)
    return RowGroupReader(redacted, file, gap, lambda: with_footer(file, redacted, gap, listed), stored)


def open_data(filesystem: pafs.FileSystem, path: str, redacted: str, listed: ListedFile | None) -> pa.NativeFile:
    """Open a file and check that it is the `listed` one, if given. Raises InvalidParquet, StalePlan, AccessDenied."""
    try:
        if listed is None:
            return open_file(filesystem, path)
        file = open_file(filesystem, path, listed.size, listed.accept)
        listed.require(file)
        return file
    except (FileNotFoundError, NotADirectoryError):
        raise vanished(redacted) from None
    except OSError as error:
        if listed is not None:
            listed.require()
        raise trouble(f"cannot open {redacted}", error, InvalidParquet) from None


def with_footer(file: pa.NativeFile, redacted: str, gap: int, listed: ListedFile | None) -> ParquetFile:
    """Return an open file with its footer, which is read once per process if the file's time is known.

    Raises InvalidParquet, StalePlan, AccessDenied.
    """
    try:
        known = _read(file) if listed is None or not listed.modified % _SECOND else _kept(file, redacted, listed)
        return ParquetFile(redacted, file, _reader(file, known, gap), known, gap)
    except FileNotFoundError:
        raise vanished(redacted) from None
    except (pa.ArrowException, OSError) as error:
        raise _trouble(file, redacted, error) from None


def _reader(file: pa.NativeFile, known: KnownFooter, gap: int, encoded: Sequence[str] = ()) -> pq.ParquetFile:
    # Buffering ahead takes time on a local disk, and an ObjectFile does it itself, for all columns at once.
    ahead = gap > LOCAL_GAP and not isinstance(file, ObjectFile)
    return pq.ParquetFile(
        file,
        metadata=known.metadata,
        read_dictionary=encoded,
        coerce_int96_timestamp_unit="us",
        pre_buffer=ahead,
    )


def _trouble(file: pa.NativeFile, redacted: str, error: Exception) -> Exception:
    """Return the error for a footer that pyarrow cannot read: our own decoder's, which says more, if it has one."""
    try:
        read_footer(file)
    except InvalidParquet as reason:
        return InvalidParquet(f"{redacted}: {reason}")
    except (pa.ArrowException, OSError):
        pass
    return trouble(redacted, error, InvalidParquet)


def _read(file: pa.NativeFile) -> KnownFooter:
    reader = pq.ParquetFile(file)
    return KnownFooter(reader.metadata, reader.reader.column_paths)


def _kept(file: pa.NativeFile, redacted: str, listed: ListedFile) -> KnownFooter:
    return _FOOTERS.get((redacted, listed.size, listed.modified, listed.witness), lambda: _read(file))


_FOOTERS = ByteCache(64 << 20)
_SECOND = 10**9  # nanoseconds; on S3, for example, two files can share a time in whole seconds
