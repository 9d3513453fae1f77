"""The rows of data files as a table format reads them: the reader's request and its interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from secateur.io.parquet.row_group_reader import StoredRows
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
        self, row_group: int, fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """Yield the selected rows of a row group, or all, without deleted ones: top-level columns that are not
        constant.

        Every batch comes with the positions of its rows within the row group, ascending.
        """

    def at(self, row_group: int, fields: Sequence[pa.Field], rows: RowSelection) -> Iterator[pa.RecordBatch]:
        """Yield exactly the selected rows of a row group, deleted or not: values of top-level columns."""

    @property
    def pages(self) -> PagePruner:
        """The pruner that uses the file's own page index."""

    def is_light(self, row_group: int, fields: Sequence[pa.Field], rows: RowSelection | None) -> bool:
        """Return whether the values of some columns are so few bytes that a separate request would cost more."""


@dataclass(frozen=True)
class Delivery:
    """How the rows of some files are read, in this or in another process."""

    options: pa.StructArray  # (n_files,), reader options besides path and size
    open: Callable[[FileBlocks], FileRows]  # pickled if the reader is in another process
