"""Aggregates over the rows of a plan: from statistics if these are exact, reading as few blocks as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from secateur.io.scan.block_reader import block_reader
from secateur.io.scan.planned_scan import PlannedScan, read_ahead
from secateur.io.scan.surviving_blocks import surviving_blocks
from secateur.pruning.aggregates import COUNT, Aggregate, AggregateCall, Answers, bind_aggregate, over_rows
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.resolve import Binder

BY_METADATA, READ = b"blocks_by_metadata", b"blocks_read"  # in the metadata of the schema
FIRST, MOST = 1, 64  # blocks read at once for MIN or MAX, doubled each time


def bound(plan: PlannedScan, calls: Sequence[AggregateCall], *, case_sensitive: bool) -> list[Aggregate]:
    """Bind aggregate calls to a plan's table. Raises UnknownColumn, AmbiguousColumn, InvalidAggregate."""
    binder = Binder(plan.opened.binding_schema, known_zone(plan.session_time_zone), case_sensitive)
    return [bind_aggregate(call, binder) for call in calls]


def aggregated(plan: PlannedScan, asked: Sequence[Aggregate]) -> pa.Table:
    """Return one row of aggregates over the matching rows; the schema's metadata has the number of blocks read.

    Raises UnsupportedPredicate if a block must be read that only Spark can decide, StalePlan, InvalidParquet.
    """
    blocks = plan.survivors.blocks
    answers = Answers(asked, blocks, plan.sure)
    _read(plan, answers, answers.asked, answers.in_doubt)
    at_once = FIRST
    while True:
        still_open, wanted = answers.next(at_once)
        if not len(wanted):
            break
        _read(plan, answers, still_open, wanted)
        at_once = min(2 * at_once, MOST)
    read = len(blocks) - int(np.count_nonzero(answers.unread))
    metadata = {BY_METADATA: str(len(blocks) - read).encode(), READ: str(read).encode()}
    fields = [pa.field(each.name, each.type, nullable=each.function != COUNT) for each in asked]
    columns = [pa.array([answers.found[each]], each.type) for each in asked]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata))


def _read(plan: PlannedScan, answers: Answers, asked: Sequence[Aggregate], positions: np.ndarray) -> None:
    """Read some blocks for the aggregates that need them, with only those delete files that apply to their files."""
    if not len(positions):
        return
    plan.require_supported()
    blocks, opened = plan.survivors.blocks, plan.opened
    schema = opened.readable_schema
    names = dict.fromkeys(each.field.path[0] for each in asked if each.field is not None)
    ordinals = np.unique(blocks.file[positions])
    delivery = opened.table.delivery(opened.listing, ordinals)
    reader = block_reader(opened, delivery, [schema.field(name) for name in names], plan.residuals)
    order = plan.order()
    listed = surviving_blocks(plan, order[np.isin(order, positions)], reader, delivery.told)
    for found in read_ahead(lambda file: over_rows(asked, reader.read(file)), listed.by_file()):
        answers.add(asked, found)
    answers.unread[positions] = False
