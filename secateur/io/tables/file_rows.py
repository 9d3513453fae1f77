"""The rows of data files as a table format gives them: what a reader is asked for, and what it answers."""

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
    """Some row groups of one file: what a reader is told, and all of it."""

    path: str
    size: int  # bytes of the whole file when it was listed
    modified: int  # when, in nanoseconds, or what the table's listing has in place of it
    witness: int  # what tells it from another in its place
    row_groups: tuple[int, ...]
    residual: tuple[int, ...]  # of every row group, among the reader's
    rows: tuple[RowSelection | None, ...]  # of every row group those that may match; None: all
    told: Mapping[str, pa.Scalar]  # what the table's listing tells readers of the file
    stored: StoredRows | None = None  # what the index tells of where their pages lie


class FileRows(Protocol):
    """The rows of one file, as the table has them."""

    @property
    def row_count(self) -> np.ndarray:
        """Rows of every row group, deleted ones too."""

    @property
    def constants(self) -> Mapping[str, pa.Scalar]:
        """Columns that have one value in the file, which is not read for them."""

    def positioned(
        self, row_group: int, fields: Sequence[pa.Field], rows: RowSelection | None = None
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """The chosen rows of a row group, or all, that are not deleted: some top-level columns, none of them constant.

        Every batch with the positions of its rows within the row group, which ascend.
        """

    def at(self, row_group: int, fields: Sequence[pa.Field], rows: RowSelection) -> Iterator[pa.RecordBatch]:
        """Exactly the chosen rows of a row group, whether they are deleted or not: values of top-level columns."""

    @property
    def pages(self) -> PagePruner:
        """What the file's own page index rules out."""

    def is_light(self, row_group: int, fields: Sequence[pa.Field], rows: RowSelection | None) -> bool:
        """Whether values of some columns are so few bytes that reading them costs less than a request of their own."""


@dataclass(frozen=True)
class Delivery:
    """How the rows of some files are read, here or in another process."""

    told: pa.StructArray  # of every file, what its reader is told besides its path and size
    open: Callable[[FileBlocks], FileRows]  # pickled where the reader is in another process
