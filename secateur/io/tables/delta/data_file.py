"""A Parquet file of a Delta table: its statistics for index builds, and its live rows, on the driver and on executors.

Tables that map columns are read by :class:`secateur.io.tables.mapped_file.MappedFile`, others by name. Executors need
neither the log nor a library for deletion vectors: the driver sends them the positions of deleted rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from secateur.arrays import flags
from secateur.errors import StalePlan
from secateur.io.parquet.known_footer import GivenFooter
from secateur.io.parquet.parquet_file import ParquetFile, open_parquet, open_rows
from secateur.io.parquet.row_group_reader import RowGroupReader
from secateur.io.parquet.row_selection import RowSelection, with_positions
from secateur.io.storage.file_version import ListedFile, still_listed
from secateur.io.tables.field_ids import called_by_id
from secateur.io.tables.file_rows import FileBlocks, positions_in_file
from secateur.io.tables.listing import FileConstants
from secateur.io.tables.mapped_file import MappedFile, View
from secateur.io.tables.named_file import NamedFile
from secateur.io.tables.page_filter import PagePruner
from secateur.io.tables.places import TablePlaces

if TYPE_CHECKING:
    from secateur.io.tables.delta.schema import TableMetadata


def _nothing() -> None:
    """Do nothing: `expire` in a process that caches no snapshot."""


@dataclass(frozen=True)
class Naming:
    """How the files of a table name its columns."""

    schema: pa.Schema  # the columns that files hold
    view: View | None  # None: by name

    @staticmethod
    def of(metadata: TableMetadata) -> Naming:
        """Return how files of a table are read by a query."""
        if metadata.mapping is None:
            return Naming(metadata.data_schema, None)
        by_name = metadata.mode == "name"
        view = View(
            metadata.data_schema,
            mapping=metadata.mapping if by_name else None,
            by_name=by_name,
            without_ids="it was not written by a writer that maps columns by id",
        )
        return Naming(metadata.data_schema, view)

    def by_id(self) -> Naming:
        """Return how files are read by a build, whose columns are named by id where the table maps them."""
        if self.view is None:
            return self
        schema = called_by_id(self.schema)
        view = View(schema, mapping=self.view.mapping, by_name=self.view.by_name, without_ids=self.view.without_ids)
        return Naming(schema, view)

    def opened(self, rows: RowGroupReader[ParquetFile]) -> NamedFile | MappedFile:
        """Return a file with the table's columns."""
        return NamedFile(rows, self.schema) if self.view is None else MappedFile(rows, self.view)


@dataclass(frozen=True)
class DeltaReader:
    """Opens the data files of a snapshot."""

    places: TablePlaces
    naming: Naming
    expire: Callable[[], None] = field(default=_nothing, repr=False, compare=False)  # called if a file has vanished

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "expire": _nothing}

    def open(self, path: str, given: GivenFooter | None = None) -> NamedFile | MappedFile:
        """Open a data file by its path in the listing. If it has vanished, the next query looks for a new version.

        Raises StalePlan, InvalidParquet, AccessDenied.
        """
        try:
            return self.naming.opened(
                open_parquet(*self.places.of(path), self.places.full_path(path), given=given).rows
            )
        except StalePlan:
            self.expire()
            raise

    def open_rows(self, file: FileBlocks) -> DeltaRows:
        """Open the live rows of a data file. Raises as :meth:`open`."""
        redacted = self.places.full_path(file.path)
        listed = ListedFile(*self.places.of(file.path), redacted, file.size, 0)
        deleted = np.frombuffer(file.options["deleted"].as_py() or b"", np.int64)
        constants = FileConstants(file.path, file.size, dict(file.options["partition"]))
        try:
            # Positions of deleted rows count from the first row of the file, which only the footer gives.
            rows = open_rows(*self.places.of(file.path), redacted, listed, None if len(deleted) else file.stored)
        except StalePlan:
            self.expire()
            raise
        return DeltaRows(self.naming.opened(rows), constants, deleted, listed)


@dataclass(frozen=True)
class DeltaRows:
    """The live rows of one data file; see :class:`secateur.io.tables.file_rows.FileRows`."""

    file: NamedFile | MappedFile
    constants: Mapping[str, pa.Scalar]  # partition values, and `_metadata`
    deleted: np.ndarray  # positions in the file, ascending
    listed: ListedFile

    @property
    def row_count(self) -> np.ndarray:
        return self.file.row_count

    def positioned(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """Yield the selected rows that are not deleted, with their positions within the row groups."""
        for positions, batch in with_positions(self.at(row_groups, fields, rows), rows):
            if not len(self.deleted):
                yield positions, batch
                continue
            in_file = positions_in_file(self.row_count, row_groups, positions)
            alive = ~np.isin(in_file, self.deleted, assume_unique=True)
            yield positions[alive], batch if alive.all() else batch.filter(flags(alive))

    def at(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of some row groups, or all, deleted or not."""
        return still_listed(self.file.read_selected(row_groups, fields, rows), self.listed)

    @cached_property
    def pages(self) -> PagePruner:
        """The file's own page index."""
        return PagePruner(lambda: self.file, self.constants, self.file.rows.is_stored)

    @property
    def reader(self) -> RowGroupReader[ParquetFile]:
        """The reader of the file's row groups."""
        return self.file.rows

    def names(self, fields: Sequence[pa.Field]) -> list[str]:
        """Return the file's names of those columns that it has."""
        return self.file.names(fields)
