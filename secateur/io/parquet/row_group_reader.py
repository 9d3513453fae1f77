"""Read the rows of an open Parquet file: by pages if few rows are wanted, else whole row groups, small ones together.

If an index has a file's metadata and page locations, its rows are read without its footer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import IndexFault, InvalidParquet, OldCalendar, StalePlan
from secateur.io.parquet.arrow_types import conformed
from secateur.io.parquet.chunk_locations import ChunkLocations, selected_bytes, selected_size
from secateur.io.parquet.dictionary_texts import encoded_texts, in_parts, looked_up, pays
from secateur.io.parquet.file_locations import read_locations
from secateur.io.parquet.file_metadata import FileMetadata, known_head
from secateur.io.parquet.footer import Footer
from secateur.io.parquet.known_footer import EXPANSION, KnownFooter, among
from secateur.io.parquet.known_locations import known_locations
from secateur.io.parquet.page_reader import PageReader
from secateur.io.parquet.rebase import calendars_differ, has_legacy_calendar
from secateur.io.parquet.row_selection import RowSelection, all_rows, cut_out, without_gaps
from secateur.io.storage.byte_ranges import Range
from secateur.io.storage.object_file import ObjectFile
from secateur.io.storage.redaction import trouble

# Rows of a batch: at most BATCH_ROWS, and FEW_ROWS if more take BATCH_BYTES uncompressed. Reading three columns by
# FEW_ROWS takes 12 % longer than reading them whole.
BATCH_ROWS, FEW_ROWS, BATCH_BYTES = 262_144, 65_536, 16 << 20
# The cost of reading by pages, in bytes of a row group that pyarrow reads whole, batch by batch, at 300 MB/s: more per
# byte, because all rows of a page are in memory at once; and 25 us per page, whose header is decoded here.
BYTE_COST, PAGE_COST = 1.7, 8 << 10
CHUNK_COST = 128 << 10  # the same per column chunk, for what is done before and after its pages are read: 0.4 ms
MOST_TOGETHER = 16 << 20  # compressed bytes of row groups that are read together
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
    def reader_of(self, encoded: tuple[str, ...]) -> pq.ParquetFile: ...
    @property
    def known(self) -> KnownFooter: ...


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
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of some row groups, or all: top-level columns of the table, in the table's types.

        Rows are numbered through the row groups, one after the other. Texts that are asked for as dictionaries may come
        so. Raises OldCalendar for days and instants that only Spark converts, StalePlan, InvalidParquet.
        """
        names = self.names(fields)
        kept = among(names, [field.name for field in fields if pa.types.is_dictionary(field.type)])
        for stored in self.batches(row_groups, names, rows, kept):
            batch = conformed(stored, fields) if fields else stored
            self.require_todays_calendar(batch.columns)
            yield batch

    def names(self, fields: Sequence[pa.Field]) -> list[str]:
        """Return the file's names of those columns of the table that it has, ignoring case."""
        columns = tuple(field.name for field in fields)
        if self.stored is None:
            return self.opened.known.names_of(columns)
        names = self._names_of.get(columns)
        if names is None:
            names = self._names_of[columns] = among(self.head.schema.names, columns)
        return names

    @cached_property
    def all_names(self) -> list[str]:
        """The file's names of its top-level columns."""
        return self.opened.known.names if self.stored is None else self.head.schema.names

    def batches(
        self,
        row_groups: Sequence[int],
        names: Sequence[str],
        rows: RowSelection | None = None,
        kept: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of some row groups, or all: top-level columns of the file, in the file's types.

        Texts of the columns in `kept` may come as dictionaries encode them. Without any column, batches have the right
        number of rows and one placeholder column. Raises StalePlan, InvalidParquet.
        """
        whole = self.is_read_whole(row_groups)
        counts = self._row_counts(row_groups, whole=whole)
        if not names:  # pyarrow returns no rows if it reads no column
            yield pa.RecordBatch.from_arrays([pa.nulls(sum(counts) if rows is None else len(rows))], names=[""])
        elif self.is_read_by_pages(row_groups, names, rows):
            for table in self.page_reader.read(row_groups[0], names, all_rows(counts[0]) if rows is None else rows):
                yield from table.to_batches(BATCH_ROWS)
        elif rows is None or len(rows) == sum(counts):
            yield from self._all_batches(row_groups, names, kept)
        else:
            with_rows, left = without_gaps(rows, counts)
            yield from cut_out(self._all_batches([row_groups[i] for i in with_rows], names, kept), left)

    def row_count_of(self, row_groups: Sequence[int]) -> int:
        """Return the rows of some row groups. Raises StalePlan if the file lacks one."""
        return sum(self._row_counts(row_groups, whole=self.is_read_whole(row_groups)))

    def _row_counts(self, row_groups: Sequence[int], *, whole: bool) -> list[int]:
        """Return the rows of row groups, which are read whole or not. Raises StalePlan if the file lacks one."""
        locations = None if whole else self._stored_locations(row_groups[0])
        if locations is not None:
            return [locations.row_count]
        counts, last = self.opened.row_count, max(row_groups)
        if last >= len(counts):
            raise StalePlan(f"the plan is stale: {self.path} has no row group {last}, so it has changed: plan again")
        return counts[list(row_groups)].tolist()

    def _all_batches(
        self, row_groups: Sequence[int], names: Sequence[str], kept: Collection[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of row groups as pyarrow reads them.

        It leaves out rows without an error if a list is the only row of a row group and its first page is empty.
        """
        leaves = self._leaves_of(names)
        encoded = self._encoded_texts(row_groups, leaves)
        reader, looked_up_here = self.opened.reader_of(encoded).reader, frozenset(encoded).difference(kept)
        wanted = left = int(self.opened.row_count[list(row_groups)].sum())
        try:
            if isinstance(self.file, ObjectFile):
                self.file.read_ahead(self._chunks(row_groups, leaves))
            for batch in reader.iter_batches(
                self._batch_rows(row_groups, leaves), row_groups, leaves, use_threads=False
            ):
                left -= batch.num_rows
                for part in in_parts(batch, encoded) if encoded else (batch,):
                    yield looked_up(part, looked_up_here)
        except (pa.ArrowException, OSError) as error:
            raise trouble(f"cannot read {_numbered(row_groups)} of {self.path}", error, InvalidParquet) from None
        if left:
            raise InvalidParquet(
                f"cannot read {_numbered(row_groups)} of {self.path}: pyarrow finds {wanted - left:,} of its "
                f"{wanted:,} rows in the columns {', '.join(names)}: use plan.to_spark(spark, via='native')"
            )

    def _encoded_texts(self, row_groups: Sequence[int], leaves: Sequence[int]) -> tuple[str, ...]:
        """Return which leaves are texts that are read as numbers of entries of dictionaries, as far as it pays to know.

        The footer is decoded here first: pyarrow ends the process where it has to describe a malformed chunk.
        """
        known, counts = self.opened.known, self.opened.row_count[list(row_groups)]
        texts = known.texts.intersection(leaves)
        is_decoded = known.is_decoded or isinstance(self.file, ObjectFile)  # or is here, for the chunks to read ahead
        if not texts or not pays(counts, len(texts), 0 if is_decoded else known.chunk_count):
            return ()
        return encoded_texts(self.opened.footer, row_groups, texts)

    def _batch_rows(self, row_groups: Sequence[int], leaves: Sequence[int]) -> int:
        """Return how many rows of some leaves to decode at once."""
        size = EXPANSION * len(leaves) * sum(map(self._chunk_bytes, row_groups))
        count = int(self.opened.row_count[list(row_groups)].sum())
        return min(BATCH_ROWS, max(FEW_ROWS, BATCH_BYTES * count // max(1, size)))

    def _reads_pages(self, row_group: int, names: Sequence[str], rows: RowSelection | None) -> bool:
        """Return whether to read the selected rows by pages: page locations are known, and the rows are few enough."""
        spared = self._spares_footer(row_group)
        if rows is None and not spared:
            return False
        cost, whole = self._page_cost(row_group, names, rows)
        return cost <= whole or (spared and cost <= MOST_COPIED)

    def _page_cost(self, row_group: int, names: Sequence[str], rows: RowSelection | None) -> tuple[float, int]:
        """Return the cost of reading the selected rows, or all, by pages, and the bytes of reading all rows whole.

        The cost is infinite if not all page locations are known.
        """
        locations = self._locations_of(row_group, names)
        if locations is None or not locations.has_pages:
            return math.inf, 0
        chosen = all_rows(locations.row_count) if rows is None else rows
        size, count = selected_size(locations, chosen)
        return CHUNK_COST * len(locations.chunks) + BYTE_COST * size + PAGE_COST * count, locations.byte_count

    def gain(self, row_group: int, names: Sequence[str], rows: RowSelection) -> float:
        """Return the share of the cost of reading some columns of a row group whole that reading by pages saves."""
        cost, whole = self._page_cost(row_group, names, rows)
        return max(0.0, 1.0 - cost / whole) if whole else 0.0

    def is_read_by_pages(self, row_groups: Sequence[int], names: Sequence[str], rows: RowSelection | None) -> bool:
        """Return whether the selected rows of some columns of the file, or all, are read by their pages."""
        return not self.is_read_whole(row_groups) and self._reads_pages(row_groups[0], names, rows)

    def is_light(self, row_groups: Sequence[int], names: Sequence[str], rows: RowSelection | None) -> bool:
        """Return whether the selected values of some columns of the file cost less to read than a request."""
        if self.is_read_whole(row_groups) or (rows is None and not self._spares_footer(row_groups[0])):
            return self.byte_count(row_groups, names) <= self.gap
        locations = self._locations_of(row_groups[0], names)
        if locations is None:
            return False
        return (locations.byte_count if rows is None else selected_bytes(locations, rows)) <= self.gap

    def together(
        self, row_groups: Sequence[int], names: Sequence[str], is_dense: Callable[[int], bool]
    ) -> Iterator[tuple[int, ...]]:
        """Yield row groups in order: those together that follow each other and are small or dense, others one by one.

        A row group is small if reading its pages one by one would cost more than reading its columns whole, and dense
        if all of its pages are needed, as far as that is known when the row groups before it were read. pyarrow cannot
        read nested columns of several row groups at once.
        """
        is_alone = len(row_groups) == 1 or all(map(self._spares_footer, row_groups))
        if is_alone or not self.opened.known.are_flat(tuple(names)):
            yield from ((row_group,) for row_group in row_groups)
            return
        leaves = len(self._leaves_of(names))

        def held(row_group: int) -> int:
            of_column = self._chunk_bytes(row_group)
            small = of_column <= CHUNK_COST if self.stored is None else self.is_read_whole([row_group])
            return leaves * of_column if small or is_dense(row_group) else MOST_TOGETHER

        run: list[int] = []
        size = 0
        for row_group in row_groups:
            more = held(row_group)
            if run and size + more > MOST_TOGETHER:
                yield tuple(run)
                run, size, more = [], 0, held(row_group)
            run.append(row_group)
            size += more
        if run:
            yield tuple(run)

    def is_read_whole(self, row_groups: Sequence[int]) -> bool:
        """Return whether each of some row groups is small, so that it is read whole, whichever columns are wanted.

        On an object store, reading stored pages spares the request for the footer.
        """
        if len(row_groups) > 1:
            return True
        row_group = row_groups[0]
        is_small = self._are_small.get(row_group)
        if is_small is None:
            is_small = self._are_small[row_group] = self._is_small(row_group)
        return is_small

    def _is_small(self, row_group: int) -> bool:
        if self._spares_footer(row_group):
            return False
        known = self._stored_locations(row_group)
        if known is not None and known.chunks:
            return known.byte_count <= CHUNK_COST * len(known.chunks)
        return self._chunk_bytes(row_group) <= CHUNK_COST

    def _spares_footer(self, row_group: int) -> bool:
        return self.is_stored(row_group) and isinstance(self.file, ObjectFile)

    def _chunks(self, row_groups: Sequence[int], leaves: Sequence[int]) -> list[Range]:
        """Return the byte ranges of the chunks of some leaves.

        The footer is decoded here first: pyarrow ends the process where it has to describe a malformed chunk.
        """
        _ = self.opened.footer
        metadata = self.opened.reader.metadata
        chunks = (metadata.row_group(i).column(leaf) for i in row_groups for leaf in leaves)
        return [(_start(chunk), chunk.total_compressed_size) for chunk in chunks]

    def byte_count(self, row_groups: Sequence[int], names: Sequence[str]) -> int:
        """Return about how many compressed bytes some top-level columns of row groups have."""
        return len(self._leaves_of(names)) * sum(map(self._chunk_bytes, row_groups))

    def _chunk_bytes(self, row_group: int) -> int:
        """Return about how many compressed bytes a column of a row group has; 0 if the file does not have it."""
        sizes = self.opened.known.chunk_bytes
        return sizes[row_group] if row_group < len(sizes) else 0

    def _leaves_of(self, names: Sequence[str]) -> list[int]:
        """Return the ordinals of the leaves of some top-level columns of the file."""
        return self.opened.known.leaves_of(tuple(names))

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
        key = row_group, tuple(names)
        if key not in self._located:
            self._located[key] = None
            with suppress(InvalidParquet):
                self._located[key] = self._locations(row_group, self.head.leaves(names))
        return self._located[key]

    def _locations(self, row_group: int, leaves: Sequence[int]) -> ChunkLocations | None:
        stored = self._stored_locations(row_group)
        known = None if stored is None else stored.of(leaves)
        return known if known is not None and known.has_pages else self._file_locations(row_group, leaves)

    def _stored_locations(self, row_group: int) -> ChunkLocations | None:
        """Return the index's page locations of a row group; None if it has none."""
        if self.stored is None:
            return None
        if row_group not in self._decoded:
            data = self.stored.page_locations.get(row_group)
            self._decoded[row_group] = None
            with suppress(IndexFault):  # the footer has them, too
                self._decoded[row_group] = known_locations(data, self.file.size()) if data else None
        return self._decoded[row_group]

    @cached_property
    def _decoded(self) -> dict[int, ChunkLocations | None]:
        return {}

    @cached_property
    def _located(self) -> dict[tuple[int, tuple[str, ...]], ChunkLocations | None]:
        return {}

    @cached_property
    def _are_small(self) -> dict[int, bool]:
        return {}

    @cached_property
    def _names_of(self) -> dict[tuple[str, ...], list[str]]:
        return {}

    def _file_locations(self, row_group: int, leaves: Sequence[int]) -> ChunkLocations | None:
        """Return page locations from the file itself; None if one of these leaves has none."""
        opened = self.opened
        known = opened.known.page_locations.setdefault(row_group, {})
        unread = [leaf for leaf in leaves if leaf not in known]
        if unread:
            read = read_locations(self.file, opened.footer, row_group, unread, self.gap)
            known.update({leaf: read.chunks.get(leaf) for leaf in unread})
        chunks = {leaf: chunk for leaf in leaves if (chunk := known[leaf]) is not None}
        return ChunkLocations(int(opened.row_count[row_group]), chunks).of(leaves)

    def require_todays_calendar(self, arrays: Sequence[pa.Array]) -> None:
        """Raise OldCalendar if values have days or instants that only Spark converts."""
        if self._is_legacy and any(map(calendars_differ, arrays)):
            raise OldCalendar(
                f"{self.path} holds days before 1582-10-15 or instants before 1900 in the calendar of Spark 2, "
                "which only Spark converts: use plan.to_spark(spark, via='native')"
            )

    @cached_property
    def _is_legacy(self) -> bool:
        if self.stored is not None:
            return has_legacy_calendar(self.head.metadata)
        return self.opened.known.is_legacy


def _numbered(row_groups: Sequence[int]) -> str:
    """Return a name of row groups for an error."""
    if len(row_groups) == 1:
        return f"row group {row_groups[0]}"
    return f"row groups {row_groups[0]} to {row_groups[-1]}"


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    """Return the byte at which a chunk's first page begins; some writers record 0 if there is no dictionary."""
    return min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
