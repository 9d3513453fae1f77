"""Read the rows of an open Parquet file: by pages if few rows are wanted, else a row group at a time.

If an index has a file's metadata and page locations, its rows are read without its footer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import IndexFault, InvalidParquet, OldCalendar, StalePlan
from secateur.io.parquet.arrow_types import conform
from secateur.io.parquet.chunk_locations import ChunkLocations, ColumnLocations, selected_bytes, selected_count
from secateur.io.parquet.file_locations import read_locations
from secateur.io.parquet.file_metadata import FileMetadata, known_head
from secateur.io.parquet.footer import Footer
from secateur.io.parquet.location_codec import decode_locations
from secateur.io.parquet.page_reader import PageReader
from secateur.io.parquet.rebase import calendars_differ, has_legacy_calendar
from secateur.io.parquet.row_selection import RowSelection, all_rows, cut_out
from secateur.io.storage.byte_ranges import Range
from secateur.io.storage.object_file import ObjectFile
from secateur.io.storage.redaction import trouble

KnownLocations: TypeAlias = dict[int, dict[int, ColumnLocations | None]]  # by row group and leaf

BATCH_ROWS = 65_536
# The cost of reading by pages, in bytes of a row group that pyarrow reads whole, batch by batch, at 300 MB/s: more per
# byte, because all rows of a page are in memory at once; and 25 us per page, whose header is decoded here.
BYTE_COST, PAGE_COST = 1.7, 8 << 10
MOST_COPIED = 4 << 20  # bytes of a whole row group that is read by its pages, to avoid reading the footer


@dataclass(frozen=True)
class StoredRows:
    """A file's metadata and page locations from an index, encoded."""

    head: bytes
    page_locations: Mapping[int, bytes]  # by row group


class FileWithFooter(Protocol):
    """A Parquet file whose footer has been read."""

    @property
    def footer(self) -> Footer: ...
    @property
    def row_count(self) -> np.ndarray: ...
    @property
    def reader(self) -> pq.ParquetFile: ...
    @property
    def known_locations(self) -> KnownLocations: ...


OpenFile = TypeVar("OpenFile", bound=FileWithFooter)


