"""What statistics say about a query's aggregates, so that Spark reads only the other blocks."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from secateur.errors import SecateurError
from secateur.io.scan.live_rows import complete_rows, live_rows
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark.planner.protocol import NOTHING_KNOWN, internal_texts, text_of
from secateur.pruning.aggregates.answers import Aggregate, AggregateCall, Result, bind_aggregate, by_statistics
from secateur.pruning.aggregates.groups import bind_group
from secateur.pruning.aggregates.known_groups import known_groups
from secateur.pruning.aggregates.order_free import is_order_free
from secateur.pruning.aggregates.sums import Total
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Column
from secateur.pruning.predicate.resolve import Binder

MOST_DELETE_BYTES = 8 << 20  # of delete files, read for a count while Spark plans
MOST_GROUPS = 10_000  # rows of a reply: with three aggregates 0.4 MB, made in 20 ms


@dataclass(frozen=True)
class Rest:
    """The scan of the blocks that are left to read, and the aggregates over those that are not, encoded for Java."""

    scan: PlannedScan
    known: bytes = NOTHING_KNOWN
    left_out: int = 0
    columns: bytes = NOTHING_KNOWN  # see column_statistics.py

    @property
    def note(self) -> str:
        """What ``explain()`` says about the blocks that are left out."""
        return f"; statistics answer for {self.left_out:,}" if self.left_out else ""


def rest_of(scan: PlannedScan, calls: Sequence[AggregateCall], groups: Sequence[Column] = ()) -> Rest:
    """Leave out the blocks of a plan that statistics answer for; all are left to read if they answer for none.

    The known part is the results of the calls; or, with groups, a row for every group: its values, then its results. An
    average is given as its sum.

    Soundness: the plan's predicate is the whole filter of the query, and the plan has no limit.
    """
    if not calls and not groups:
        return Rest(scan)
    binder = Binder(scan.opened.binding_schema, known_zone(scan.session_time_zone), case_sensitive=True)
    try:
        asked = [bind_aggregate(call, binder) for call in calls]
        if not all(is_order_free(aggregate, scan.survivors.blocks) for aggregate in asked):
            return Rest(scan)
        is_of_rows = all(aggregate.field is None for aggregate in asked)
        live = live_rows(scan, MOST_DELETE_BYTES) if is_of_rows else complete_rows(scan)
        if groups:
            answered, known = _of_groups(scan, asked, [bind_group(group, binder) for group in groups], live)
        else:
            answered, results = by_statistics(asked, scan.survivors.blocks, live)
            known = [_encoded(_known_result(*pair)) for pair in zip(asked, results, strict=True)]
    except (SecateurError, ValueError):  # a column that has no statistics here, or a value that has no encoding
        return Rest(scan)
    if not answered.any():
        return Rest(scan)
    left = replace(scan, survivors=scan.survivors.take(np.flatnonzero(~answered)))
    return Rest(left, struct.pack(">i", len(known)) + b"".join(known), int(np.count_nonzero(answered)))


def _of_groups(
    scan: PlannedScan, asked: Sequence[Aggregate], by: Sequence[Field], live: np.ndarray
) -> tuple[np.ndarray, list[bytes]]:
    """Return which blocks statistics answer for, and the encoded rows of their groups."""
    groups = known_groups(asked, scan.survivors.blocks, live, by, MOST_GROUPS)
    rows = zip(*(_texts(column) for column in groups.columns), strict=True)
    return groups.answered, [text for row in rows for text in row]


def _encoded(result: Result) -> bytes:
    """Encode a result as text in Spark's internal form. Raises ValueError if Spark has no such value."""
    if result is None:
        return b"\0"
    if isinstance(result, int):
        return b"\1" + text_of(str(result))
    assert isinstance(result, pa.Scalar), "Spark itself counts different values"
    return _texts(pa.array([result], result.type))[0]


def _known_result(aggregate: Aggregate, result: Result) -> Result:
    """Return what Java gets of a result: the sum, if it is an average."""
    return result.sum_of(aggregate.argument.type) if isinstance(result, Total) else result


def _texts(values: pa.Array) -> list[bytes]:
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz))
    return [b"\0" if text is None else b"\1" + text_of(text) for text in internal_texts(values)]
