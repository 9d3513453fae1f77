"""Late materialization: read the predicate's columns first, and of the others only the pages with matching rows.

If the other columns have few bytes, or would be read almost completely, or the rows are few, all columns are read at
once; so are they after row groups of which hardly anything could be left out. Source: Abadi et al., "Materialization
Strategies in a Column-Oriented DBMS", ICDE 2007.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from secateur.io.parquet.dictionary_texts import looked_up, may_be_encoded
from secateur.io.parquet.row_selection import LEAST_SHARE, RowSelection
from secateur.io.scan.reading.filtered_read import FilteredRead
from secateur.io.scan.reading.opened_rows import SAMPLED, OpenedRows, RowGroups, cell_count, chosen_of, fill_cells
from secateur.io.scan.reading.passed_rows import PassedRows
from secateur.ragged import offsets_of

MOST_HIT = 0.9  # share of the cells of rows in the first batch that hold a match
FEW_ROWS = 16  # rows that row lists chose: each is likely to match, and a second read would cost a round trip
Matches: TypeAlias = Generator[pa.RecordBatch, None, frozenset[int]]  # returns the row groups that have a match
Tested: TypeAlias = tuple[np.ndarray, pa.RecordBatch, np.ndarray]  # with positions, and which rows meet a condition


def matching(opened: OpenedRows, row_groups: RowGroups, rows: RowSelection | None, read: FilteredRead) -> Matches:
    """Yield the live rows that meet a condition, among the selected rows or all.

    At the end, return the row groups that have such a row.
    """
    if not opened.source.reader.is_read_whole(row_groups):
        rows = opened.source.pages.may_match(row_groups[0], read.condition.predicate, rows)
    if rows is not None and not len(rows):
        return frozenset()
    steps = two_steps(opened, row_groups, rows, read)
    if steps is None:
        return (yield from _straight(opened, row_groups, rows, read))
    return (yield from _late(opened, row_groups, steps, rows, read))


def two_steps(
    opened: OpenedRows, row_groups: RowGroups, rows: RowSelection | None, read: FilteredRead
) -> tuple[list[pa.Field], list[pa.Field]] | None:
    """Return the columns of a condition, and the stored ones to read after them; None to read all at once."""
    if read.gain.is_little or (rows is not None and len(rows) <= FEW_ROWS):
        return None
    others = opened.stored(read.others)
    if not others or not opened.stored(read.first) or _is_light(opened, row_groups, others, rows):
        return None
    return read.first, others


def _is_light(opened: OpenedRows, row_groups: RowGroups, fields: Sequence[pa.Field], rows: RowSelection | None) -> bool:
    """Return whether columns are so few bytes that reading them later would cost more."""
    return opened.source.reader.is_light(row_groups, opened.source.names(fields), rows)


def _straight(opened: OpenedRows, row_groups: RowGroups, rows: RowSelection | None, read: FilteredRead) -> Matches:
    """Yield the matching rows, reading all columns at once."""
    passed = PassedRows()
    names = [column.name for column in read.wanted]
    cut, chosen = rows, None  # the rows that are read, and those of them that are tested; None for all
    if rows is not None and not (_are_few(opened, row_groups, rows) or _has_pages(opened, row_groups, read, rows)):
        cut, chosen = None, rows  # testing some among all takes less time than cutting the others away first
    for positions, batch in opened.live(row_groups, may_be_encoded(read.fields), cut):
        passing = read.condition(batch) if chosen is None else read.condition.among(batch, chosen.among(positions))
        if passed.add(positions, passing):
            yield looked_up(chosen_of(batch.select(names), passing), names)
    return _matched(opened, row_groups, read, passed)


def _are_few(opened: OpenedRows, row_groups: RowGroups, rows: RowSelection) -> bool:
    """Return whether selected rows are copied one by one, which takes less time than testing the others, too."""
    return len(rows) < LEAST_SHARE * opened.source.reader.row_count_of(row_groups)


def _has_pages(opened: OpenedRows, row_groups: RowGroups, read: FilteredRead, rows: RowSelection) -> bool:
    """Return whether selected rows of all columns of a read are read by their pages."""
    return opened.source.reader.is_read_by_pages(row_groups, opened.source.names(opened.stored(read.fields)), rows)


def _late(
    opened: OpenedRows,
    row_groups: RowGroups,
    steps: tuple[Sequence[pa.Field], Sequence[pa.Field]],
    rows: RowSelection | None,
    read: FilteredRead,
) -> Matches:
    """Yield the matching rows: read the condition's columns first, and the others selectively if few rows match."""
    first, others = steps
    names = [column.name for column in read.wanted if column.name in read.condition.columns]
    passed = PassedRows()
    parts: list[pa.RecordBatch] = []
    batches = opened.live(row_groups, may_be_encoded(first), rows)
    tested = ((positions, batch, read.condition(batch)) for positions, batch in batches)
    for positions, batch, passing in tested:
        if not parts and len(row_groups) == 1 and _hits_most_pages(positions, passing):
            return (yield from _in_step(opened, row_groups, rows, read, chain([(positions, batch, passing)], tested)))
        passed.add(positions, passing)
        parts.append(looked_up(chosen_of(batch.select(names), passing), names))
    matched = _matched(opened, row_groups, read, passed)
    if not matched:
        return matched
    chosen, known, given = passed.positions, pa.Table.from_batches(parts), 0
    for batch in opened.at(row_groups, others, chosen):
        begin, given = given, given + batch.num_rows
        if not names:
            yield opened.complete(batch, read.wanted, row_groups, chosen[begin:given])
            continue
        texts = _combined(known.slice(begin, batch.num_rows))
        schema = pa.schema([*texts.schema, *batch.schema])
        for part in pa.Table.from_arrays([*texts.columns, *batch.columns], schema=schema).to_batches():
            yield opened.complete(part, read.wanted, row_groups, chosen[begin : begin + part.num_rows])
            begin += part.num_rows
    return matched