@dataclass(frozen=True, eq=False)
class RowGroupReader(Generic[OpenFile]):
    """The rows of one file; errors name it by its path."""

    path: str
    file: pa.NativeFile
    gap: int  # bytes; ranges at most this far apart are read together
    open: Callable[[], OpenFile]
    stored: StoredRows | None = None

    @cached_property
    def opened(self) -> OpenFile:
        """The file with its footer. Raises InvalidParquet, StalePlan, AccessDenied."""
        return self.open()

    @property
    def head(self) -> FileMetadata:
        """The file metadata."""
        return self.opened.footer.head if self.stored is None else known_head(self.stored.head)

    def is_stored(self, row_group: int) -> bool:
        """Return whether the index has the page locations of a row group."""
        return self.stored is not None and bool(self.stored.page_locations.get(row_group))

    def read(
        self, row_group: int, fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of a row group, or all: top-level columns of the table, in the table's types.

        Raises OldCalendar for days and instants that only Spark converts, StalePlan, InvalidParquet.
        """
        schema = pa.schema(fields)
        for batch in self.batches(row_group, self._own_names(fields), rows):
            arrays = conform(batch, fields)
            self.require_todays_calendar(arrays)
            yield pa.RecordBatch.from_arrays(arrays, schema=schema) if fields else batch

    def _own_names(self, fields: Sequence[pa.Field]) -> list[str]:
        """Return the file's names of some columns of the table, ignoring case."""
        wanted = {field.name.lower() for field in fields}
        return [name for name in self.head.schema.names if name.lower() in wanted]

    def batches(
        self, row_group: int, names: Sequence[str], rows: RowSelection | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of a row group, or all: top-level columns of the file, in the file's types.

        Without any column, batches have the right number of rows and one placeholder column. Raises StalePlan,
        InvalidParquet.
        """
        count = self._row_count(row_group)
        if not names:  # pyarrow returns no rows if it reads no column
            yield pa.RecordBatch.from_arrays([pa.nulls(count if rows is None else len(rows))], names=[""])
        elif self._reads_pages(row_group, names, rows):
            for table in self.page_reader.read(row_group, names, all_rows(count) if rows is None else rows):
                yield from table.to_batches(BATCH_ROWS)
        elif rows is None or len(rows) == count:
            yield from self._all_batches(row_group, names)
        else:
            yield from cut_out(self._all_batches(row_group, names), rows)

    def _row_count(self, row_group: int) -> int:
        """Return the rows of a row group. Raises StalePlan if the file does not have it."""
        locations = self._stored_locations(row_group)
        if locations is not None:
            return locations.row_count
        counts = self.opened.row_count
        if row_group >= len(counts):
            raise StalePlan(
                f"the plan is stale: {self.path} has no row group {row_group}, so it has changed: plan again"
            )
        return int(counts[row_group])

    def _all_batches(self, row_group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        reader = self.opened.reader
        try:
            if isinstance(self.file, ObjectFile):
                self.file.read_ahead(_chunks(reader.metadata.row_group(row_group), names))
            yield from reader.iter_batches(BATCH_ROWS, row_groups=[row_group], columns=names, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise trouble(f"cannot read row group {row_group} of {self.path}", error, InvalidParquet) from None

    def _reads_pages(self, row_group: int, names: Sequence[str], rows: RowSelection | None) -> bool:
        """Return whether to read the selected rows by pages: page locations are known, and the rows are few enough."""
        if rows is None and not self.is_stored(row_group):
            return False
        locations = self._locations_of(row_group, names)
        if locations is None or not locations.has_pages:
            return False
        chosen = all_rows(locations.row_count) if rows is None else rows
        cost = BYTE_COST * selected_bytes(locations, chosen) + PAGE_COST * selected_count(locations, chosen)
        return cost <= locations.byte_count or (self.is_stored(row_group) and cost <= MOST_COPIED)

    def is_light(self, row_group: int, fields: Sequence[pa.Field], rows: RowSelection | None) -> bool:
        """Return whether the selected values of some columns of the table are few bytes."""
        return self.is_light_by_name(row_group, self._own_names(fields), rows)

    def is_light_by_name(self, row_group: int, names: Sequence[str], rows: RowSelection | None) -> bool:
        """Return whether the selected values of some top-level columns of the file are few bytes."""
        locations = self._locations_of(row_group, names)
        if locations is None:
            return False
        return (locations.byte_count if rows is None else selected_bytes(locations, rows)) <= self.gap

    @cached_property
    def page_reader(self) -> PageReader:
        """The reader for row groups whose page locations are all known."""

        def locations(row_group: int, leaves: Sequence[int]) -> ChunkLocations:
            known = self._locations(row_group, leaves)
            assert known is not None, "asked only for row groups whose locations are known"
            return known

        return PageReader(self.path, self.file, self.head, locations, self.gap)

    def _locations_of(self, row_group: int, names: Sequence[str]) -> ChunkLocations | None:
        """Return the locations of some columns; None if only pyarrow can read them."""
        try:
            return self._locations(row_group, self.head.leaves(names))
        except InvalidParquet:
            return None

    def _locations(self, row_group: int, leaves: Sequence[int]) -> ChunkLocations | None:
        stored = self._stored_locations(row_group)
        known = None if stored is None else stored.of(leaves)
        return known if known is not None and known.has_pages else self._own_locations(row_group, leaves)

    def _stored_locations(self, row_group: int) -> ChunkLocations | None:
        """Return the index's page locations of a row group; None if it has none."""
        if self.stored is None:
            return None
        if row_group not in self._decoded:
            data = self.stored.page_locations.get(row_group)
            self._decoded[row_group] = None
            with suppress(IndexFault):  # the footer has them, too
                self._decoded[row_group] = decode_locations(data, self.file.size(), "page locations") if data else None
        return self._decoded[row_group]

    @cached_property
    def _decoded(self) -> dict[int, ChunkLocations | None]:
        return {}

    def _own_locations(self, row_group: int, leaves: Sequence[int]) -> ChunkLocations | None:
        """Return page locations from the file itself; None if one of these leaves has none."""
        opened = self.opened
        known = opened.known_locations.setdefault(row_group, {})
        unread = [leaf for leaf in leaves if leaf not in known]
        if unread:
            read = read_locations(self.file, opened.footer, row_group, unread, self.gap)
            known.update({leaf: read.chunks.get(leaf) for leaf in unread})
        chunks = {leaf: chunk for leaf in leaves if (chunk := known[leaf]) is not None}
        return ChunkLocations(int(opened.row_count[row_group]), chunks).of(leaves)

    def require_todays_calendar(self, arrays: Sequence[pa.Array]) -> None:
        """Raise OldCalendar if values have days or instants that only Spark converts."""
        if has_legacy_calendar(self.head) and any(map(calendars_differ, arrays)):
            raise OldCalendar(
                f"{self.path} holds days before 1582-10-15 or instants before 1900 in the calendar of Spark 2, "
                "which only Spark converts: use plan.to_spark(spark, via='native')"
            )


def _chunks(group: pq.RowGroupMetaData, names: Sequence[str]) -> list[Range]:
    """Return the byte ranges of the chunks of some top-level columns."""
    chunks = (group.column(i) for i in range(group.num_columns))
    of_names = (chunk for chunk in chunks if f"{chunk.path_in_schema}.".startswith(tuple(f"{n}." for n in names)))
    return [(_start(chunk), chunk.total_compressed_size) for chunk in of_names]


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    """Return the byte at which a chunk's first page begins; some writers record 0 if there is no dictionary."""
    return min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
