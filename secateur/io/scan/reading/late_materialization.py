"""Late materialization: read the predicate's columns first, and of the others only the pages with matching rows.

If the other columns have few bytes, or would be read almost completely, or the rows are few, all columns are read at
once; so are they after row groups of which hardly anything could be left out. Source: Abadi et al., "Materialization
Strategies in a Column-Oriented DBMS", ICDE 2007.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from secateur.arrays import flags, from_numpy
from secateur.io.parquet.arrow_types import batch_of
from secateur.io.parquet.dictionary_texts import looked_up, may_be_encoded
from secateur.io.parquet.row_selection import (
    LEAST_SHARE,
    MOST_SLICES,
    RowSelection,
    chosen_rows,
    end_to_end,
    with_positions,
)
from secateur.io.scan.reading.passed_rows import PassedRows
from secateur.io.scan.row_places import POSITION
from secateur.io.tables.file_rows import FileRows, positions_in_file
from secateur.io.tables.partitions import constant
from secateur.pruning.predicate.bound_walks import columns
from secateur.pruning.predicate.nodes import Predicate
from secateur.ragged import offsets_of

PAGE_CELL, MOST_HIT = 4096, 0.9  # rows, fewer than most pages have; share of such cells in the first batch with a match
FEW_ROWS = 16  # rows that row lists chose: each is likely to match, and a second read would cost a round trip
SAMPLED = 64  # every so many of dense matches tell whether they lie in all pages
LEAST_GAIN = 0.2  # of the other columns' bytes: a second read of a row group takes about a tenth of its time
WEIGHT = 0.25  # of the row group read last
CELL = 256  # rows; pages have more, so selecting whole cells costs no more than rows
RowGroups: TypeAlias = tuple[int, ...]  # of one file, read as one; their rows are numbered through them
Matches: TypeAlias = Generator[pa.RecordBatch, None, frozenset[int]]  # returns the row groups that have a match
Tested: TypeAlias = tuple[np.ndarray, pa.RecordBatch, np.ndarray]  # with positions, and which rows meet a condition
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

    def among(self, batch: pa.RecordBatch, selected: np.ndarray) -> np.ndarray:
        """Return which of the selected rows of a batch meet the condition, which is evaluated on no other row."""
        passing = selected.copy()
        if selected.any():
            tested = batch.select([name for name in batch.schema.names if name in self.columns])
            passing[selected] = self(tested.filter(flags(selected)))
        return passing


@dataclass
class Gain:
    """What reading other columns later has spared, or would have, in the row groups read so far; threads share it."""

    share: float = 1.0  # of the bytes of the other columns, the last row groups counting most
    is_expected: bool = True  # before any row group was read

    def note(self, spared: float) -> None:
        """Note what share was spared in some row groups."""
        self.share = spared if self.is_expected else self.share + WEIGHT * (spared - self.share)
        self.is_expected = False

    @property
    def is_little(self) -> bool:
        """Whether reading all columns at once is expected to take less time."""
        return self.share < LEAST_GAIN


@dataclass(frozen=True)
class FilteredRead:
    """What is read of the rows that meet a condition."""

    condition: RowCondition
    wanted: Sequence[pa.Field]  # what is returned of them
    fields: Sequence[pa.Field]  # these, and all columns of the condition
    gain: Gain = field(default_factory=Gain, compare=False)

    @cached_property
    def first(self) -> list[pa.Field]:
        """The columns of the condition."""
        return [column for column in self.fields if column.name in self.condition.columns]

    @cached_property
    def others(self) -> list[pa.Field]:
        """The returned columns that the condition does not need."""
        return [column for column in self.wanted if column.name not in self.condition.columns]


@dataclass(frozen=True)
class OpenedRows:
    """The rows of an open file, with the columns that are constant in it."""

    source: FileRows
    constants: Mapping[str, pa.Scalar]
    has_positions: bool = False  # whether the column `_pos` is the rows' positions in the file

    def together(
        self, rows_of: Mapping[int, RowSelection | None], fields: Sequence[pa.Field], read: FilteredRead | None
    ) -> Iterator[RowGroups]:
        """Yield row groups, of which some rows are selected, in order: those together that are read as one.

        These are small, or all their columns are read at once and whole.
        """
        reader, names = self.source.reader, self.source.names(self._stored(fields))

        def is_dense(row_group: int) -> bool:
            at_once = read is None or read.gain.is_little
            return at_once and not reader.is_read_by_pages((row_group,), names, rows_of[row_group])

        return reader.together([*rows_of], names, is_dense)

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
        if read.gain.is_little or (rows is not None and len(rows) <= FEW_ROWS):
            return None
        others = self._stored(read.others)
        if not others or not self._stored(read.first) or self._is_light(row_groups, others, rows):
            return None
        return read.first, others

    def _is_light(self, row_groups: RowGroups, fields: Sequence[pa.Field], rows: RowSelection | None) -> bool:
        """Return whether columns are so few bytes that reading them later would cost more."""
        return self.source.reader.is_light(row_groups, self.source.names(fields), rows)

    def _straight(self, row_groups: RowGroups, rows: RowSelection | None, read: FilteredRead) -> Matches:
        """Yield the matching rows, reading all columns at once."""
        passed = PassedRows()
        names = [column.name for column in read.wanted]
        cut, chosen = rows, None  # the rows that are read, and those of them that are tested; None for all
        if rows is not None and not (self._are_few(row_groups, rows) or self._has_pages(row_groups, read, rows)):
            cut, chosen = None, rows  # testing some among all takes less time than cutting the others away first
        for positions, batch in self.live(row_groups, may_be_encoded(read.fields), cut):
            passing = read.condition(batch) if chosen is None else read.condition.among(batch, chosen.among(positions))
            if passed.add(positions, passing):
                yield looked_up(chosen_of(batch.select(names), passing), names)
        return self._matched(row_groups, read, passed)

    def _are_few(self, row_groups: RowGroups, rows: RowSelection) -> bool:
        """Return whether selected rows are copied one by one, which takes less time than testing the others, too."""
        return len(rows) < LEAST_SHARE * self.source.reader.row_count_of(row_groups)

    def _has_pages(self, row_groups: RowGroups, read: FilteredRead, rows: RowSelection) -> bool:
        """Return whether selected rows of all columns of a read are read by their pages."""
        return self.source.reader.is_read_by_pages(row_groups, self.source.names(self._stored(read.fields)), rows)

    def _late(
        self,
        row_groups: RowGroups,
        split: tuple[Sequence[pa.Field], Sequence[pa.Field]],
        rows: RowSelection | None,
        read: FilteredRead,
    ) -> Matches:
        """Yield the matching rows: read the condition's columns first, and the others selectively if few rows match."""
        first, others = split
        names = [column.name for column in read.wanted if column.name in read.condition.columns]
        passed = PassedRows()
        parts: list[pa.RecordBatch] = []
        batches = self.live(row_groups, may_be_encoded(first), rows)
        tested = ((positions, batch, read.condition(batch)) for positions, batch in batches)
        for positions, batch, passing in tested:
            if not parts and len(row_groups) == 1 and _hits_most_pages(positions, passing):
                return (yield from self._in_step(row_groups, rows, read, chain([(positions, batch, passing)], tested)))
            passed.add(positions, passing)
            parts.append(looked_up(chosen_of(batch.select(names), passing), names))
        matched = self._matched(row_groups, read, passed)
        if not matched:
            return matched
        chosen, known, given = passed.positions, pa.Table.from_batches(parts), 0
        for batch in self.at(row_groups, others, chosen):
            begin, given = given, given + batch.num_rows
            if not names:
                yield self.complete(batch, read.wanted, row_groups, chosen[begin:given])
                continue
            texts = _combined(known.slice(begin, batch.num_rows))
            schema = pa.schema([*texts.schema, *batch.schema])
            for part in pa.Table.from_arrays([*texts.columns, *batch.columns], schema=schema).to_batches():
                yield self.complete(part, read.wanted, row_groups, chosen[begin : begin + part.num_rows])
                begin += part.num_rows
        return matched

    def _in_step(
        self, row_groups: RowGroups, rows: RowSelection | None, read: FilteredRead, tested: Iterator[Tested]
    ) -> Matches:
        """Yield the matching rows, of which most pages hold one: other columns are read batch by batch, too."""
        passed = PassedRows()
        others = (batch for _, batch in self.live(row_groups, may_be_encoded(self._stored(read.others)), rows))
        for positions, batch, passing, rest in _aligned(tested, others):
            whole = pa.RecordBatch.from_arrays(
                [*batch.columns, *rest.columns], schema=pa.schema([*batch.schema, *rest.schema])
            )
            if passed.add(positions, passing):
                rows_here = chosen_of(self.complete(whole, read.wanted, row_groups, positions), passing)
                yield looked_up(rows_here, rows_here.schema.names)
        return self._matched(row_groups, read, passed)

    def _matched(self, row_groups: RowGroups, read: FilteredRead, passed: PassedRows) -> frozenset[int]:
        """Return the row groups that hold the matches, and note what reading other columns later spares there."""
        if not passed.batches:
            read.gain.note(1.0)
            return frozenset()
        if len(row_groups) == 1:
            read.gain.note(self._gain_by_pages(row_groups[0], self._stored(read.others), passed, 0))
            return frozenset(row_groups)
        ends = offsets_of(self.source.row_count[list(row_groups)])
        held = passed.with_match(ends)
        first = int(np.argmax(held))  # the others are taken to be like the first that has one
        in_first = passed.between(*ends[first : first + 2].tolist())
        by_pages = self._gain_by_pages(row_groups[first], self._stored(read.others), in_first, int(ends[first]))
        read.gain.note(1.0 - float(held.mean()) * (1.0 - by_pages))
        return frozenset(row_groups[i] for i in np.flatnonzero(held).tolist())

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
        near = self._near(row_groups, positions)
        if near is not None and len(near) == len(positions):
            yield from self.source.at(row_groups, fields, near)
            return
        if near is None or not self.source.reader.is_read_by_pages(row_groups, self.source.names(fields), near):
            yield from self._among_all(row_groups, fields, positions)
            return
        wanted = np.zeros(int(positions[-1]) + 1, bool)
        wanted[positions] = True
        for rows, batch in with_positions(self.source.at(row_groups, fields, near), near):
            of_batch = wanted[rows]
            if of_batch.any():
                yield batch.filter(flags(of_batch))

    def _near(self, row_groups: RowGroups, positions: np.ndarray) -> RowSelection | None:
        """Return the rows at some positions, with those between if they are many; None if no page can be left out."""
        count = self.source.reader.row_count_of(row_groups)
        if len(positions) >= LEAST_SHARE * count and _fill_cells(positions[::SAMPLED], count):
            return None
        if np.count_nonzero(positions[1:] > positions[:-1] + 1) < MOST_SLICES:
            return chosen_rows(positions)
        cell = positions // CELL
        cells = chosen_rows(cell[np.append(True, cell[1:] != cell[:-1])])
        return RowSelection(cells.start * CELL, (cells.stop * CELL).clip(max=positions[-1] + 1))

    def _gain_by_pages(self, row_group: int, fields: Sequence[pa.Field], passed: PassedRows, begin: int) -> float:
        """Return the share of stored columns' bytes that a read of some rows leaves out of a row group.

        The rows are numbered from the row group's first, which has the number `begin`.
        """
        if self.source.reader.is_read_whole((row_group,)):
            return 0.0
        count = self.source.reader.row_count_of((row_group,))
        if len(passed) >= LEAST_SHARE * count and _fill_cells(passed.sampled(SAMPLED) - begin, count):
            return 0.0
        near = self._near((row_group,), passed.positions - begin)
        return 0.0 if near is None else self.source.reader.gain(row_group, self.source.names(fields), near)

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
        with_match = [row_groups[i] for i in np.flatnonzero(held).tolist()]
        for batch in self.source.at(with_match, may_be_encoded(fields), None):
            of_batch = wanted[begin : begin + batch.num_rows]
            begin += batch.num_rows
            if of_batch.any():
                yield looked_up(chosen_of(batch, of_batch), batch.schema.names)

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
        return batch_of(arrays, fields)

    def _in_file(self, row_groups: RowGroups, positions: np.ndarray) -> pa.Array:
        """Return the positions in the file of rows of some row groups."""
        return from_numpy(positions_in_file(self.source.row_count, row_groups, positions))


