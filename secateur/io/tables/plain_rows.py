"""The rows of a file that has the table's column names and no deleted rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from secateur.io.parquet.row_selection import RowSelection, with_positions
from secateur.io.storage.file_version import ListedFile, still_listed
from secateur.io.tables.page_filter import PagePruner

if TYPE_CHECKING:
    from secateur.io.parquet.parquet_file import ParquetFile
    from secateur.io.parquet.row_group_reader import RowGroupReader


@dataclass(frozen=True)
class PlainRows:
    """The rows of one file; see :class:`secateur.io.tables.file_rows.FileRows`."""

    reader: RowGroupReader[ParquetFile]
    constants: Mapping[str, pa.Scalar]  # values of the columns that are not read from the file, and `_metadata`
    listed: ListedFile

    @property
    def row_count(self) -> np.ndarray:
        return self.reader.opened.row_count

    def positioned(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """Yield the selected rows of some row groups, with their positions within these."""
        return with_positions(self.at(row_groups, fields, rows), rows)

    def at(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of some row groups, or all."""
        return still_listed(self.reader.read(row_groups, fields, rows), self.listed)

    @cached_property
    def pages(self) -> PagePruner:
        """The file's own page index."""
        return PagePruner(lambda: self.reader.opened, self.constants, self.reader.is_stored)

    def names(self, fields: Sequence[pa.Field]) -> list[str]:
        """Return the file's names of those columns that it has."""
        return self.reader.names(fields)
