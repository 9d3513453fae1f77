"""ORDER BY: the columns of an order, places in it, and where the rows of blocks may begin.

A *place* is where a row stands by one column: among the NULLs before all values, at a value, or among the NULLs after
all values. A block's rows begin no earlier than its *front*: its better bound, or the NULLs if these come first and it
may hold one. So if something about a block is unknown, its front comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds.key_bytes import Component, encode_rows
from secateur.pruning.bounds.rangeset import between
from secateur.pruning.bounds.valued_bounds import is_value
from secateur.pruning.bounds.zones import Zones, unknown_zones
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.binding.typed_constants import literal_of
from secateur.pruning.predicate.bound import Constant, Field, Missing, Within
from secateur.pruning.predicate.nodes import Column, Not, Or, Predicate, Truth
from secateur.pruning.rows.row_values import column as column_in
from secateur.pruning.statistics import Statistics
from secateur.values.combination import less
from secateur.values.conversion import keys_of
from secateur.values.key import Key, least_key, successor
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, kind_of, ordered_kind

NULLS_BEFORE, VALUES, NULLS_AFTER = 0, 1, 2  # ranks of places


@dataclass(frozen=True)
class OrderItem:
    """One item of ORDER BY as written, with Spark's defaults filled in: ASC NULLS FIRST, or DESC NULLS LAST."""

    column: Column
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        return _spelled(self.column, self.descending, self.nulls_first)


@dataclass(frozen=True)
class OrderColumn:
    """One item of ORDER BY, bound to a field of the table."""

    field: Field
    descending: bool = False
    nulls_first: bool = True
    nullable: bool = True  # False for the tuples of a sort key, in which NULL is a part like any other

    def __str__(self) -> str:
        return _spelled(self.field, self.descending, self.nulls_first)

    @property
    def null_rank(self) -> int:
        """The rank of NULLs."""
        return NULLS_BEFORE if self.nulls_first else NULLS_AFTER

    @property
    def is_ordered_here(self) -> bool:
        """Whether the order of the column's values is known here, and not to Spark alone."""
        return kind_of(self.field.type) is not None


def _spelled(name: object, descending: bool, nulls_first: bool) -> str:
    return f"{name} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"


