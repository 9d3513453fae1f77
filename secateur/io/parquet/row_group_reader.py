"""The rows of an open Parquet file: by their pages where few are wanted, else a row group at a time.

Of a file of which an index keeps the head and the layouts of row groups, rows are read without a look at its footer.
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
from secateur.io.parquet.file_locations import read_layout
from secateur.io.parquet.file_metadata import FileMetadata, known_head
from secateur.io.parquet.footer import Footer
from secateur.io.parquet.location_codec import decode_layout
from secateur.io.parquet.page_reader import PageReader
from secateur.io.parquet.rebase import calendars_differ, has_legacy_calendar
from secateur.io.parquet.row_selection import RowSelection, all_rows, cut_out
from secateur.io.storage.byte_ranges import Range
from secateur.io.storage.object_file import ObjectFile
from secateur.io.storage.redaction import trouble

KnownLayouts: TypeAlias = dict[int, dict[int, ColumnLocations | None]]  # by row group and leaf

BATCH_ROWS = 65_536
# What reading by pages costs, in bytes of a row group that pyarrow reads whole, batch by batch, at 300 MB/s: more for
# every byte, for all rows of a page are in memory at once; and 25 us for every page, whose header is decoded here.
BYTE_COST, PAGE_COST = 1.7, 8 << 10
MOST_COPIED = 4 << 20  # bytes of a row group that is read whole by its pages, to do without the footer


@dataclass(frozen=True)
class StoredRows:
    """What an index keeps of a file for readers, as bytes."""

    head: bytes
    layouts: Mapping[int, bytes]  # by row group


class FileWithFooter(Protocol):
    """A Parquet file whose footer has been read."""

    @property
    def footer(self) -> Footer: ...
    @property
    def row_count(self) -> np.ndarray: ...
    @property
    def reader(self) -> pq.ParquetFile: ...
    @property
    def known_layouts(self) -> KnownLayouts: ...


OpenFile = TypeVar("OpenFile", bound=FileWithFooter)


@dataclass(frozen=True, eq=False)
class RowGroupReader(Generic[OpenFile]):
    """The rows of one file; errors name it by its path."""

    path: str
    file: pa.NativeFile
    gap: int  # bytes; how far apart ranges of it may lie to be read together
    open: Callable[[], OpenFile]
    stored: StoredRows | None = None

    @cached_property
    def opened(self) -> OpenFile:
        """The file with its footer. Raises InvalidParquet, StalePlan, AccessDenied."""
        return self.open()

    @property
    def head(self) -> FileMetadata:
        """What the file says of all its row groups alike."""
        return self.opened.footer.head if self.stored is None else known_head(self.stored.head)

    def is_stored(self, row_group: int) -> bool:
        """Whether an index tells where the pages of a row group lie."""
        return self.stored is not None and bool(self.stored.layouts.get(row_group))

    def read(
        self, row_group: int, fields: Sequence[pa.Field], rows: RowSelection | None = None
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
        return [name for name in self.head.schema.names if name.lower() in wanted]

    def batches(
        self, row_group: int, names: Sequence[str], rows: RowSelection | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The chosen rows of a row group, or all: some top-level columns of the file, as they are.

        Without any column, its rows as a batch of a column that is not the table's. Raises StalePlan, InvalidParquet.
        """
        count = self._row_count(row_group)
        if not names:  # pyarrow gives no rows where it reads no column
            yield pa.RecordBatch.from_arrays([pa.nulls(count if rows is None else len(rows))], names=[""])
        elif self._reads_pages(row_group, names, rows):
            for table in self.page_reader.read(row_group, names, all_rows(count) if rows is None else rows):
                yield from table.to_batches(BATCH_ROWS)
        elif rows is None or len(rows) == count:
            yield from self._all_batches(row_group, names)
        else:
            yield from cut_out(self._all_batches(row_group, names), rows)

    def _row_count(self, row_group: int) -> int:
        """Rows of a row group. Raises StalePlan where the file does not have it."""
        layout = self._stored_layout(row_group)
        if layout is not None:
            return layout.row_count
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
        """Whether the chosen rows are read by their pages: these are known, and few enough of all."""
        if rows is None and not self.is_stored(row_group):
            return False
        layout = self._layout_of(row_group, names)
        if layout is None or not layout.has_pages:
            return False
        chosen = all_rows(layout.row_count) if rows is None else rows
        cost = BYTE_COST * selected_bytes(layout, chosen) + PAGE_COST * selected_count(layout, chosen)
        return cost <= layout.byte_count or (self.is_stored(row_group) and cost <= MOST_COPIED)

    def is_light(self, row_group: int, fields: Sequence[pa.Field], rows: RowSelection | None) -> bool:
        """Whether the chosen values of some columns of the table are few bytes."""
        return self.is_light_by_name(row_group, self._own_names(fields), rows)

    def is_light_by_name(self, row_group: int, names: Sequence[str], rows: RowSelection | None) -> bool:
        """Whether the chosen values of some top-level columns of the file are few bytes."""
        layout = self._layout_of(row_group, names)
        if layout is None:
            return False
        return (layout.byte_count if rows is None else selected_bytes(layout, rows)) <= self.gap

    @cached_property
    def page_reader(self) -> PageReader:
        """Reads those row groups of which a layout has all pages."""

        def layout(row_group: int, leaves: Sequence[int]) -> ChunkLocations:
            found = self._layout(row_group, leaves)
            assert found is not None
            return found

        return PageReader(self.path, self.file, self.head, layout, self.gap)

    def _layout_of(self, row_group: int, names: Sequence[str]) -> ChunkLocations | None:
        """Where some columns lie; None where only pyarrow can tell, or nobody."""
        try:
            return self._layout(row_group, self.head.leaves(names))
        except InvalidParquet:
            return None

    def _layout(self, row_group: int, leaves: Sequence[int]) -> ChunkLocations | None:
        stored = self._stored_layout(row_group)
        found = None if stored is None else stored.of(leaves)
        return found if found is not None and found.has_pages else self._own_layout(row_group, leaves)

    def _stored_layout(self, row_group: int) -> ChunkLocations | None:
        """What the index tells of a row group; None where it does not."""
        if self.stored is None:
            return None
        if row_group not in self._decoded:
            data = self.stored.layouts.get(row_group)
            self._decoded[row_group] = None
            with suppress(IndexFault):  # the footer tells as well
                self._decoded[row_group] = decode_layout(data, self.file.size(), "a layout") if data else None
        return self._decoded[row_group]

    @cached_property
    def _decoded(self) -> dict[int, ChunkLocations | None]:
        return {}

    def _own_layout(self, row_group: int, leaves: Sequence[int]) -> ChunkLocations | None:
        """What the file tells; None where it does not of one of these leaves."""
        opened = self.opened
        known = opened.known_layouts.setdefault(row_group, {})
        unread = [leaf for leaf in leaves if leaf not in known]
        if unread:
            read = read_layout(self.file, opened.footer, row_group, unread, self.gap)
            known.update({leaf: read.chunks.get(leaf) for leaf in unread})
        chunks = {leaf: chunk for leaf in leaves if (chunk := known[leaf]) is not None}
        return ChunkLocations(int(opened.row_count[row_group]), chunks).of(leaves)

    def require_todays_calendar(self, arrays: Sequence[pa.Array]) -> None:
        """Raises OldCalendar where values have days or instants that only Spark converts."""
        if has_legacy_calendar(self.head) and any(map(calendars_differ, arrays)):
            raise OldCalendar(
                f"{self.path} holds days before 1582-10-15 or instants before 1900 in the calendar of Spark 2, "
                "which only Spark converts: use plan.to_spark(spark, via='native')"
            )


def _chunks(group: pq.RowGroupMetaData, names: Sequence[str]) -> list[Range]:
    """Where the chunks of some top-level columns lie."""
    chunks = (group.column(i) for i in range(group.num_columns))
    of_names = (chunk for chunk in chunks if f"{chunk.path_in_schema}.".startswith(tuple(f"{n}." for n in names)))
    return [(_start(chunk), chunk.total_compressed_size) for chunk in of_names]


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    """Where the first page of a chunk begins, bytes; some writers put 0 where there is no dictionary."""
    return min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
