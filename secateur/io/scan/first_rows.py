"""Find the first n rows of a plan's order, reading as few blocks as possible.

Blocks are read in waves, those first whose rows may begin first. Once n rows are known, no row after the last of them
is needed: blocks that begin later are not read, and of the others only the pages and rows that may come before. Every
block is read at most once, and at most n rows are held in memory, besides those of one wave.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.io.scan.reading.read_ahead import read_ahead
from secateur.io.scan.surviving_blocks import ReadablePlan, surviving_bytes
from secateur.io.scan.waves import wave, wave_sizes
from secateur.pruning.order import Boundary, Order, fronts_of, up_to, zones_in
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.residual import Residuals

PARTS = 2  # of waves that are cut off where the last row is expected: it comes later half of the time
SPARE_ROWS = 1 << 16  # rows held beyond n before the rows that are too late are dropped


class OrderedPlan(ReadablePlan, Protocol):
    """The parts of a plan that the search for its first rows needs."""

    @property
    def order_by(self) -> Order | None: ...
    @property
    def limit(self) -> int | None: ...
    def require_supported(self) -> None: ...


@dataclass(frozen=True)
class Ranked:
    """Some rows with the bytes by which they sort."""

    keys: pa.ChunkedArray
    rows: pa.Table

    def least(self, n: int) -> Ranked:
        """Return the first n rows, in order."""
        first = pc.array_sort_indices(self.keys.combine_chunks())[:n]
        return Ranked(self.keys.take(first), self.rows.take(first).combine_chunks())


def joined(parts: Sequence[Ranked]) -> Ranked:
    """Concatenate the rows of all parts; at least one part."""
    keys = pa.chunked_array([chunk for part in parts for chunk in part.keys.chunks], pa.large_binary())
    return Ranked(keys, pa.concat_tables([part.rows for part in parts]))


class FirstRows:
    """A search for the first n rows: those found so far, and the blocks that may hold better ones."""

    def __init__(self, plan: OrderedPlan, fields: Sequence[pa.Field]) -> None:
        assert plan.order_by is not None and plan.limit is not None, (
            "a search is made only for a plan with an order, which has a limit"
        )
        plan.require_supported()
        names = {field.name for field in fields}
        others = [plan.opened.schema.field(name) for name in plan.order_by.names if name not in names]
        self.plan, self.order, self.n = plan, plan.order_by, plan.limit
        self.fields = [*fields, *others]
        self.unread = np.ones(len(plan.survivors.blocks), bool)
        self.ranked = Ranked(pa.chunked_array([], pa.large_binary()), pa.schema(self.fields).empty_table())
        self._fronts = plan.survivors.fronts or fronts_of(
            self.order.first, zones_in(self.order.first, plan.survivors.blocks)
        )

    @property
    def ahead(self) -> np.ndarray:
        """The blocks that may hold a better row than those found, best first."""
        if not self.n:
            return np.zeros(0, np.int64)
        place, ties = self._boundary
        needed = self.unread if place is None else self.unread & self._fronts.reach(place, ties=ties)
        return self._fronts.best_first(np.flatnonzero(needed))

    @property
    def left(self) -> np.ndarray:
        """The blocks, read or not, that may hold one of the first n rows as far as is known, ascending."""
        place, _ = self._boundary
        return np.arange(len(self.unread)) if place is None else np.flatnonzero(self._fronts.reach(place, ties=True))

    def run(self, most_bytes: float = np.inf) -> bool:
        """Read blocks until the answer is certain; give up and return False if that takes more than so many bytes."""
        sizes = surviving_bytes(self.plan)
        for blocks in self._waves():
            most_bytes -= int(sizes[blocks].sum())
            if most_bytes < 0:
                return False
            self._read(blocks)
        return True

    def _waves(self) -> Iterator[np.ndarray]:
        """Yield the blocks to read next, until none is needed.

        A wave may be read in parts, each of as many blocks as the rows found so far let expect: where every block has
        few matches, the last and largest wave would be read in vain for the most part. There are few such parts, so
        that few waves come beyond the doubled ones.
        """
        parts = PARTS
        for most in wave_sizes():
            left = most
            while left:
                size = min(left, self._expected) if parts else left
                parts -= size < left
                blocks = self.ahead[:size]
                if not len(blocks):
                    return
                yield blocks
                left -= size

    @property
    def _expected(self) -> int:
        """How many more blocks have the missing rows, if they match as often as those that were read."""
        held, read = self.ranked.rows.num_rows, int(np.count_nonzero(~self.unread))
        return math.ceil((self.n - held) * read / held) if 0 < held < self.n else len(self.unread)

    def _read(self, blocks: np.ndarray) -> None:
        self.unread[blocks] = False
        place, ties = self._boundary
        condition = None if place is None else up_to(self.order.first, place, ties=ties)
        reader, listed = wave(self.plan, blocks, self.fields, _under(self.plan.residuals, condition))
        files = reader.portions(listed)
        parts = read_ahead(lambda portion: _first(reader.read(*portion), self.order, self.n), files, reader.at_once)
        for part in parts:
            if part is not None:
                self.ranked = joined([self.ranked, part])
                if self.ranked.rows.num_rows > self.n + SPARE_ROWS:
                    self.ranked = self.ranked.least(self.n)
        self.ranked = self.ranked.least(self.n)

    @property
    def _boundary(self) -> tuple[Boundary | None, bool]:
        """Return the place after which no better row comes, and whether rows exactly at it may still be needed.

        With n rows found, it is the place of the last one. A row with the same value is better only by another column.
        With fewer, it is the plan's boundary, which follows from bounds: the rows before it may not have been read.
        """
        if self.ranked.rows.num_rows < self.n:
            return self.plan.survivors.boundary, True
        last = self.ranked.rows.slice(self.n - 1, 1).combine_chunks().to_batches()[0]
        return self.order.place_of(last), len(self.order.columns) > 1


def first_rows(plan: OrderedPlan, fields: Sequence[pa.Field]) -> pa.Table:
    """Return the first rows of a plan's order, in that order. Raises as reading does."""
    search = FirstRows(plan, fields)
    search.run()
    return search.ranked.rows.select([field.name for field in fields])


def _first(batches: Iterable[pa.RecordBatch], order: Order, n: int) -> Ranked | None:
    """Return the first n of all rows; None without rows."""
    parts: list[Ranked] = []
    rows = 0
    for batch in batches:
        parts.append(Ranked(pa.chunked_array([order.row_keys(batch)]), pa.Table.from_batches([batch])))
        rows += batch.num_rows
        if rows > n + SPARE_ROWS:
            parts = [joined(parts).least(n)]
            rows = n
    return joined(parts).least(n) if parts else None


def _under(residuals: Residuals, condition: Predicate | None) -> Residuals:
    """Return the residuals with a condition added to each by AND."""
    if condition is None:
        return residuals

    def both(left: Predicate | None) -> Predicate:
        return condition if left is None else And((left, condition))

    return replace(residuals, distinct=tuple(map(both, residuals.distinct)), whole=both(residuals.whole))
