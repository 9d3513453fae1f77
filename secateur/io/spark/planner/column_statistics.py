"""What is known of a scan's columns, for the estimates of Spark's optimizer: NULLs, different values, and bounds.

Spark weighs plans by them, and leaves out no row because of them. They count the rows of all blocks that are read,
whether they match or not.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import SecateurError
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark.planner.protocol import internal_texts, text_of
from secateur.pruning.aggregates.answers import DISTINCT, Aggregate, known_values
from secateur.pruning.aggregates.distinct import DistinctValues
from secateur.pruning.aggregates.null_counts import null_counts
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Column
from secateur.pruning.statistics import Blocks
from secateur.values.combination import greatest_per_group, least_per_group
from secateur.values.conversion import scalar_of
from secateur.values.key import least_key
from secateur.values.keys import greatest_keys
from secateur.values.kinds import Kind, kind_of, ordered_kind

_UNKNOWN = -1


@dataclass(frozen=True)
class ColumnStatistics:
    """The statistics of a column over the rows of a scan."""

    name: str
    nulls: int  # -1 = unknown
    distinct: int = _UNKNOWN
    bounds: tuple[str, str] | None = None  # no value lies outside, in Spark's internal form

    def to_bytes(self) -> bytes:
        """Encode for ColumnFigures.java."""
        bounds = b"\0" if self.bounds is None else b"\1" + b"".join(map(text_of, self.bounds))
        return text_of(self.name) + struct.pack(">qq", self.nulls, self.distinct) + bounds


def encoded_statistics(scan: PlannedScan, names: Sequence[str]) -> bytes:
    """Encode what is known of some top-level columns of a scan."""
    known = [of_column for name in names if (of_column := _statistics(scan, name)) is not None]
    return struct.pack(">i", len(known)) + b"".join(of_column.to_bytes() for of_column in known)


def _statistics(scan: PlannedScan, name: str) -> ColumnStatistics | None:
    """Return the statistics of a column; None for one that has none here."""
    try:
        field = resolve(Column((name,)), Binder(scan.opened.binding_schema, known_zone(scan.session_time_zone)))
    except SecateurError:
        return None
    return None if kind_of(field.type) is None else column_statistics(field, scan.survivors.blocks)


def column_statistics(field: Field, blocks: Blocks) -> ColumnStatistics | None:
    """Return the statistics of a column over the rows of some blocks; None if not even its NULLs are counted.

    Different values are counted where each block has one value or none; otherwise they are unknown. That number comes
    with bounds or not at all, because Spark takes a number without bounds for a column without values.
    """
    nulls = null_counts(field, blocks)
    if (nulls < 0).any():
        return None
    counted = ColumnStatistics(field.path[0], int(nulls.sum()))
    values = known_values(Aggregate(DISTINCT, field, ""), blocks, np.ones(len(blocks), bool))
    if not values.is_known.all():
        return replace(counted, bounds=_enclosing(field, blocks, nulls < blocks.row_count))
    different = values.over(values.is_known)
    if kind_of(field.type) is Kind.BYTES:
        return ColumnStatistics(counted.name, counted.nulls, different.count)
    bounds = _bounds(different)
    return counted if bounds is None else ColumnStatistics(counted.name, counted.nulls, different.count, bounds)


def _enclosing(field: Field, blocks: Blocks, has_values: np.ndarray) -> tuple[str, str] | None:
    """Return bounds of all values; None if some block with values has none, or has bounds that are no numbers."""
    kind, zones = ordered_kind(field.type), blocks.zones(field)
    if kind is Kind.BYTES or zones is None:
        return None
    chosen = np.flatnonzero(has_values)
    start = np.zeros(1, np.int64)
    least = least_per_group(zones.lower.take(chosen), start).at(0)
    greatest = greatest_per_group(zones.upper.take(chosen), start).at(0)
    if least == least_key(kind) or greatest == greatest_keys(kind, 1).at(0):
        return None
    ends = pa.array([scalar_of(key, field.type) for key in (least, greatest)], field.type)
    return _texts(ends) if _is_finite(ends) else None


def _bounds(values: DistinctValues) -> tuple[str, str] | None:
    """Return the least and the greatest of some values; None without any, or if some are NaN or infinite."""
    if not values.parts:
        return None
    array = pa.concat_arrays(values.parts)
    return _texts(pa.array([pc.min(array), pc.max(array)], array.type)) if _is_finite(array) else None


def _is_finite(array: pa.Array) -> bool:
    return not pa.types.is_floating(array.type) or bool(pc.all(pc.is_finite(array)).as_py())


def _texts(array: pa.Array) -> tuple[str, str]:
    """Encode two values for Java."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz))
    least, greatest = internal_texts(array)
    assert least is not None and greatest is not None, "no value is NULL"
    return least, greatest
