"""How well a table is clustered by its columns: how many blocks share a value, by their bounds.

A look-up of a value reads every block whose bounds enclose it, if only bounds prune. The number of these blocks is the
depth at the value. In a table sorted by the column it is 1 or 2 everywhere; in a table without an order it is close to
the number of blocks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from secateur.errors import InvalidOption
from secateur.index.read.blocks import OpenedBlocks
from secateur.index.zones.key_ranks import ranks
from secateur.index.zones.sort_key import parse_sort_key, tuple_column
from secateur.io.scan.inspection import every_block
from secateur.io.scan.opened_table import OpenedTable, opened_strictly
from secateur.io.tables.open import as_table
from secateur.pruning.bounds.zones import Zones, unbounded
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.nodes import Column
from secateur.ragged import greatest_between
from secateur.values.combination import less
from secateur.values.kinds import kind_of

if TYPE_CHECKING:
    from secateur.io.tables.open import Source
    from secateur.io.tables.table import Table

_HISTOGRAM = pa.list_(pa.struct([("depth", pa.int64()), ("blocks", pa.int64())]))
_SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("blocks", pa.int64()),
        ("unbounded", pa.int64()),
        ("constant", pa.int64()),
        ("mean_depth", pa.float64()),
        ("max_depth", pa.int64()),
        ("mean_overlaps", pa.float64()),
        ("depths", _HISTOGRAM),
    ]
)


def clustering(table: Table | Source, columns: Sequence[str] | None = None, *, by: Sequence[str] = ()) -> pa.Table:
    """Return one row per column: how many blocks share its values, exactly, by the blocks' bounds.

    Parameters
    ----------
    columns
        Names of columns, nested ones with dots; by default all top-level columns that have an order, or those of `by`.
    by
        Columns that order a table together: one more row is about their tuples, which compare column by column. It says
        how far the table is sorted by them, and nothing about other orders of several columns, such as Z-order.

    Returns
    -------
    pa.Table
        `blocks` have bounds and hold a value; `unbounded` ones may hold any, and a look-up reads them besides;
        `constant` ones hold a single value. The depth of a block is the greatest depth of a point within its bounds,
        the block itself counted: `mean_depth` and `max_depth` over the blocks, and `depths`, how many blocks have a
        depth of more than half of `depth` and at most `depth`, a power of two. No value has a greater depth than
        `max_depth`. `mean_overlaps`: the blocks that share a part of a block's bounds, itself left out. Null without
        such blocks. The bounds of tuples are those that the index keeps where its sort key has the same columns, in
        the directions of that; else they follow from the bounds of the columns, of rows without NULL.

    Source
    ------
    The words, and what they count, are those of Snowflake's ``SYSTEM$CLUSTERING_INFORMATION``.

    Raises
    ------
    UnknownColumn, AmbiguousColumn
        For a name that the table does not have.
    InvalidOption
        For a column whose values have no order.
    """
    return clustering_of(ranked_bounds(table, columns, by=by))


def clustering_of(bounds: Iterable[RankedBounds]) -> pa.Table:
    """Return the rows of :func:`clustering`, from the bounds of columns and tuples."""
    return pa.Table.from_pylist([{"column": ranked.column, **_clustering(ranked)} for ranked in bounds], _SCHEMA)


@dataclass(frozen=True)
class RankedBounds:
    """The bounds of a column, or of tuples, in the blocks that have some, as integers that order alike."""

    column: str
    every: int  # number of the table's blocks, in the order of files
    unbounded: int  # blocks that may hold any value
    block: np.ndarray  # int64 of shape (n,): the others that hold a value, ascending
    lower: np.ndarray  # int64 of shape (n,)
    upper: np.ndarray


def ranked_bounds(
    table: Table | Source, columns: Sequence[str] | None = None, *, by: Sequence[str] = ()
) -> Iterator[RankedBounds]:
    """Yield the bounds of what :func:`clustering` has a row of. Raises the same."""
    opened = opened_strictly(as_table(table))
    blocks, key = every_block(opened), list(ordered_columns(opened, by))
    single = _fields(opened, columns) if columns is not None or not key else iter(key)
    for field in single:
        yield _ranked(blocks, ".".join(field.path), [field])
    if len(key) > 1:
        kept = _kept_tuples(opened, blocks, key)
        yield _ranked(blocks, ", ".join(".".join(field.path) for field in key), key if kept is None else [kept])


def _fields(opened: OpenedTable, columns: Sequence[str] | None) -> Iterator[Field]:
    """Yield the columns of the given names, or all that have an order."""
    if columns is None:
        yield from (Field((field.name,), field.type) for field in opened.schema if kind_of(field.type) is not None)
        return
    yield from ordered_columns(opened, columns)


def ordered_columns(opened: OpenedTable, names: Sequence[str]) -> Iterator[Field]:
    """Yield columns by their names. Raises InvalidOption if one has no order, UnknownColumn, AmbiguousColumn."""
    binder = Binder(opened.schema, dt.UTC)
    for name in names:
        field = resolve(Column(split_name(name)), binder)
        if kind_of(field.type) is None:
            raise InvalidOption(f"the values of {name} have no order: it is {field.type}")
        yield field


def _kept_tuples(opened: OpenedTable, blocks: OpenedBlocks, key: Sequence[Field]) -> Field | None:
    """Return the column of the index that holds the tuples of some columns; None if it has not those of every block."""
    snapshot = opened.catalog.snapshot
    if snapshot is None:
        return None
    sort_key = parse_sort_key(snapshot.options.sort_key)
    column = tuple_column(sort_key, snapshot.schema)
    if column is None or [opened.table.naming.in_table(item.path) for item in sort_key] != [f.path for f in key]:
        return None
    field = Field(column.path, column.type)
    zones = blocks.zones(field)
    return field if zones is not None and _is_bounded(zones).all() else None


def _ranked(blocks: OpenedBlocks, name: str, key: Sequence[Field]) -> RankedBounds:
    """Return the bounds of the tuples of some columns, by the bounds of each; of one column, its own."""
    zones = [of_column for field in key if (of_column := blocks.zones(field)) is not None]
    if len(zones) < len(key):
        return RankedBounds(name, len(blocks), len(blocks), *np.zeros((3, 0), np.int64))
    has_value = np.logical_and.reduce([of_column.value != 0 for of_column in zones])
    is_bounded = _is_bounded(zones[0])  # else every tuple is possible, whatever the bounds of the others
    chosen = np.flatnonzero(has_value & is_bounded)
    bounded = [of_column.take(chosen) for of_column in zones]
    lower, upper = _joint_ranks([ranks([of_column.lower, of_column.numbers_upper]) for of_column in bounded])
    return RankedBounds(name, len(blocks), int(np.count_nonzero(has_value & ~is_bounded)), chosen, lower, upper)


def _clustering(bounds: RankedBounds) -> dict[str, object]:
    """Return a row of :func:`clustering`, without its name."""
    lower, upper = bounds.lower, bounds.upper
    nothing = {"blocks": len(lower), "unbounded": bounds.unbounded}
    constant = {"constant": int(np.count_nonzero(lower == upper))}
    if not len(lower):
        return {**nothing, **constant}
    depth, overlaps = depths(lower, upper)
    power, count = np.unique(np.ceil(np.log2(depth)).astype(np.int64), return_counts=True)
    return {
        **nothing,
        **constant,
        "mean_depth": float(depth.mean()),
        "max_depth": int(depth.max()),
        "mean_overlaps": float(overlaps.mean()),
        "depths": [{"depth": 1 << p, "blocks": n} for p, n in zip(power.tolist(), count.tolist(), strict=True)],
    }


def _joint_ranks(pairs: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Return integers that order as the tuples of ranks do: of the lower ends, and of the upper ones."""
    columns = [np.concatenate(pair) for pair in pairs]
    if len(columns) == 1:
        return list(pairs[0])
    order = np.lexsort(columns[::-1])
    differs = np.logical_or.reduce([np.diff(column[order]) != 0 for column in columns])
    rank = np.zeros(len(order), np.int64)
    rank[order[1:]] = np.cumsum(differs)
    return np.split(rank, 2)


def depths(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each interval [lower, upper] how many at most share a point with it, and how many others it meets.

    Both int64 of shape (n,), the interval itself counted in the first. An interval encloses a point unless it begins
    after it or ends before it, and none does both, so two sorted arrays tell how many do. That number is greatest where
    some interval begins.
    """
    order = np.argsort(lower)  # looking up in order finds memory in the processor's cache: 5 times as fast
    begins, ends = lower[order], np.sort(upper)
    first, ended = np.searchsorted(begins, begins, "left"), np.searchsorted(ends, begins, "left")
    at_begin = np.searchsorted(begins, begins, "right") - ended
    after = np.searchsorted(begins, upper[order], "right")
    depth, overlaps = np.zeros_like(order), np.zeros_like(order)
    depth[order], overlaps[order] = greatest_between(at_begin, first, after), after - ended - 1
    return depth, overlaps


def _is_bounded(zones: Zones) -> np.ndarray:
    """Return which blocks have a bound at least at one end: bool of shape (n,)."""
    least, greatest = unbounded(zones.lower.kind, len(zones.value))
    return less(least, zones.lower) | less(zones.upper, greatest)
