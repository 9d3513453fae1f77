"""The rows of an open file, with the columns that are constant in it: of some row groups, or at some positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from secateur.io.scan.reading.filtered_read import FilteredRead
from secateur.io.scan.row_places import POSITION
from secateur.io.tables.file_rows import FileRows, positions_in_file
from secateur.io.tables.partitions import constant
from secateur.ragged import offsets_of

PAGE_CELL = 4096  # rows, fewer than most pages have
SAMPLED = 64  # every so many of dense matches tell whether they lie in all pages
CELL = 256  # rows; pages have more, so selecting whole cells costs no more than rows
RowGroups: TypeAlias = tuple[int, ...]  # of one file, read as one; their rows are numbered through them
Positioned: TypeAlias = tuple[np.ndarray, pa.RecordBatch]  # a batch with its rows' positions in the row groups


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
        reader, names = self.source.reader, self.source.names(self.stored(fields))

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
        for positions, batch in self.source.positioned(row_groups, self.stored(fields), rows):
            yield positions, self.complete(batch, fields, row_groups, positions) if fields else batch

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
        near = self.near(row_groups, positions)
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

    def near(self, row_groups: RowGroups, positions: np.ndarray) -> RowSelection | None:
        """Return the rows at some positions, with those between if they are many; None if no page can be left out."""
        count = self.source.reader.row_count_of(row_groups)
        if len(positions) >= LEAST_SHARE * count and fill_cells(positions[::SAMPLED], count):
            return None
        if np.count_nonzero(positions[1:] > positions[:-1] + 1) < MOST_SLICES:
            return chosen_rows(positions)
        cell = positions // CELL
        cells = chosen_rows(cell[np.append(True, cell[1:] != cell[:-1])])
        return RowSelection(cells.start * CELL, (cells.stop * CELL).clip(max=positions[-1] + 1))

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

    def stored(self, fields: Sequence[pa.Field]) -> list[pa.Field]:
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


def chosen_of(batch: pa.RecordBatch, chosen: np.ndarray) -> pa.RecordBatch:
    """Return the chosen rows of a batch, which may have no column; `chosen` is bool of shape (rows,)."""
    count = int(np.count_nonzero(chosen))
    if count == len(chosen) or not batch.num_columns:
        return batch.slice(0, count)
    return batch.filter(flags(chosen))


def cell_count(positions: np.ndarray) -> int:
    """Count the cells of PAGE_CELL rows in which rows at some ascending positions lie."""
    cells = positions // PAGE_CELL
    return int(np.count_nonzero(cells[1:] != cells[:-1])) + min(1, len(cells))


def fill_cells(positions: np.ndarray, count: int) -> bool:
    """Return whether rows at some positions lie in all pages of a row group of so many rows."""
    return cell_count(positions) >= count // PAGE_CELL