def _in_step(
    opened: OpenedRows, row_groups: RowGroups, rows: RowSelection | None, read: FilteredRead, tested: Iterator[Tested]
) -> Matches:
    """Yield the matching rows, of which most pages hold one: other columns are read batch by batch, too."""
    passed = PassedRows()
    others = (batch for _, batch in opened.live(row_groups, may_be_encoded(opened.stored(read.others)), rows))
    for positions, batch, passing, rest in _aligned(tested, others):
        whole = pa.RecordBatch.from_arrays(
            [*batch.columns, *rest.columns], schema=pa.schema([*batch.schema, *rest.schema])
        )
        if passed.add(positions, passing):
            rows_here = chosen_of(opened.complete(whole, read.wanted, row_groups, positions), passing)
            yield looked_up(rows_here, rows_here.schema.names)
    return _matched(opened, row_groups, read, passed)


def _matched(opened: OpenedRows, row_groups: RowGroups, read: FilteredRead, passed: PassedRows) -> frozenset[int]:
    """Return the row groups that hold the matches, and note what reading other columns later spares there."""
    if not passed.batches:
        read.gain.note(1.0)
        return frozenset()
    if len(row_groups) == 1:
        read.gain.note(_gain_by_pages(opened, row_groups[0], opened.stored(read.others), passed, 0))
        return frozenset(row_groups)
    ends = offsets_of(opened.source.row_count[list(row_groups)])
    held = passed.with_match(ends)
    first = int(np.argmax(held))  # the others are taken to be like the first that has one
    in_first = passed.between(*ends[first : first + 2].tolist())
    by_pages = _gain_by_pages(opened, row_groups[first], opened.stored(read.others), in_first, int(ends[first]))
    read.gain.note(1.0 - float(held.mean()) * (1.0 - by_pages))
    return frozenset(row_groups[i] for i in np.flatnonzero(held).tolist())


def _gain_by_pages(
    opened: OpenedRows, row_group: int, fields: Sequence[pa.Field], passed: PassedRows, begin: int
) -> float:
    """Return the share of stored columns' bytes that a read of some rows leaves out of a row group.

    The rows are numbered from the row group's first, which has the number `begin`.
    """
    if opened.source.reader.is_read_whole((row_group,)):
        return 0.0
    count = opened.source.reader.row_count_of((row_group,))
    if len(passed) >= LEAST_SHARE * count and fill_cells(passed.sampled(SAMPLED) - begin, count):
        return 0.0
    near = opened.near((row_group,), passed.positions - begin)
    return 0.0 if near is None else opened.source.reader.gain(row_group, opened.source.names(fields), near)


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


def _hits_most_pages(positions: np.ndarray, passing: np.ndarray) -> bool:
    """Return whether matches are so dense that nearly every page of other columns is needed."""
    return cell_count(positions[passing]) > MOST_HIT * cell_count(positions)
