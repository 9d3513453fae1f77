"""An open Parquet file of a table whose files are never written twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secateur.index.zones.page_locations import FileLocations
from secateur.io.parquet.parquet_file import ParquetFile
from secateur.io.parquet.row_group_reader import RowGroupReader


@dataclass(frozen=True, eq=False)
class ImmutableFile:
    """The facts in a file's footer that do not depend on how the table names its columns."""

    rows: RowGroupReader[ParquetFile]

    @property
    def path(self) -> str:
        return self.rows.path

    @property
    def source(self) -> ParquetFile:
        """The file with its footer."""
        return self.rows.opened

    @property
    def row_count(self) -> np.ndarray:
        return self.source.row_count

    @property
    def byte_count(self) -> np.ndarray:
        return self.source.byte_count

    def end(self) -> int:
        """0: a data file is never written twice."""
        return 0

    def page_locations(self) -> FileLocations:
        """Return what is needed to read single pages of all row groups."""
        return self.source.page_locations()
