"""Aggregates over the rows of a plan: from statistics if these are exact, reading as few blocks as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.read_ahead import read_ahead
from secateur.io.scan.waves import wave, wave_sizes
from secateur.pruning.aggregates import COUNT, Aggregate, AggregateCall, Answers, bind_aggregate, over_rows
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.resolve import Binder

BY_METADATA, READ = b"blocks_by_metadata", b"blocks_read"  # in the metadata of the schema


def bound(plan: PlannedScan, calls: Sequence[AggregateCall], *, case_sensitive: bool) -> list[Aggregate]:
    """Bind aggregate calls to a plan's table. Raises UnknownColumn, AmbiguousColumn, InvalidAggregate."""
    binder = Binder(plan.opened.binding_schema, known_zone(plan.session_time_zone), case_sensitive)
    return [bind_aggregate(call, binder) for call in calls]


def aggregated(plan: PlannedScan, asked: Sequence[Aggregate]) -> pa.Table:
    """Return one row of aggregates over the matching rows; the schema's metadata has the number of blocks read.

    Raises UnsupportedPredicate if a block must be read that only Spark can decide, StalePlan, InvalidParquet.
    """
    blocks = plan.survivors.blocks
    answers = Answers(asked, blocks, plan.complete_blocks)
    _read(plan, answers, answers.asked, answers.in_doubt)
    for most in wave_sizes():
        still_open, wanted = answers.next(most)
        if not len(wanted):
            break
        _read(plan, answers, still_open, wanted)
    read = len(blocks) - int(np.count_nonzero(answers.unread))
    metadata = {BY_METADATA: str(len(blocks) - read).encode(), READ: str(read).encode()}
    fields = [pa.field(aggregate.name, aggregate.type, nullable=aggregate.function != COUNT) for aggregate in asked]
    columns = [pa.array([answers.results[aggregate]], aggregate.type) for aggregate in asked]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata))


def _read(plan: PlannedScan, answers: Answers, asked: Sequence[Aggregate], positions: np.ndarray) -> None:
    """Read some blocks for the aggregates that need them."""
    if not len(positions):
        return
    plan.require_supported()
    schema = plan.opened.readable_schema
    names = dict.fromkeys(aggregate.field.path[0] for aggregate in asked if aggregate.field is not None)
    reader, listed = wave(plan, positions, [schema.field(name) for name in names], plan.residuals)
    for results in read_ahead(lambda file: over_rows(asked, reader.read(file)), listed.by_file(), reader.at_once):
        answers.add(asked, results)
    answers.unread[positions] = False
