"""Late materialization: read the predicate's columns first, and of the others only the pages with matching rows.

If the other columns have few bytes, or would be read almost completely, or the rows are few, all columns are read at
once. Source: Abadi et al., "Materialization Strategies in a Column-Oriented DBMS", ICDE 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from secateur.arrays import flags, from_numpy
from secateur.io.parquet.row_selection import (
    LEAST_SHARE,
    MOST_SLICES,
    RowSelection,
    chosen_rows,
    end_to_end,
    with_positions,
)
from secateur.io.scan.row_places import POSITION
from secateur.io.tables.file_rows import FileRows, positions_in_file
from secateur.io.tables.partitions import constant
from secateur.pruning.predicate.bound import columns
from secateur.pruning.predicate.nodes import Predicate
from secateur.ragged import offsets_of

PAGE_CELL, MOST_HIT = 4096, 0.9  # rows, fewer than most pages have; share of such cells in the first batch with a match
FEW_ROWS = 16  # rows that row lists chose: each is likely to match, and a second read would cost a round trip
SAMPLED = 64  # every so many of dense matches tell whether they lie in all pages
CELL = 256  # rows; pages have more, so selecting whole cells costs no more than rows
RowGroups: TypeAlias = tuple[int, ...]  # of one file, read as one; their rows are numbered through them
Matches: TypeAlias = Generator[pa.RecordBatch, None, frozenset[int]]  # returns the row groups that have a match
Positioned: TypeAlias = tuple[np.ndarray, pa.RecordBatch]  # a batch with its rows' positions in the row groups


@dataclass(frozen=True)
class RowCondition:
    """A condition on rows."""

    predicate: Predicate
    rows: Callable[[Predicate, pa.RecordBatch], np.ndarray]  # bool, for a batch that has the predicate's columns

    @cached_property
    def columns(self) -> frozenset[str]:
        """The top-level columns that the condition needs."""
        return frozenset(columns(self.predicate))

    def __call__(self, batch: pa.RecordBatch) -> np.ndarray:
        return self.rows(self.predicate, batch)


@dataclass(frozen=True)
class FilteredRead:
    """What is read of the rows that meet a condition."""

    condition: RowCondition
    wanted: Sequence[pa.Field]  # what is returned of them
    fields: Sequence[pa.Field]  # these, and all columns of the condition


@dataclass(frozen=True)
class OpenedRows:
    """The rows of an open file, with the columns that are constant in it."""

    source: FileRows
    constants: Mapping[str, pa.Scalar]
    has_positions: bool = False  # whether the column `_pos` is the rows' positions in the file

    def together(self, row_groups: Sequence[int], fields: Sequence[pa.Field]) -> Iterator[RowGroups]:
        """Yield row groups in order, small ones that follow each other together."""
        return self.source.reader.together(row_groups, self.source.names(self._stored(fields)))

    def selection(self, row_groups: RowGroups, rows: Sequence[RowSelection | None]) -> RowSelection | None:
        """Return the selected rows of each of some row groups, numbered through them; None for all."""
        if len(row_groups) == 1:
            return rows[0]
        if all(selected is None for selected in rows):
            return None
        return end_to_end(rows, self.source.row_count[list(row_groups)])

    def live(
        self, row_groups: RowGroups, fields: Sequence[pa.Field], rows: RowSelection | None
    ) -> Iterator[Positioned]:
        """Yield the selected rows, or all, without deleted ones."""
        for positions, batch in self.source.positioned(row_groups, self._stored(fields), rows):
            yield positions, self.complete(batch, fields, row_groups, positions) if fields else batch

    def matching(self, row_groups: RowGroups, rows: RowSelection | None, read: FilteredRead) -> Matches:
        """Yield the live rows that meet a condition, among the selected rows or all.

        At the end, return the row groups that have such a row.
        """
        if not self.source.reader.is_read_whole(row_groups):
            rows = self.source.pages.may_match(row_groups[0], read.condition.predicate, rows)
        if rows is not None and not len(rows):
            return frozenset()
        split = self.split(row_groups, rows, read)
        if split is None:
            return (yield from self._straight(row_groups, rows, read))
        return (yield from self._late(row_groups, split, rows, read))

    def split(
        self, row_groups: RowGroups, rows: RowSelection | None, read: FilteredRead
    ) -> tuple[list[pa.Field], list[pa.Field]] | None:
        """Return the columns of a condition, and the stored ones to read after them; None to read all at once."""
        first = [field for field in read.fields if field.name in read.condition.columns]
        others = [field for field in self._stored(read.wanted) if field.name not in read.condition.columns]
        few = rows is not None and len(rows) <= FEW_ROWS
        if few or not self._stored(first) or not others or self._is_light(row_groups, others, rows):
            return None
        return first, others

    def _is_light(self, row_groups: RowGroups, fields: Sequence[pa.Field], rows: RowSelection | None) -> bool:
        """Return whether columns are so few bytes that reading them later would cost more."""
        return self.source.reader.is_light(row_groups, self.source.names(fields), rows)

    def _straight(self, row_groups: RowGroups, rows: RowSelection | None, read: FilteredRead) -> Matches:
        """Yield the matching rows, reading all columns at once."""
        hit: set[int] = set()
        names = [field.name for field in read.wanted]
        for positions, batch in self.live(row_groups, read.fields, rows):
            passed = read.condition(batch)
            if passed.any():
                hit |= self.row_groups_at(row_groups, positions.compress(passed))
                yield chosen_of(batch.select(names), passed)
        return frozenset(hit)

    def _late(
        self,
        row_groups: RowGroups,
        split: tuple[Sequence[pa.Field], Sequence[pa.Field]],
        rows: RowSelection | None,
        read: FilteredRead,
    ) -> Matches:
        """Yield the matching rows: read the condition's columns first, and the others selectively if few rows match."""
        first, others = split
        names = [field.name for field in read.wanted if field.name in read.condition.columns]
        in_memory = self.source.reader.is_held(row_groups, self.source.names(self._stored(read.fields)))
        passed = [np.zeros(0, np.int64)]
        parts: list[pa.RecordBatch] = []
        for positions, batch in self.live(row_groups, first, rows):
            passing = read.condition(batch)
            if not parts and not in_memory and _hits_most_pages(positions, passing):
                return (yield from self._straight(row_groups, rows, read))
            passed.append(positions.compress(passing))
            parts.append(chosen_of(batch.select(names), passing))
        chosen = np.concatenate(passed)
        if not len(chosen):
            return frozenset()
        known, given = pa.Table.from_batches(parts), 0
        for batch in self.at(row_groups, others, chosen):
            begin, given = given, given + batch.num_rows
            if not names:
                yield self.complete(batch, read.wanted, row_groups, chosen[begin:given])
                continue
            texts = known.slice(begin, batch.num_rows).combine_chunks()  # the texts of all batches may exceed one chunk
            schema = pa.schema([*texts.schema, *batch.schema])
            for part in pa.Table.from_arrays([*texts.columns, *batch.columns], schema=schema).to_batches():
                yield self.complete(part, read.wanted, row_groups, chosen[begin : begin + part.num_rows])
                begin += part.num_rows
        return frozenset(self.row_groups_at(row_groups, chosen))

    def row_groups_at(self, row_groups: RowGroups, positions: np.ndarray) -> set[int]:
        """Return which of some row groups hold the rows at some positions, ascending; at least one."""
        if len(row_groups) == 1:
            return {*row_groups}
        return {row_groups[i] for i in np.flatnonzero(self._with_rows(row_groups, positions)).tolist()}

    def _with_rows(self, row_groups: RowGroups, positions: np.ndarray) -> np.ndarray:
        """Return which of some row groups hold rows at some ascending positions: bool of shape (n_row_groups,)."""
        before = np.searchsorted(positions, offsets_of(self.source.row_count[list(row_groups)]))
        return before[1:] > before[:-1]

    def at(self, row_groups: RowGroups, fields: Sequence[pa.Field], positions: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Yield the rows at some positions, deleted or not; rows between close ranges are read, too."""
        if self.source.reader.is_read_whole(row_groups):
            if len(positions) < LEAST_SHARE * self.source.row_count[list(row_groups)].sum():
                yield from self.source.at(row_groups, fields, chosen_rows(positions))
            else:
                yield from self._among_all(row_groups, fields, positions)
            return
        count = self.source.reader.row_count_of(row_groups)
        if len(positions) >= LEAST_SHARE * count and _distinct(positions[::SAMPLED] // PAGE_CELL) >= count // PAGE_CELL:
            yield from self._among_all(row_groups, fields, positions)  # no page is left out
            return
        if np.count_nonzero(positions[1:] > positions[:-1] + 1) < MOST_SLICES:
            yield from self.source.at(row_groups, fields, chosen_rows(positions))
            return
        cell = positions // CELL
        cells = chosen_rows(cell[np.append(True, cell[1:] != cell[:-1])])
        near = RowSelection(cells.start * CELL, (cells.stop * CELL).clip(max=positions[-1] + 1))
        if not self.source.reader.is_read_by_pages(row_groups, self.source.names(fields), near):
            yield from self._among_all(row_groups, fields, positions)
            return
        wanted = np.zeros(int(positions[-1]) + 1, bool)
        wanted[positions] = True
        for rows, batch in with_positions(self.source.at(row_groups, fields, near), near):
            of_batch = wanted[rows]
            if of_batch.any():
                yield batch.filter(flags(of_batch))

    def _among_all(
        self, row_groups: RowGroups, fields: Sequence[pa.Field], positions: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows at some positions, reading all rows of the row groups that hold one."""
        counts, held = self.source.row_count[list(row_groups)], self._with_rows(row_groups, positions)
        wanted = np.zeros(int(counts.sum()), bool)
        wanted[positions] = True
        if not held.all():
            wanted = wanted[np.repeat(held, counts)]
        begin = 0
        for batch in self.source.at([row_groups[i] for i in np.flatnonzero(held).tolist()], fields, None):
            of_batch = wanted[begin : begin + batch.num_rows]
            begin += batch.num_rows
            if of_batch.any():
                yield chosen_of(batch, of_batch)

    def _stored(self, fields: Sequence[pa.Field]) -> list[pa.Field]:
        """Return the fields that are not constant."""
        return [field for field in fields if field.name not in self.constants and not self._is_position(field)]

    def _is_position(self, field: pa.Field) -> bool:
        return self.has_positions and field.name == POSITION

    def complete(
        self, batch: pa.RecordBatch, fields: Sequence[pa.Field], row_groups: RowGroups, positions: np.ndarray
    ) -> pa.RecordBatch:
        """Return the fields in order: from a batch, or if the batch lacks them from constants, or from positions."""
        names = batch.schema.names
        if names == [field.name for field in fields]:
            return batch
        n, has = batch.num_rows, frozenset(names)
        arrays = [
            batch.column(field.name)
            if field.name in has
            else self._in_file(row_groups, positions)
            if self._is_position(field)
            else constant(self.constants[field.name], n)
            for field in fields
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _in_file(self, row_groups: RowGroups, positions: np.ndarray) -> pa.Array:
        """Return the positions in the file of rows of some row groups."""
        return from_numpy(positions_in_file(self.source.row_count, row_groups, positions))


def chosen_of(batch: pa.RecordBatch, chosen: np.ndarray) -> pa.RecordBatch:
    """Return the chosen rows of a batch, which may have no column; `chosen` is bool of shape (rows,)."""
    count = int(np.count_nonzero(chosen))
    if count == len(chosen) or not batch.num_columns:
        return batch.slice(0, count)
    return batch.filter(flags(chosen))


def _hits_most_pages(positions: np.ndarray, passing: np.ndarray) -> bool:
    """Return whether matches are so dense that nearly every page of other columns is needed."""
    cells = positions // PAGE_CELL
    return _distinct(cells[passing]) > MOST_HIT * _distinct(cells)


def _distinct(ascending: np.ndarray) -> int:
    """Count different values."""
    return int(np.count_nonzero(ascending[1:] != ascending[:-1])) + min(1, len(ascending))
