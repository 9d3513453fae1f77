"""What statistics say about a query's aggregates, so that Spark reads only the other blocks."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from secateur.errors import SecateurError
from secateur.io.scan.in_order import answered_in_order
from secateur.io.scan.live_rows import complete_rows, live_rows
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark.planner.protocol import NOTHING_KNOWN, internal_texts, text_of
from secateur.pruning.aggregates.answers import (
    COUNT,
    DISTINCT,
    Aggregate,
    AggregateCall,
    LeftOut,
    Result,
    bind_aggregate,
    by_statistics,
    combined,
    each_block,
)
from secateur.pruning.aggregates.distinct import DistinctValues
from secateur.pruning.aggregates.groups import bind_group
from secateur.pruning.aggregates.known_groups import known_groups
from secateur.pruning.aggregates.order_free import is_order_free
from secateur.pruning.aggregates.sums import Total
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Column

MOST_DELETE_BYTES = 8 << 20  # of delete files, read for a count while Spark plans
_DIFFERENT = "left to Spark: different values by group, or of other files too"
MOST_GROUPS = 10_000  # rows of a reply: with three aggregates 0.4 MB, made in 20 ms


@dataclass(frozen=True)
class Reading:
    """The blocks of a plan that Spark reads if nothing is known of them, and which of them it can leave out."""

    scan: PlannedScan
    left_out: LeftOut = each_block
    is_all: bool = True  # whether it reads no file that is not in the plan


@dataclass(frozen=True)
class Rest:
    """The scan of the blocks that are left to read, and the aggregates over those that are not, encoded for Java."""

    scan: PlannedScan
    known: bytes = NOTHING_KNOWN
    answered: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # the file of every block left out
    columns: bytes = NOTHING_KNOWN  # see column_statistics.py
    reason: str = ""  # why statistics do not answer for more, where that is asked

    @property
    def left_out(self) -> int:
        """How many blocks are left out."""
        return len(self.answered)

    @property
    def note(self) -> str:
        """What ``explain()`` says about the blocks that are left out."""
        tells = f"; statistics answer for {self.left_out:,}" if self.left_out else ""
        return f"{tells}; {self.reason}" if self.reason else tells


def rest_of(
    scan: PlannedScan,
    calls: Sequence[AggregateCall],
    groups: Sequence[Column] = (),
    left_out: LeftOut = each_block,
    *,
    is_all: bool = True,
) -> Rest:
    """Leave out the blocks of a plan that statistics answer for; all are left to read if they answer for none.

    The known part is the results of the calls; or, with groups, a row for every group: its values, then its results. An
    average is given as its sum. With a call of different values, either all blocks are left out or none; the latter if
    `is_all` is False, because rows of other files are read.

    Soundness: the plan's predicate is the whole filter of the query, and the plan has no limit. Different values of two
    parts may be the same, so their numbers do not add up.
    """
    if not calls and not groups:
        return Rest(scan)
    binder = Binder(scan.opened.binding_schema, known_zone(scan.session_time_zone), case_sensitive=True)
    try:
        asked = [bind_aggregate(call, binder) for call in calls]
        by = [bind_group(group, binder) for group in groups]
        columns = [*by, *(call.field for call in asked if call.field is not None and call.function != COUNT)]
        if any(_is_bytes(column.type) for column in columns):
            return Rest(scan, reason="left to Spark: bytes, which may be texts there")
        if not all(is_order_free(aggregate, scan.survivors.blocks) for aggregate in asked):
            return Rest(scan, reason="left to Spark: a sum that may overflow or be rounded")
        is_of_rows = all(aggregate.field is None for aggregate in asked)
        live = live_rows(scan, MOST_DELETE_BYTES) if is_of_rows else complete_rows(scan)
        if any(aggregate.function == DISTINCT for aggregate in asked):
            if groups or not is_all:
                return Rest(scan, reason=_DIFFERENT)
            answered, results = _of_all(scan, asked, live)
            known = [_encoded(_known_result(*pair)) for pair in zip(asked, results, strict=True)]
        elif groups:
            answered, known = _of_groups(scan, asked, by, live, left_out)
        else:
            answered, results = _of_some(scan, asked, live, left_out)
            known = [_encoded(_known_result(*pair)) for pair in zip(asked, results, strict=True)]
    except (SecateurError, ValueError) as error:  # a column without statistics, or a value that has no encoding
        return Rest(scan, reason=f"left to Spark: {error}")
    reason = _reason(scan, ~answered)
    if not answered.any():
        return Rest(scan, reason=reason)
    left = scan.part(np.flatnonzero(~answered))
    files = scan.survivors.blocks.file[answered]
    return Rest(left, struct.pack(">i", len(known)) + b"".join(known), files, reason=reason)


def _is_bytes(type_: pa.DataType) -> bool:
    """Whether values are bytes here: Iceberg's UUIDs are, which are texts in Spark."""
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_))


