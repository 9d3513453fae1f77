"""The rows of data files as a table format reads them: the reader's request and its interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from secateur.ragged import offsets_of

if TYPE_CHECKING:
    from secateur.io.parquet.parquet_file import ParquetFile
    from secateur.io.parquet.row_group_reader import RowGroupReader, StoredRows
    from secateur.io.parquet.row_selection import RowSelection
    from secateur.io.tables.page_filter import PagePruner


@dataclass(frozen=True)
class FileBlocks:
    """Some row groups of one file: everything that a reader needs to know."""

    path: str
    size: int  # bytes of the whole file when it was listed
    stamp: int  # as listed
    witness: int  # distinguishes it from another file in its place
    row_groups: tuple[int, ...]
    residual: tuple[int, ...]  # for every row group, indices into the reader's residuals
    rows: tuple[RowSelection | None, ...]  # for every row group the rows that may match; None: all
    options: Mapping[str, pa.Scalar]  # reader options from the table's listing
    stored: StoredRows | None = None  # page locations from the index


class FileRows(Protocol):
    """The live rows of one file."""

    @property
    def row_count(self) -> np.ndarray:
        """Rows of every row group, deleted ones included."""

    @property
    def constants(self) -> Mapping[str, pa.Scalar]:
        """Columns that have one value in the file and are not read from it."""

    def positioned(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """Yield the selected rows of row groups, or all, without deleted ones: top-level columns that are not constant.

        Every batch comes with the positions of its rows, ascending, numbered through the row groups.
        """

    def at(
        self, row_groups: Sequence[int], fields: Sequence[pa.Field], rows: RowSelection | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield exactly the selected rows of row groups, or all, deleted or not: values of top-level columns."""

    @property
    def pages(self) -> PagePruner:
        """The pruner that uses the file's own page index."""

    @property
    def reader(self) -> RowGroupReader[ParquetFile]:
        """The reader of the file's row groups."""

    def names(self, fields: Sequence[pa.Field]) -> list[str]:
        """Return the file's names of those columns that it has."""


@dataclass(frozen=True)
class Delivery:
    """How the rows of some files are read, in this or in another process."""

    options: pa.StructArray  # (n_files,), reader options besides path and size
    open: Callable[[FileBlocks], FileRows]  # pickled if the reader is in another process
    at_once: int  # files that it pays to read at the same time
    is_local: bool  # whether no read waits for a request, so that small files can be read one after the other


def positions_in_file(row_count: np.ndarray, row_groups: Sequence[int], positions: np.ndarray) -> np.ndarray:
    """Return the positions in their file of rows numbered through some row groups: int64, ascending as `positions`.

    `row_count` has the rows of every row group of the file.
    """
    chosen = np.asarray(row_groups)
    first, begin = offsets_of(row_count)[chosen], offsets_of(row_count[chosen])[:-1]
    return positions + (first - begin)[np.searchsorted(begin, positions, "right") - 1]
