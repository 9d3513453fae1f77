"""Plan which files of a table to rewrite together: measure what queries read, and judge orders on sampled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.arrays import from_numpy
from secateur.errors import InvalidOption
from secateur.index.advise.look_ups import NULL, measured_share, share_of_look_ups
from secateur.index.advise.resort import laid_out
from secateur.index.advise.rewrite_groups import AskedFiles, RewriteCandidates, RewriteGroup, ShareOfBlocks
from secateur.index.advise.row_orders import Curve, RowOrder, orders_by, positions
from secateur.io.scan.advise.block_samples import Sample, read_blocks, rows_true_of, sample
from secateur.io.scan.advise.bounds_plan import plan_of_all
from secateur.io.scan.advise.ranked_column import RankedColumn
from secateur.io.scan.advise.rewritten_files import TableFiles
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.tables.rewriter import Rewriter, RewrittenFiles
from secateur.pruning.explain.reclustering import OrderCost, Reclustering
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.bound_walks import columns

MOST_ROWS = 1 << 18  # on which orders are judged


@dataclass(frozen=True)
class Terms:
    """What a rewrite may cost."""

    budget: int | None  # bytes to rewrite
    pays_after: float  # queries that save as many bytes as a rewrite reads and writes
    curve: Curve | None = None  # the only one to try


@dataclass(frozen=True)
class WeightedPlan:
    """The plan of a query, and its share of all queries."""

    plan: PlannedScan
    weight: float


@dataclass(frozen=True, eq=False)
class RewritePlan:
    """Which files of a table to rewrite: what users see, and what the table's writer takes, group by group."""

    reclustering: Reclustering
    order: RowOrder
    files: tuple[RewrittenFiles, ...]


def rewrite_plan(
    opened: OpenedTable, rewriter: Rewriter, by: Sequence[Field], plans: Sequence[WeightedPlan], terms: Terms, most: int
) -> RewritePlan:
    """Plan which files to rewrite, by look-ups of the columns or by some plans; at most so many blocks are sampled."""
    names = list(dict.fromkeys([*(field.path[0] for field in by), *_columns_of(plans)]))
    whole = plan_of_all(opened)
    places = sample(whole, most).places
    batches = read_blocks(opened, names, places, lambda place, batch: batch)
    schema = pa.schema([opened.readable_schema.field(name) for name in names])
    rows = _thinned(pa.Table.from_batches(list(batches.values()), schema))
    ranked = {str(field): RankedColumn.of(field, rows, whole.survivors.blocks) for field in by}
    files = TableFiles(opened, rewriter, whole.survivors.blocks)
    return _Judged(files, rows, ranked, plans, terms, len(batches)).plan


def _columns_of(plans: Sequence[WeightedPlan]) -> list[str]:
    """Return the top-level columns inside the files that some plans ask for."""
    outside = {name for weighted in plans for name in weighted.plan.opened.listing.columns}
    return [name for weighted in plans for name in columns(weighted.plan.predicate) if name not in outside]