def _reason(scan: PlannedScan, left: np.ndarray) -> str:
    """Return why blocks are left to read: their rows are deleted, or are in doubt, or statistics do not tell."""
    complete, matching = scan.complete_blocks, scan.survivors.fully_matching
    counts = {
        "may hold rows that do not match": np.count_nonzero(left & ~matching),
        "may hold deleted rows": np.count_nonzero(left & matching & ~complete),
        "have no exact statistics for it, or are read with others": np.count_nonzero(left & complete),
    }
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)


def _of_all(scan: PlannedScan, asked: Sequence[Aggregate], live: np.ndarray) -> tuple[np.ndarray, list[Result]]:
    """Return aggregates over all rows that match, by statistics and by values that the index keeps in order.

    All blocks are answered for; none, if one of them has to be read for one of the aggregates.
    """
    blocks = scan.survivors.blocks
    results: list[Result] = []
    for aggregate in asked:
        answered, (result,) = by_statistics([aggregate], blocks, live)
        left = np.flatnonzero(~answered)
        if len(left):
            done, others = answered_in_order(scan, [aggregate], left, MOST_DELETE_BYTES)
            if len(done) < len(left):
                return np.zeros(len(blocks), bool), [call.of_no_rows for call in asked]
            result = combined(aggregate, result, *others)
        results.append(result)
    return np.ones(len(blocks), bool), results


def _of_some(
    scan: PlannedScan, asked: Sequence[Aggregate], live: np.ndarray, left_out: LeftOut
) -> tuple[np.ndarray, list[Result]]:
    """Return which blocks need not be read, by statistics and by values in order, and the aggregates over them.

    Blocks that values in order answer for count only if all of them can be left out: the results are of no fewer.
    """
    answered, results = by_statistics(asked, scan.survivors.blocks, live, left_out)
    wanted = np.flatnonzero(~answered)
    for _ in range(2):  # the second time without those that are read with others
        done, others = answered_in_order(scan, asked, wanted, MOST_DELETE_BYTES)
        both = answered.copy()
        both[done] = True
        fitting = left_out(both)
        if np.array_equal(fitting, both):
            if len(done):
                results = [combined(*parts) for parts in zip(asked, results, others, strict=True)]
            return both, results
        wanted = np.flatnonzero(fitting & ~answered)
    return answered, results


def _of_groups(
    scan: PlannedScan, asked: Sequence[Aggregate], by: Sequence[Field], live: np.ndarray, left_out: LeftOut
) -> tuple[np.ndarray, list[bytes]]:
    """Return which blocks statistics answer for, and the encoded rows of their groups."""
    groups = known_groups(asked, scan.survivors.blocks, live, by, MOST_GROUPS, left_out)
    rows = zip(*(_texts(column) for column in groups.columns), strict=True)
    return groups.answered, [text for row in rows for text in row]


def _encoded(result: Result) -> bytes:
    """Encode a result as text in Spark's internal form. Raises ValueError if Spark has no such value."""
    if result is None:
        return b"\0"
    if isinstance(result, int):
        return b"\1" + text_of(str(result))
    assert isinstance(result, pa.Scalar), "a count of different values is a number by now"
    return _texts(pa.array([result], result.type))[0]


def _known_result(aggregate: Aggregate, result: Result) -> Result:
    """Return what Java gets of a result: the sum, if it is an average, and how many values, if they are different."""
    if isinstance(result, DistinctValues):
        return result.count
    return result.sum_of(aggregate.argument.type) if isinstance(result, Total) else result


def _texts(values: pa.Array) -> list[bytes]:
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz))
    return [b"\0" if text is None else b"\1" + text_of(text) for text in internal_texts(values)]