def _combined(rows: pa.Table) -> pa.Table:
    """Return rows in one chunk; in several if their texts exceed one."""
    return rows.combine_chunks()


def _aligned(
    tested: Iterator[Tested], others: Iterator[pa.RecordBatch]
) -> Iterator[tuple[np.ndarray, pa.RecordBatch, np.ndarray, pa.RecordBatch]]:
    """Yield other columns of the same rows beside those that were tested, however both are cut into batches."""
    rest = None
    for positions, batch, passing in tested:
        begin = 0
        while begin < batch.num_rows:
            if rest is None or not rest.num_rows:
                rest = next(others)
            end = min(batch.num_rows, begin + rest.num_rows)
            here = slice(begin, end)
            yield positions[here], batch.slice(begin, end - begin), passing[here], rest.slice(0, end - begin)
            rest, begin = rest.slice(end - begin), end
    deque(others, 0)  # at its end a read checks the file


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


def _fill_cells(positions: np.ndarray, count: int) -> bool:
    """Return whether rows at some positions lie in all pages of a row group of so many rows."""
    return _distinct(positions // PAGE_CELL) >= count // PAGE_CELL


def _distinct(ascending: np.ndarray) -> int:
    """Count different values."""
    return int(np.count_nonzero(ascending[1:] != ascending[:-1])) + min(1, len(ascending))
