"""Read small row groups of several files as one piece of work: a condition is evaluated on the rows of all at once.

Some thousand rows are decoded in less time than Python needs around them, so what can be done once for many is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from secateur.arrays import flags
from secateur.io.parquet.row_group_reader import MOST_TOGETHER
from secateur.io.parquet.row_selection import RowSelection
from secateur.io.scan.reading.filtered_read import FilteredRead, RowCondition
from secateur.io.scan.reading.late_materialization import two_steps
from secateur.io.scan.reading.opened_rows import OpenedRows, Positioned, RowGroups
from secateur.io.tables.file_rows import FileBlocks
from secateur.ragged import offsets_of

COPIED = 1 << 20  # bytes of rows that are copied into one batch


@dataclass(frozen=True)
class FilePart:
    """Row groups of one file that are read as one."""

    file: FileBlocks
    residual: int  # an index into the reader's residuals
    read: FilteredRead | None  # by that residual; None: all rows match
    opened: OpenedRows
    row_groups: RowGroups
    rows: RowSelection | None  # the selected ones, numbered through the row groups; None: all

    @property
    def is_small(self) -> bool:
        """Whether its columns are read whole."""
        return self.opened.source.reader.is_read_whole(self.row_groups)

    @property
    def byte_count(self) -> int:
        """About how many compressed bytes all its columns have."""
        reader = self.opened.source.reader
        return reader.byte_count(self.row_groups, reader.all_names)


def portions(parts: Iterable[FilePart]) -> Iterator[list[FilePart]]:
    """Yield parts in order, as many at once as may be held in memory."""
    held: list[FilePart] = []
    size = 0
    for part in parts:
        more = part.byte_count
        if held and size + more > MOST_TOGETHER:
            yield held
            held, size = [], 0
        held.append(part)
        size += more
    if held:
        yield held


@dataclass(frozen=True)
class TestedParts:
    """The live rows of small row groups that meet their conditions."""

    batches: tuple[pa.RecordBatch, ...]  # in order
    row_groups: tuple[frozenset[int], ...]  # for every part, those that have such a row


def matching_rows_of(parts: Sequence[FilePart]) -> TestedParts:
    """Read the live rows of parts that meet their conditions, all of which need the same columns, at least one.

    Where columns that no condition needs have many bytes, they are read of those row groups alone that have such a row.
    """
    read = parts[0].read
    assert read is not None, "required of the caller"
    first, wanted = read.condition.columns, read.wanted
    looks = [_first_look(part) for part in parts]
    if not any(look.batches for look in looks):
        return TestedParts((), (frozenset(),) * len(parts))
    tested = _all_rows(looks, read.first).combine_chunks()
    begin = offsets_of(np.array([look.row_count for look in looks])).tolist()
    passed = _passed(tested, parts, begin)
    of_parts = [passed[start:stop] for start, stop in pairwise(begin)]
    chosen = [look.positions(hits) for look, hits in zip(looks, of_parts, strict=True)]
    hit = tuple(look.row_groups_at(rows) for look, rows in zip(looks, chosen, strict=True))
    read.gain.note(1 - sum(map(len, hit)) / sum(len(part.row_groups) for part in parts))
    if not passed.any():
        return TestedParts((), hit)
    if not wanted:
        return TestedParts(tuple(tested.select([]).slice(0, int(np.count_nonzero(passed))).to_batches()), hit)
    known = _cut(tested.select([field.name for field in wanted if field.name in first]), passed)
    if all(look.later is None for look in looks):
        rest = _cut(_all_rows(looks, read.others), passed)
    else:
        rest = _rows_later(looks, read.others, of_parts, chosen)
    columns = _columns(known, rest)
    rows = pa.Table.from_arrays([columns[field.name] for field in wanted], schema=pa.schema(wanted))
    in_one = rows.combine_chunks() if rows.nbytes <= COPIED else rows
    return TestedParts(tuple(in_one.to_batches()), hit)


def _all_rows(looks: Sequence[_FirstLook], fields: Sequence[pa.Field]) -> pa.Table:
    """Return some columns that all looks have read, of all their rows."""
    names = [field.name for field in fields]
    return pa.Table.from_batches([batch.select(names) for look in looks for _, batch in look.batches])


def _cut(rows: pa.Table, passed: np.ndarray) -> pa.Table:
    """Return the rows that passed, which are not copied if all did."""
    return rows if passed.all() else rows.filter(flags(passed))


def _rows_later(
    looks: Sequence[_FirstLook],
    fields: Sequence[pa.Field],
    hits: Sequence[np.ndarray],
    positions: Sequence[np.ndarray],
) -> pa.Table:
    """Return some columns of the rows of every look that match, of which some looks read these columns now."""
    batches: list[pa.RecordBatch] = []
    for look, of_look, rows in zip(looks, hits, positions, strict=True):
        if len(rows):
            batches.extend(look.rest(fields, of_look, rows))
    return pa.Table.from_batches(batches, pa.schema(fields))


def _passed(tested: pa.Table, parts: Sequence[FilePart], begin: Sequence[int]) -> np.ndarray:
    """Return which rows meet the condition of their part; part i has the rows from begin[i] to begin[i + 1]."""
    reads = {part.residual: part.read for part in parts}
    places: dict[int, list[tuple[int, int]]] = {residual: [] for residual in reads}
    for part, place in zip(parts, pairwise(begin), strict=True):
        places[part.residual].append(place)
    passed = np.zeros(len(tested), bool)
    for residual, of_condition in places.items():
        read = reads[residual]
        assert read is not None, "required of the caller"
        if len(places) == 1:
            return _of(read.condition, tested)
        rows = pa.concat_tables([tested.slice(start, stop - start) for start, stop in of_condition])
        hits, at = _of(read.condition, rows.combine_chunks()), 0
        for start, stop in of_condition:
            passed[start:stop] = hits[at : at + stop - start]
            at += stop - start
    return passed


def _of(condition: RowCondition, rows: pa.Table) -> np.ndarray:
    """Return which rows meet a condition."""
    return np.concatenate([np.zeros(0, bool), *map(condition, rows.to_batches())])


def _columns(*tables: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name: column for table in tables for name, column in zip(table.column_names, table.columns, strict=True)}


@dataclass(frozen=True)
class _FirstLook:
    """The live rows of a part with the columns of a condition, or with all where these are read at once."""

    part: FilePart
    batches: Sequence[Positioned]
    later: Sequence[pa.Field] | None  # the stored columns that are read of row groups with a match; None: all were read

    @property
    def row_count(self) -> int:
        return sum(batch.num_rows for _, batch in self.batches)

    def positions(self, hits: np.ndarray) -> np.ndarray:
        """Return where some of the rows lie in the row groups."""
        if not hits.any():
            return np.zeros(0, np.int64)
        positions = [of_batch for of_batch, _ in self.batches]
        return (positions[0] if len(positions) == 1 else np.concatenate(positions)).compress(hits)

    def row_groups_at(self, positions: np.ndarray) -> frozenset[int]:
        """Return which row groups hold the rows at some positions."""
        if not len(positions):
            return frozenset()
        return frozenset(self.part.opened.row_groups_at(self.part.row_groups, positions))

    def rest(self, fields: Sequence[pa.Field], hits: np.ndarray, positions: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Yield columns that the condition does not need, of the rows that meet it."""
        opened, row_groups = self.part.opened, self.part.row_groups
        names = [field.name for field in fields]
        if self.later is None:
            yield from _cut(_all_rows([self], fields), hits).to_batches()
            return
        begin = 0
        for batch in opened.at(row_groups, self.later, positions):
            end = begin + batch.num_rows
            yield (
                batch
                if batch.schema.names == names
                else opened.complete(batch, fields, row_groups, positions[begin:end])
            )
            begin = end


def _first_look(part: FilePart) -> _FirstLook:
    assert part.read is not None, "required of the caller"
    steps = two_steps(part.opened, part.row_groups, part.rows, part.read)
    first, later = (part.read.fields, None) if steps is None else steps
    return _FirstLook(part, list(part.opened.live(part.row_groups, first, part.rows)), later)
