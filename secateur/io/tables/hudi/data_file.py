"""A base file of a Hudi table: its statistics for index builds, and its rows, on the driver and on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.errors import StalePlan
from secateur.io.parquet.parquet_file import ParquetFile, open_parquet, open_rows
from secateur.io.parquet.row_group_reader import RowGroupReader
from secateur.io.parquet.row_selection import RowSelection, with_positions
from secateur.io.storage.file_version import ListedFile, still_listed
from secateur.io.tables.file_rows import FileBlocks
from secateur.io.tables.listing import METADATA, metadata_of
from secateur.io.tables.named_file import NamedFile
from secateur.io.tables.page_filter import PagePruner
from secateur.io.tables.places import TablePlaces


def _nothing() -> None:
    """Do nothing: `expire` in a process that caches no snapshot."""


@dataclass(frozen=True)
class HudiReader:
    """Opens the base files of a snapshot."""

    places: TablePlaces
    schema: pa.Schema  # the columns that files hold
    expire: Callable[[], None] = field(default=_nothing, repr=False, compare=False)  # called if a file has vanished

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "expire": _nothing}

    def open(self, path: str) -> NamedFile:
        """Open a base file by its path in the listing. If it has vanished, the next query looks at the timeline.

        Raises StalePlan, InvalidParquet, AccessDenied.
        """
        try:
            return NamedFile(open_parquet(*self.places.of(path), self.places.full_path(path)).rows, self.schema)
        except StalePlan:
            self.expire()
            raise

    def open_rows(self, file: FileBlocks) -> HudiRows:
        """Open the rows of a base file. Raises as :meth:`open`."""
        place = *self.places.of(file.path), self.places.full_path(file.path)
        listed = ListedFile(*place, file.size, 0)
        try:
            rows = open_rows(*place, listed, file.stored)
        except StalePlan:
            self.expire()
            raise
        constants = {METADATA: metadata_of(file.path, file.size), **file.options}
        return HudiRows(NamedFile(rows, self.schema), constants, listed)


@dataclass(frozen=True)
class HudiRows:
    """The rows of one base file; see :class:`secateur.io.tables.file_rows.FileRows`."""

    file: NamedFile
    constants: Mapping[str, pa.Scalar]  # values of the columns that files lack, and `_metadata`
    listed: ListedFile

    @property
    def row_count(self) -> np.ndarray:
        return self.file.row_count

    def positioned(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """Yield the selected rows of some row groups, with their positions within these."""
        return with_positions(self.at(row_groups, fields, rows), rows)

    def at(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of some row groups, or all."""
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
