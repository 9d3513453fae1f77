"""Read surviving blocks: row groups in, batches of the wanted columns and only the matching rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from secateur.io.scan.block_list import BlockList
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.reading.filtered_read import FilteredRead, Gain, RowCondition
from secateur.io.scan.reading.late_materialization import matching
from secateur.io.scan.reading.opened_rows import OpenedRows, Positioned
from secateur.io.scan.reading.small_row_groups import FilePart, matching_rows_of, portions
from secateur.io.scan.row_places import FILE, POSITION, places_among
from secateur.io.tables.file_rows import Delivery, FileBlocks, FileRows
from secateur.io.tables.listing import METADATA
from secateur.pruning.predicate.bound_walks import columns, is_supported
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.residual import Residuals
from secateur.pruning.rows.truth import matching_rows

BATCH_BYTES = 16 << 20  # maximum size of a batch that is handed on
PORTIONS, MOST_FILES = 4, 16  # for a thread, so that none waits long for another; of files in one
LEAST_PORTION = 512 << 10  # compressed bytes: some 3 ms of decoding, below which threads cost more than they save


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
    is_local: bool = False  # whether small files are read one after the other, and no read waits for a request
    rows: Callable[[Predicate, pa.RecordBatch], np.ndarray] = matching_rows  # or possible_rows, if Spark checks again
    gains: tuple[float, ...] = ()  # for every residual, what reading its columns first is expected to spare; none: all
    without_match: WithoutMatch | None = None  # called for row groups whose rows were all looked at

    def read(self, *files: FileBlocks) -> Iterator[pa.RecordBatch]:
        """Yield the batches of some row groups of files, with exactly the matching rows."""
        names = [field.name for field in self.fields]
        return (part for batch in self._matching(files) for part in bounded(batch.select(names)))

    def read_all(self, blocks: BlockList) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a list of blocks, file by file."""
        for files in self.portions(blocks):
            yield from self.read(*files)

    def count(self, *files: FileBlocks) -> int:
        """Count the matching rows in some row groups of files."""
        return sum(batch.num_rows for batch in self._matching(files))

    def portions(self, blocks: BlockList) -> Iterator[list[FileBlocks]]:
        """Yield files in order, several at once where that saves time: each portion is for one thread."""
        files = blocks.by_file()
        wanted = max(1, int(min(PORTIONS * self.at_once, blocks.byte_count / LEAST_PORTION)))
        share = -(-blocks.files.num_rows // wanted)
        most = max(1, min(MOST_FILES, share)) if self.is_local else 1
        while portion := list(islice(files, most)):
            yield portion

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
            part = FilePart(blocks, residual, self._reads[residual], opened, (row_group,), rows)
            matching = sum(batch.num_rows for batch in self._matching_in(part))
            yield matching, sum(len(positions) for positions, _ in opened.live((row_group,), (), None))

    def _matching(self, files: Sequence[FileBlocks]) -> Iterator[pa.RecordBatch]:
        several = len(files) > 1
        for first, run in groupby(self._parts(files), lambda part: _tested_together(part) if several else None):
            if first is None:
                for part in run:
                    yield from self._matching_in(part)
                continue
            for parts in portions(run):
                matching = matching_rows_of(parts)
                for part, hit in zip(parts, matching.row_groups, strict=True):
                    self._tell(part, hit)
                yield from matching.batches

    def _parts(self, files: Sequence[FileBlocks]) -> Iterator[FilePart]:
        """Yield the row groups of files in order, those of a file together that are read as one."""
        for file in files:
            opened = self._opened(file)
            blocks = zip(file.residual, file.row_groups, file.rows, strict=True)
            for residual, of_residual in groupby(blocks, itemgetter(0)):
                rows_of, read = {row_group: rows for _, row_group, rows in of_residual}, self._reads[residual]
                for row_groups in opened.together(rows_of, self.needed, read):
                    rows = opened.selection(row_groups, [rows_of[row_group] for row_group in row_groups])
                    yield FilePart(file, residual, read, opened, row_groups, rows)

    def _matching_in(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        opened, row_groups, rows = part.opened, part.row_groups, part.rows
        if part.read is None:
            yield from (batch for _, batch in opened.live(row_groups, self.fields, rows) if batch.num_rows)
            return
        hit = yield from matching(opened, row_groups, rows, part.read)
        self._tell(part, hit)  # who stops before the end learns nothing

    def _tell(self, part: FilePart, hit: frozenset[int]) -> None:
        """Tell which row groups of a part have no match, where that is asked."""
        if self.without_match is not None and len(hit) < len(part.row_groups):
            without = [row_group for row_group in part.row_groups if row_group not in hit]
            self.without_match(part.file, part.residual, without)

    @cached_property
    def _reads(self) -> list[FilteredRead | None]:
        gains = self.gains or (1.0,) * len(self.residuals)
        return [
            None if predicate is None else self._read_by(predicate, Gain(gain))
            for predicate, gain in zip(self.residuals, gains, strict=True)
        ]

    def _read_by(self, predicate: Predicate, gain: Gain) -> FilteredRead:
        condition = RowCondition(predicate, self.rows)
        names = condition.columns | {field.name for field in self.fields}
        return FilteredRead(condition, self.fields, [field for field in self.needed if field.name in names], gain)

    @cached_property
    def _constant_names(self) -> list[str]:
        """The needed columns that may be constant in a file."""
        return [field.name for field in self.needed if field.name not in self.shadowing]

    def _opened(self, blocks: FileBlocks) -> OpenedRows:
        source = self.open(blocks)
        known = source.constants
        constants = {name: known[name] for name in self._constant_names if name in known}
        if FILE in self.places:
            constants[FILE] = pa.scalar(blocks.path)
        return OpenedRows(source, constants, has_positions=POSITION in self.places)


def _tested_together(part: FilePart) -> frozenset[str] | None:
    """Return the columns of the condition of a part whose rows are tested with those of others; None for any other."""
    if part.read is None or not part.read.condition.columns or not part.is_small:
        return None
    return part.read.condition.columns


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
    gains: tuple[float, ...] = (),
) -> BlockReader:
    """Return the reader of the given columns, plus those that residuals and `names` need.

    A residual that only Spark can evaluate filters nothing here. For `gains` see :func:`.expected_gain.expected_gains`.
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
        delivery.open,
        tuple(fields),
        (*fields, *extra),
        checked,
        shadowing,
        places,
        at_once=delivery.at_once,
        is_local=delivery.is_local,
        gains=gains,
    )
