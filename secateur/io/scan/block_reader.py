"""Read surviving blocks: row groups in, batches of the wanted columns and only the matching rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from secateur.io.parquet.row_selection import RowSelection
from secateur.io.scan.block_list import BlockList
from secateur.io.scan.late_materialization import OpenedRows, Positioned, RowCondition, RowGroups
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.row_places import FILE, POSITION, places_among
from secateur.io.tables.file_rows import Delivery, FileBlocks, FileRows
from secateur.io.tables.listing import METADATA
from secateur.pruning.predicate.bound import columns, is_supported
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.residual import Residuals
from secateur.pruning.rows.truth import matching_rows

BATCH_BYTES = 16 << 20  # maximum size of a batch that is handed on


WithoutMatch: TypeAlias = Callable[[FileBlocks, int, Sequence[int]], None]
# gets a file, a residual by its index, and the row groups of the file in which it is TRUE on no row


@dataclass(frozen=True)
class BlockReader:
    """How to read blocks of a table: which columns come out, and which rows."""

    open: Callable[[FileBlocks], FileRows]
    fields: tuple[pa.Field, ...]  # of the returned batches
    needed: tuple[pa.Field, ...]  # these and those of the predicate
    residuals: tuple[Predicate | None, ...]  # conditions on rows; None: every row is returned
    shadowing: frozenset[str] = frozenset()  # columns of the files named like one that Spark hides
    places: frozenset[str] = frozenset()  # fields that say where a row lies
    at_once: int = 1  # files that it pays to read at the same time
    rows: Callable[[Predicate, pa.RecordBatch], np.ndarray] = matching_rows  # or possible_rows, if Spark checks again
    without_match: WithoutMatch | None = None  # called for row groups whose rows were all looked at

    def read(self, blocks: FileBlocks) -> Iterator[pa.RecordBatch]:
        """Yield the batches of some row groups of one file, with exactly the matching rows."""
        names = [field.name for field in self.fields]
        return (part for batch in self._matching(blocks) for part in bounded(batch.select(names)))

    def read_all(self, blocks: BlockList) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a list of blocks, file by file."""
        for file in blocks.by_file():
            yield from self.read(file)

    def count(self, blocks: FileBlocks) -> int:
        """Count the matching rows in some row groups of one file."""
        return sum(batch.num_rows for batch in self._matching(blocks))

    def positioned(self, blocks: FileBlocks) -> Iterator[tuple[int, np.ndarray, pa.RecordBatch]]:
        """Yield the live rows of some row groups of one file, ignoring residuals: the needed columns, batch by batch.

        Every batch comes with its row group and the positions of its rows within that.
        """
        for row_group, of_row_group in zip(blocks.row_groups, self.live(blocks), strict=True):
            for positions, batch in of_row_group:
                yield row_group, positions, batch

    def live(self, blocks: FileBlocks) -> Iterator[Iterator[Positioned]]:
        """Yield for each row group of one file its live rows with their positions; the file is opened once."""
        opened = self._opened(blocks)
        for row_group, rows in zip(blocks.row_groups, blocks.rows, strict=True):
            yield opened.live((row_group,), self.needed, rows)

    def counts(self, blocks: FileBlocks) -> Iterator[tuple[int, int]]:
        """Count the matching and the live rows of each row group of one file."""
        opened = self._opened(blocks)
        for row_group, residual, rows in zip(blocks.row_groups, blocks.residual, blocks.rows, strict=True):
            matching = sum(batch.num_rows for batch in self._matching_in(blocks, opened, (row_group,), residual, rows))
            yield matching, sum(len(positions) for positions, _ in opened.live((row_group,), (), None))

    def _matching(self, blocks: FileBlocks) -> Iterator[pa.RecordBatch]:
        opened = self._opened(blocks)
        rows_of = dict(zip(blocks.row_groups, blocks.rows, strict=True))
        for residual, pairs in groupby(zip(blocks.residual, blocks.row_groups, strict=True), itemgetter(0)):
            for row_groups in opened.together([row_group for _, row_group in pairs], self.needed):
                rows = opened.selection(row_groups, [rows_of[row_group] for row_group in row_groups])
                yield from self._matching_in(blocks, opened, row_groups, residual, rows)

    def _matching_in(
        self, file: FileBlocks, opened: OpenedRows, row_groups: RowGroups, residual: int, rows: RowSelection | None
    ) -> Iterator[pa.RecordBatch]:
        condition = self._conditions[residual]
        if condition is None:
            yield from (batch for _, batch in opened.live(row_groups, self.needed, rows) if batch.num_rows)
            return
        hit = yield from opened.matching(row_groups, self.needed, rows, condition)
        if self.without_match is not None and len(hit) < len(row_groups):  # who stops before the end learns nothing
            self.without_match(file, residual, [row_group for row_group in row_groups if row_group not in hit])

    @cached_property
    def _conditions(self) -> list[RowCondition | None]:
        return [None if predicate is None else RowCondition(predicate, self.rows) for predicate in self.residuals]

    def _opened(self, blocks: FileBlocks) -> OpenedRows:
        source = self.open(blocks)
        constants = {name: value for name, value in source.constants.items() if name not in self.shadowing}
        if FILE in self.places:
            constants[FILE] = pa.scalar(blocks.path)
        return OpenedRows(source, constants, has_positions=POSITION in self.places)


def bounded(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch into parts of at most BATCH_BYTES, or of a single row."""
    step = -(-batch.num_rows // max(1, -(-batch.nbytes // BATCH_BYTES)))
    return (batch.slice(at, step) for at in range(0, batch.num_rows, max(1, step)))


def block_reader(
    opened: OpenedTable,
    delivery: Delivery,
    fields: Sequence[pa.Field],
    residuals: Residuals,
    names: Iterable[str] = (),
) -> BlockReader:
    """Return the reader of the given columns, plus those that residuals and `names` need.

    A residual that only Spark can evaluate filters nothing here.
    """
    available, known = opened.readable_schema, {field.name for field in fields}
    used = [] if residuals.whole is None else columns(residuals.whole)
    extra = [available.field(name) for name in dict.fromkeys([*used, *names]) if name not in known]
    checked = tuple(
        residual if residual is not None and is_supported(residual) else None for residual in residuals.distinct
    )
    shadowing = frozenset({METADATA} if opened.listing.has_metadata_column else ())
    places = places_among(fields, available)
    return BlockReader(
        delivery.open, tuple(fields), (*fields, *extra), checked, shadowing, places, at_once=delivery.at_once
    )
