"""Aggregates over the rows of a plan: from statistics if these are exact, reading as few blocks as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from secateur.io.scan.in_order import ROWS, answered_in_order
from secateur.io.scan.live_rows import complete_rows, live_rows
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.reading.read_ahead import read_ahead
from secateur.io.scan.waves import wave, wave_sizes
from secateur.pruning.aggregates.answers import (
    EXTREMES,
    TOTALS,
    Aggregate,
    AggregateCall,
    Answers,
    bind_aggregate,
    over_rows,
)
from secateur.pruning.aggregates.groups import (
    BlockGroups,
    add,
    bind_group,
    grouped_by_statistics,
    grouped_rows,
    in_order,
)
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Column
from secateur.values.conversion import scalar_of
from secateur.values.key import Key

BY_METADATA, READ = b"blocks_by_metadata", b"blocks_read"  # in the metadata of the schema


def bound(plan: PlannedScan, calls: Sequence[AggregateCall], *, case_sensitive: bool) -> list[Aggregate]:
    """Bind aggregate calls to a plan's table. Raises UnknownColumn, AmbiguousColumn, InvalidAggregate."""
    binder = _binder(plan, case_sensitive)
    return [bind_aggregate(call, binder) for call in calls]


def bound_groups(plan: PlannedScan, names: Sequence[Column], *, case_sensitive: bool) -> list[Field]:
    """Bind the columns of GROUP BY to a plan's table. Raises UnknownColumn, AmbiguousColumn, InvalidAggregate."""
    binder = _binder(plan, case_sensitive)
    return [bind_group(name, binder) for name in names]


def _binder(plan: PlannedScan, case_sensitive: bool) -> Binder:
    return Binder(plan.opened.binding_schema, known_zone(plan.session_time_zone), case_sensitive)


def aggregated(plan: PlannedScan, asked: Sequence[Aggregate]) -> pa.Table:
    """Return one row of aggregates over the matching rows; the schema's metadata has the number of blocks read.

    Raises UnsupportedPredicate if a block must be read that only Spark can decide, StalePlan, InvalidParquet, and
    EvaluationError for a sum that overflows.
    """
    blocks = plan.survivors.blocks
    answers = Answers(asked, blocks, _known_rows(plan, asked))
    keeps_order, by_index = plan.opened.catalog.keeps_order, 0
    if keeps_order:
        by_index += _answer_in_order(plan, answers, answers.asked, answers.in_doubt)
    _read(plan, answers, answers.asked, answers.in_doubt[answers.unread[answers.in_doubt]])
    if keeps_order:
        by_index += _answer_in_order(plan, answers, *answers.next(len(blocks)))
    for most in wave_sizes():
        still_open, wanted = answers.next(most)
        if not len(wanted):
            break
        _read(plan, answers, still_open, wanted)
    read = int(np.count_nonzero(~answers.unread)) - by_index
    columns = [pa.array([aggregate.value(answers.results[aggregate])], aggregate.type) for aggregate in asked]
    schema = pa.schema(_fields(asked), _counts(len(blocks), read))
    return pa.Table.from_arrays(columns, schema=schema)


def grouped(plan: PlannedScan, asked: Sequence[Aggregate], by: Sequence[Field]) -> pa.Table:
    """Return a row of aggregates for every group of the matching rows, in the order of their values.

    Blocks whose rows are all of one group, and all match, are answered by statistics; the others are read, in one pass.
    Raises as :func:`aggregated` does.
    """
    blocks = plan.survivors.blocks
    with_count = [*asked, ROWS]  # a group is one that has rows
    live = _known_rows(plan, asked)
    unread, results = grouped_by_statistics(with_count, blocks, live, BlockGroups.of(by, blocks))
    if len(unread):
        plan.require_supported()
        schema = plan.opened.readable_schema
        fields = [*by, *(aggregate.field for aggregate in asked if aggregate.field is not None)]
        names = dict.fromkeys(field.path[0] for field in fields)
        reader, listed = wave(plan, unread, [schema.field(name) for name in names], plan.residuals)
        files = reader.portions(listed)
        for part in read_ahead(lambda some: grouped_rows(with_count, by, reader.read(*some)), files, reader.at_once):
            for group, others in part.items():
                add(with_count, results, group, others)
    groups = in_order(group for group, values in results.items() if values[-1])
    keys = [_values(field, [group[i] for group in groups]) for i, field in enumerate(by)]
    columns = [
        pa.array([aggregate.value(results[group][i]) for group in groups], aggregate.type)
        for i, aggregate in enumerate(asked)
    ]
    names_of_groups = [pa.field(str(field), field.type) for field in by]
    counted = _counts(len(blocks), len(unread))
    return pa.Table.from_arrays([*keys, *columns], schema=pa.schema([*names_of_groups, *_fields(asked)], counted))


def _known_rows(plan: PlannedScan, asked: Sequence[Aggregate]) -> np.ndarray:
    """Return the rows of the blocks that may be answered: where rows are deleted, only if rows alone are counted."""
    return live_rows(plan) if all(aggregate.field is None for aggregate in asked) else complete_rows(plan)


def _values(field: Field, keys: Sequence[Key | None]) -> pa.Array:
    return pa.array([None if key is None else scalar_of(key, field.type) for key in keys], field.type)


def _fields(asked: Sequence[Aggregate]) -> list[pa.Field]:
    may_be_null = (*EXTREMES, *TOTALS)
    return [pa.field(aggregate.name, aggregate.type, nullable=aggregate.function in may_be_null) for aggregate in asked]


def _counts(blocks: int, read: int) -> dict[bytes, bytes]:
    return {BY_METADATA: str(blocks - read).encode(), READ: str(read).encode()}


def _answer_in_order(plan: PlannedScan, answers: Answers, asked: Sequence[Aggregate], positions: np.ndarray) -> int:
    """Answer for some blocks by the values that the index keeps in order; return for how many."""
    done, results = answered_in_order(plan, asked, positions)
    if len(done):
        answers.add(asked, results)
        answers.unread[done] = False
    return len(done)


def _read(plan: PlannedScan, answers: Answers, asked: Sequence[Aggregate], positions: np.ndarray) -> None:
    """Read some blocks for the aggregates that need them."""
    if not len(positions):
        return
    plan.require_supported()
    schema = plan.opened.readable_schema
    names = dict.fromkeys(aggregate.field.path[0] for aggregate in asked if aggregate.field is not None)
    reader, listed = wave(plan, positions, [schema.field(name) for name in names], plan.residuals)
    files = reader.portions(listed)
    for results in read_ahead(lambda some: over_rows(asked, reader.read(*some)), files, reader.at_once):
        answers.add(asked, results)
    answers.unread[positions] = False