@dataclass(frozen=True)
class Order:
    """A bound ORDER BY.

    `tuples`: the bytes of the index's sort key, if the order of these bytes, or its reverse, refines this one.
    """

    columns: tuple[OrderColumn, ...]
    tuples: OrderColumn | None = None

    def __str__(self) -> str:
        return ", ".join(map(str, self.columns))

    @property
    def first(self) -> OrderColumn:
        """The first column, which defines places."""
        return self.columns[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The top-level columns, each once."""
        return tuple(dict.fromkeys(column.field.path[0] for column in self.columns))

    @property
    def left_to_spark(self) -> list[str]:
        """The columns whose values only Spark can order, as text."""
        return [
            f"ORDER BY {column} (values of type {column.field.type} are not ordered here)"
            for column in self.columns
            if not column.is_ordered_here
        ]

    def row_keys(self, batch: pa.RecordBatch) -> pa.Array:
        """Return for every row bytes that sort as Spark sorts the rows: large_binary of shape (rows,)."""
        components = [Component(ordered_kind(c.field.type), c.descending, c.nulls_first) for c in self.columns]
        keys = encode_rows([column_in(batch, column.field) for column in self.columns], components)
        return keys.cast(pa.large_binary())

    def place_of(self, batch: pa.RecordBatch) -> Boundary:
        """Return the place of the one row of a batch."""
        values = column_in(batch, self.first.field)
        return Boundary(self.first.null_rank) if values.null_count else Boundary(VALUES, keys_of(values))


def bind_order(items: Sequence[OrderItem], binder: Binder) -> Order | None:
    """Bind the items of ORDER BY to a schema; None without items. Raises UnknownColumn, AmbiguousColumn."""
    columns = [OrderColumn(resolve(item.column, binder), item.descending, item.nulls_first) for item in items]
    return Order(tuple(columns)) if columns else None


@dataclass(frozen=True)
class Boundary:
    """A place in the order of one column; `keys` is the one key of a value."""

    rank: int
    keys: Keys | None = None

    @property
    def key(self) -> Key | None:
        """The value's key; None for NULLs, and for a bound of text that was truncated."""
        if self.keys is None or (self.keys.kind is Kind.BYTES and int(self.keys.words[-1][0]) > 8 * self.keys.width):
            return None
        return self.keys.at(0)

    def text(self, column: OrderColumn) -> str:
        """Return the place in words."""
        key = self.key
        if self.rank != VALUES or key is None:
            return f"{column.field} is NULL" if self.rank != VALUES else f"{column.field} is past all bounds"
        literal = literal_of(Constant(column.field.type, key))
        value = repr(key) if literal is None else literal.value
        return f"{column.field} = {value!r}" if isinstance(value, bytes) else f"{column.field} = {value}"


@dataclass(frozen=True)
class Fronts:
    """Where the rows of n blocks may begin: no row of block i comes before the place (rank[i], keys[i])."""

    column: OrderColumn
    rank: np.ndarray  # uint8 of shape (n,)
    keys: Keys  # in use where the rank is VALUES

    def __len__(self) -> int:
        return len(self.rank)

    def take(self, indices: np.ndarray) -> Fronts:
        """Select the given blocks."""
        return replace(self, rank=self.rank[indices], keys=self.keys.take(indices))

    def reach(self, place: Boundary, *, ties: bool) -> np.ndarray:
        """Return which blocks may hold a row before a place, or with `ties` at it: bool of shape (n,)."""
        here = self.rank == place.rank
        if place.keys is not None:
            a, b = (place.keys, self.keys) if self.column.descending else (self.keys, place.keys)
            here &= ~less(b, a) if ties else less(a, b)
        elif not ties:
            here = np.zeros(len(self), bool)
        return here | (self.rank < place.rank)

    def best_first(self, blocks: np.ndarray) -> np.ndarray:
        """Return some blocks in the order of their fronts."""
        words = tuple(reversed(self.keys.take(blocks).words))
        if self.column.descending:
            words = tuple(~word for word in words)
        return blocks[np.lexsort((*words, self.rank[blocks]))]


def fronts_of(column: OrderColumn, zones: Zones) -> Fronts:
    """Return the fronts of n blocks by their zone maps."""
    keys = zones.upper if column.descending else zones.lower
    if column.nulls_first:
        rank = np.where(zones.null != 0, NULLS_BEFORE, VALUES)
    else:
        rank = np.where(zones.value != 0, VALUES, NULLS_AFTER)
    return Fronts(column, rank.astype(np.uint8), keys)


def boundary_of(column: OrderColumn, zones: Zones, rows: np.ndarray, nulls: np.ndarray, n: int) -> Boundary | None:
    """Return the first place up to which at least n rows certainly stand (n >= 1); None if there are too few.

    `rows` counts the rows of each unit that are certainly in the answer if they are early enough, `nulls` how many of
    these are NULL (-1: unknown).

    Soundness
    ---------
    A unit's values lie no later than its worse bound, its tail, so all its values count at the tail. If NULLs come
    first and their number is known, they count at the NULLs; if it is unknown, they count at the tail, which is later.
    NULLs that come last do not count; if their number is unknown, none of the unit's rows counts.
    """
    if column.nulls_first:
        known = np.maximum(nulls, 0)
        before, counted = int(known.sum()), rows - known
    else:
        before, counted = 0, np.where(nulls >= 0, rows - nulls, 0)
    if before >= n:
        return Boundary(NULLS_BEFORE)
    tails = zones.lower if column.descending else zones.upper
    among = _earliest(tails, np.flatnonzero((counted > 0) & (zones.value != 0)), n - before, column.descending)
    reached = before + np.cumsum(counted[among])
    at = int(np.searchsorted(reached, n))
    return Boundary(VALUES, tails.take(among[at : at + 1])) if at < len(among) else None


def boundary_at_fronts(column: OrderColumn, zones: Zones, has_value: np.ndarray, n: int) -> Boundary | None:
    """Return the n-th front of units that have a row there, n at least 1; None if too few are known to.

    `has_value` says in which units all rows are sure to be in the answer if they are early enough, and not all NULL.

    Soundness
    ---------
    Each of n units has a row at its front, no later than the n-th of these fronts; they are n different rows.
    """
    fronts = zones.upper if column.descending else zones.lower
    units = np.flatnonzero(has_value & is_value(zones, column.field.type, column.descending))
    if len(units) < n:
        return None
    return Boundary(VALUES, fronts.take(_earliest(fronts, units, n, column.descending)[n - 1 : n]))


def earlier(column: OrderColumn, a: Boundary | None, b: Boundary | None) -> Boundary | None:
    """Return the earlier one of two boundaries, of which each holds; None if there is neither."""
    if a is None or b is None or a.rank != b.rank or a.keys is None or b.keys is None:
        known = [boundary for boundary in (a, b) if boundary is not None]
        return min(known, key=lambda boundary: boundary.rank, default=None)
    first, second = (b, a) if column.descending else (a, b)
    assert first.keys is not None and second.keys is not None, "both were looked at above"
    return a if bool(less(first.keys, second.keys)[0]) else b


def _earliest(tails: Keys, units: np.ndarray, n: int, descending: bool) -> np.ndarray:
    """Return at least the n units with the earliest tails, or all, in order of their tails."""
    keys = tails.take(units)
    word = keys.words[min(len(keys.common), len(keys.words) - 1)]
    if len(units) > n:
        kth = len(units) - n if descending else n - 1
        limit = np.partition(word, kth)[kth]
        chosen = np.flatnonzero(word >= limit if descending else word <= limit)
        units, keys = units[chosen], keys.take(chosen)
    order = np.lexsort(tuple(reversed(keys.words)))
    return units[order[::-1] if descending else order]


def zones_in(column: OrderColumn, units: Statistics) -> Zones:
    """Return the zone maps of an ordered column over some units, unknown where there are none."""
    return units.zones(column.field) or unknown_zones(ordered_kind(column.field.type), len(units))


def known_nulls(column: OrderColumn, zones: Zones, rows: np.ndarray) -> np.ndarray:
    """Return the NULL count of each unit as far as zone maps show it: 0, all rows, or -1 for unknown."""
    if not column.nullable:
        return np.zeros(len(rows), np.int64)
    return np.where(zones.value == 0, rows, np.where(zones.null == 0, 0, -1))


def up_to(column: OrderColumn, place: Boundary, *, ties: bool) -> Predicate | None:
    """Return the condition that a row stands before a place, or with `ties` at it; None if every row may."""
    field, missing = column.field, Missing(column.field, f"{column.field} IS NULL")
    if place.rank != VALUES:
        if place.rank == NULLS_BEFORE:
            return missing if ties else Truth(False)
        return None if ties else Not(missing)
    key, kind = place.key, ordered_kind(field.type)
    if key is None:
        return None
    after = successor(key, kind)
    ranges = (
        between(kind, key if ties else after, None)
        if column.descending
        else between(kind, least_key(kind), after if ties else key)
    )
    sign = f"{'>' if column.descending else '<'}{'=' if ties else ''}"
    literal = literal_of(Constant(field.type, key))
    within = Within(field, ranges, f"{field} {sign} {key!r}" if literal is None else f"{field} {sign} {literal}")
    return Or((missing, within)) if column.nulls_first else within