def _thinned(rows: pa.Table) -> pa.RecordBatch:
    """Take every n-th row, so that at most MOST_ROWS are left."""
    at = np.arange(0, rows.num_rows, -(-rows.num_rows // MOST_ROWS) or 1)
    batches = rows.take(from_numpy(at)).combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)


# ---- orders ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Judged:
    """A table, the queries that are asked of it, and sampled rows on which orders are judged."""

    files: TableFiles
    rows: pa.RecordBatch
    ranked: Mapping[str, RankedColumn]  # by column
    plans: Sequence[WeightedPlan]
    terms: Terms
    sampled: int  # blocks

    @property
    def plan(self) -> RewritePlan:
        """The files to rewrite in the best order that the table's writer can write.

        Raises InvalidOption if it can write none of those that are asked for.
        """
        if not self.writable:
            able = ", ".join(map(str, self.files.rewriter.orders(list(self.ranked))))
            raise InvalidOption(f"the table's own writer writes no {self.terms.curve} order; it can write: {able}")
        by_order = {order: self._candidates(order) for order in self.orders}
        then = {order: candidates.of_all()[1] for order, candidates in by_order.items()}
        best_first = sorted(by_order, key=then.__getitem__)
        order = next((one for one in best_first if one in self.writable), self.writable[0])
        best = by_order.get(order)
        groups = [] if best is None else self._groups(best)
        files = [self.files.rewritten(group.files) for group in groups]
        reclustering = Reclustering(
            table=self.files.opened.table.location,
            queries=self._queries,
            data_bytes=int(self.files.opened.listing.size.sum()),
            budget=self.terms.budget,
            order=str(order),
            orders=tuple(OrderCost(str(one), then[one], one in self.writable) for one in best_first),
            groups=tuple(
                self.files.described(group, self.files.rewriter.statement(of_group, order, number))
                for number, (group, of_group) in enumerate(zip(groups, files, strict=True), 1)
            ),
            bytes_now=0.0 if best is None else best.of_all()[0],
            sampled=self.sampled,
            done=self.files.rewriter.done,
        )
        return RewritePlan(reclustering, order, tuple(files))

    def _groups(self, candidates: RewriteCandidates) -> list[RewriteGroup]:
        least_saved = 2 / self.terms.pays_after
        whole = self.files.rewriter.whole_partitions
        return candidates.chosen(self.terms.budget, least_saved, whole_partitions=whole)

    @cached_property
    def writable(self) -> list[RowOrder]:
        """The orders that the table's writer can write, of the curve that is asked for."""
        orders = self.files.rewriter.orders(list(self.ranked))
        return [order for order in orders if self.terms.curve in (None, order.curve)]

    @property
    def orders(self) -> list[RowOrder]:
        """The orders to compare: those, and others that show what the writer cannot do; none without rows."""
        others = [] if self.terms.curve else orders_by(list(self.ranked))
        return list(dict.fromkeys([*self.writable, *others])) if self.rows.num_rows else []

    @property
    def _queries(self) -> str:
        if not self.plans:
            return f"look-ups of the values of any row in {' or '.join(self.ranked)}"
        return f"{len(self.plans)} {'query' if len(self.plans) == 1 else 'queries'}"

    def _candidates(self, order: RowOrder) -> RewriteCandidates:
        return RewriteCandidates(
            asked=self.asked,
            shares=self._shares(order),
            size=self.files.opened.listing.size,
            blocks=self.files.blocks,
            partition=self.files.partition,
            least=self.ranked[order.columns[0]].least(self.files.count),
        )

    # ---- queries

    @cached_property
    def asked(self) -> list[AskedFiles]:
        """What the queries read of every file now."""
        if not self.plans:
            weight = 1 / len(self.ranked)
            return [
                one.blocks.asked(one.rows[one.rows != NULL], self.files.count, weight) for one in self.ranked.values()
            ]
        total = sum(one.weight for one in self.plans)
        return [_asked_by(one.plan, one.weight / total, self.files.count) for one in self.plans]

    def _shares(self, order: RowOrder) -> list[ShareOfBlocks]:
        """Return, for each of `asked`, the share of blocks that it reads if the rows lie in an order."""
        at = self._positions(order)
        if not self.plans:
            return [share_of_look_ups(one.rows[at], len(self.files.every)) for one in self.ranked.values()]
        return [self._share_of(one.plan, at) for one in self.plans]

    def _share_of(self, plan: PlannedScan, at: np.ndarray) -> ShareOfBlocks:
        true_of = rows_true_of(Sample(plan, np.zeros(0, np.int64), 0), [self.rows])
        return measured_share(
            self.rows.num_rows,
            len(self.files.every),
            lambda edges: laid_out(self.rows, at, edges).share_left(plan.predicate, true_of),
        )

    def _positions(self, order: RowOrder) -> np.ndarray:
        chosen = [self.ranked[name] for name in order.columns]
        if order.curve is Curve.SORT:
            return positions(order.curve, [(one.rows + 1).astype(np.uint64) for one in chosen])
        of_values = order.curve is Curve.ZORDER and self.files.rewriter.orders_values
        return positions(order.curve, [one.in_curve(of_values) for one in chosen])


def _asked_by(plan: PlannedScan, weight: float, files: int) -> AskedFiles:
    """Return what a planned query reads of every file."""
    blocks = plan.survivors.blocks
    read = np.bincount(blocks.file, blocks.byte_count, files)
    asks = np.bincount(blocks.file, minlength=files) > 0
    return AskedFiles(weight, read, np.zeros(files), asks.astype(np.float64))
