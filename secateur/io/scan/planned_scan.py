"""A plan that can be read: as Arrow, as a Spark DataFrame, or as a count.

What only reading needs is imported by the functions that read: a process that plans answers sooner without it.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy
from secateur.errors import UnsupportedPredicate
from secateur.index.zones.sort_key import parse_sort_key, tuple_condition
from secateur.io.scan.opened_table import OpenedTable, open_snapshot_of
from secateur.io.scan.read_path import choose_road
from secateur.io.tables.field_ids import called_by_id
from secateur.io.tables.table import Delivery, Table
from secateur.pruning.affected import Affected, affected_files
from secateur.pruning.metrics import FileMetrics
from secateur.pruning.pipeline import run
from secateur.pruning.plan import ScanPlan
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.bind import bind
from secateur.pruning.predicate.bound import Within, fields, left_to_spark
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.nodes import Column, Predicate, Sql
from secateur.pruning.predicate.resolve import Binder, named_columns, resolve
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.temporal import zone_of
from secateur.pruning.report import Faults
from secateur.pruning.reporters import tell
from secateur.pruning.stages.survivors import Executors, Query, Survivors

if TYPE_CHECKING:
    from secateur.io.scan.block_list import BlockList
    from secateur.io.scan.block_reader import BlockReader
    from secateur.io.spark.to_spark import DataFrame, SparkSession
    from secateur.pruning.explain.explanation import Explanation
    from secateur.pruning.explain.why import FileWhy, Why

READ_THREADS = 8
Wanted = TypeVar("Wanted")
Result = TypeVar("Result")


ExecutorsFor = Callable[[OpenedTable, Faults], Executors]


@dataclass(frozen=True)
class Settings:
    """How a query is planned; see :func:`secateur.prune`."""

    limit: int | None = None
    budget_ms: float | None = None
    use_index: bool = True
    strict: bool = False
    session_time_zone: str = "UTC"
    case_sensitive: bool = False
    executors: ExecutorsFor | None = None


@dataclass(frozen=True)
class Origin:
    """What a plan was made of: asked again, it gives the plan of the table as it is then."""

    table: Table
    predicate: Predicate  # as it was given
    settings: Settings


@dataclass(frozen=True)
class Scan(ScanPlan):
    """The plan of one query over one table snapshot.

    Whatever road the rows take, they are those of ``table.where(predicate)`` as Spark answers it, or any
    `limit` of them.
    """

    opened: OpenedTable
    origin: Origin

    def __repr__(self) -> str:
        blocks = self.survivors.blocks
        assert blocks is not None
        return f"Scan({brief(self.written)}: {len(blocks):,} blocks of {len(self.file_ordinals):,} files)"

    def to_batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The matching rows as record batches, streamed block by block.

        Raises UnsupportedPredicate where only Spark can evaluate the predicate, UnknownColumn, StalePlan,
        InvalidParquet.
        """
        self.require_supported()
        reader = self._reader(self.fields(columns))
        left = self.limit
        for batch in reader.read_all(self.blocks_at(self.order(), reader)):
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            yield batch
            if left == 0:
                return

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The matching rows as one table; blocks are read in parallel. Raises as :meth:`to_batches` does."""
        fields = self.fields(columns)
        schema = pa.schema(fields)
        if self.limit is not None:
            return pa.Table.from_batches(self.to_batches(columns), schema).combine_chunks()
        self.require_supported()
        reader = self._reader(fields)
        parts = read_ahead(lambda file: list(reader.read(file)), self.blocks_at(self.order(), reader).by_file())
        return pa.Table.from_batches([batch for part in parts for batch in part], schema)

    def count(self) -> int:
        """The number of matching rows; only blocks that are neither dead nor fully matching are read."""
        blocks = self.survivors.blocks
        assert blocks is not None
        sure = self.sure
        total = int(blocks.row_count[sure].sum())
        if not sure.all() and (self.limit is None or total < self.limit):
            self.require_supported()
            reader = self._reader(())
            order = self.order()
            unsure = self.blocks_at(order[~sure[order]], reader)
            total += sum(read_ahead(reader.count, unsure.by_file()))
        return total if self.limit is None else min(total, self.limit)

    @property
    def sure(self) -> np.ndarray:
        """Which of the blocks hold only rows of the plan: those that match whole, and of which no row is deleted."""
        blocks, touched = self.survivors.blocks, self.opened.listing.touched
        assert blocks is not None
        matching = self.survivors.fully_matching
        return matching if touched is None else matching & ~touched[blocks.file]

    def affected(self) -> Affected:
        """The files that a DELETE or an UPDATE of the matching rows leaves as they are, drops whole, or rewrites.

        By metadata alone; a file may be listed as rewritten though every row of it matches, or none. Rows for which the
        predicate is NULL do not match. Raises ValueError for a plan with a limit, which leaves out blocks that match.
        """
        if self.limit is not None:
            raise ValueError(f"a plan with limit={self.limit} does not tell which files hold matching rows")
        blocks = self.survivors.blocks
        assert blocks is not None
        rows, deleted = self.opened.catalog.file_rows, self.survivors.deleted_rows
        live = rows if deleted is None else np.where(rows >= 0, rows - deleted, rows)
        return affected_files(self.paths, live, blocks, self.survivors.fully_matching)

    def to_spark(
        self, spark: SparkSession, columns: Sequence[str] | None = None, via: str = "auto", *, replan: bool = False
    ) -> DataFrame:
        """The matching rows as a Spark DataFrame; see :func:`secateur.io.spark.to_spark.to_spark`.

        With `replan`, the table is looked at once more: where a file of the plan is gone or another one, the rows are
        those of a new plan, with the same settings.
        """
        from secateur.io.spark.to_spark import to_spark

        plan = self if not replan or self.is_current() else self.replanned()
        return to_spark(plan, spark, columns, via)

    def is_current(self) -> bool:
        """Whether all files of the plan are live and unchanged now: by one listing, or the table's metadata now.

        Whatever else became of the table since, rows that were added or deleted, the plan still gives those of its own
        moment.
        """
        zone = zone_of(self.session_time_zone)
        assert zone is not None
        now, then, own = self.origin.table.snapshot(fresh=True).fresh_listing(zone), self.opened.listing, self._files
        found = pc.index_in(then.paths.take(own), value_set=now.paths)
        if found.null_count:
            return False
        at, mine = found.to_numpy(), own.to_numpy()
        pairs = ((now.size, then.size), (now.modified, then.modified), (now.witness, then.witness))
        return all(bool((new[at] == old[mine]).all()) for new, old in pairs)

    @property
    def _files(self) -> pa.Array:
        return from_numpy(self.file_ordinals)

    def replanned(self) -> Scan:
        """The same query planned anew, over the table as it is now, with the same settings. Raises as planning does."""
        self.origin.table.expire()
        return plan_scan(self.origin.table, self.origin.predicate, self.written, self.origin.settings)

    @overload
    def why(self, block: str) -> FileWhy: ...

    @overload
    def why(self, block: Mapping[str, object]) -> Why: ...

    @overload
    def why(self, block: str, row_group: int) -> Why: ...

    def why(self, block: str | Mapping[str, object], row_group: int | None = None) -> FileWhy | Why:
        """Why a file, or one block, is read or left out: the stage, the conjunct and the statistic that decide.

        `block` is the path of a file as in ``plan.files``, alone or with the number of a row group, or a row of
        ``plan.blocks``, a mapping with `file` and `row_group`. Raises UnknownBlock for what the table does not have.
        """
        from secateur.io.scan.explain import why

        return why(self, block, row_group)

    def explain(self, format: str = "text", *, verbose: bool = False) -> str:
        """The report as a text table, or as JSON with ``explain("json")``, and the road that rows take to Spark.

        `verbose` adds what could serve every conjunct: which structures there are, how many of all blocks each alone
        leaves, and what is missing, as the argument that makes it. For that zone maps, filters and pages are read over
        the whole index, and no data file is opened.
        """
        report, road = super().explain(format), choose_road(self)
        if format == "json":
            more = {"explanation": asdict(self.explanation)} if verbose else {}
            return json.dumps({**json.loads(report), "road": asdict(road), **more}, indent=2)
        told = f"{report}\nroad to Spark: {road}"
        return f"{told}\n\n{self.explanation}" if verbose else told

    @cached_property
    def explanation(self) -> Explanation:
        """What serves every conjunct of the predicate, and what could; see :meth:`explain`."""
        from secateur.io.scan.explain import explanation

        return explanation(self)

    def fields(self, columns: Sequence[str] | None = None) -> list[pa.Field]:
        """The table's fields of the given names, or all. Raises UnknownColumn."""
        schema = self.opened.schema
        if columns is None:
            return list(schema)
        zone = zone_of(self.session_time_zone)
        assert zone is not None
        found = [resolve(Column(split_name(name)), Binder(schema, zone)) for name in columns]
        return [schema.field(field.path[0]) for field in found]

    def order(self) -> np.ndarray:
        """The positions of the surviving blocks in order of their files, and within them of their row groups."""
        from secateur.io.scan.block_list import reading_order

        blocks = self.survivors.blocks
        assert blocks is not None
        return reading_order(blocks.file, blocks.row_group)

    def blocks_at(self, positions: np.ndarray, reader: BlockReader) -> BlockList:
        """Surviving blocks as a reader is told of them, by their positions in the order of :meth:`order`."""
        from secateur.io.scan.surviving_blocks import surviving_blocks

        assert self.survivors.blocks is not None
        files = np.unique(self.survivors.blocks.file[positions])
        told = self.delivery.told.take(from_numpy(np.searchsorted(self.file_ordinals, files)))
        return surviving_blocks(self, positions, reader, told)

    @cached_property
    def delivery(self) -> Delivery:
        """How the rows of the surviving files are read; what deletes rows of theirs is read once."""
        return self.opened.table.delivery(self.opened.listing, self.file_ordinals)

    def _reader(self, fields: Sequence[pa.Field]) -> BlockReader:
        from secateur.io.scan.block_reader import block_reader

        return block_reader(self.opened, self.delivery, fields, self.residuals)

    def require_supported(self) -> None:
        """Raises UnsupportedPredicate where only Spark can evaluate the predicate and some block needs it."""
        left = self.residuals.whole
        reasons = [] if left is None else list(left_to_spark(left))
        if reasons:
            raise UnsupportedPredicate(f"only Spark can evaluate {'; '.join(reasons)}: use plan.to_spark(spark)")


def read_ahead(read: Callable[[Wanted], Result], files: Iterable[Wanted]) -> Iterator[Result]:
    """What `read` gives of every file, in order; a few files more than there are threads are on their way at once."""
    ahead: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(READ_THREADS) as threads:
        for file in files:
            if len(ahead) == 2 * READ_THREADS:
                yield ahead.popleft().result()
            ahead.append(threads.submit(read, file))
        while ahead:
            yield ahead.popleft().result()


def plan_scan(
    table: Table, predicate: Predicate, sql: Sql, settings: Settings, opened: OpenedTable | None = None
) -> Scan:
    """The plan of a query over the table's current snapshot, or over one that is open.

    `sql` prints as the predicate that Spark is to read.
    """
    started = time.perf_counter()
    deadline = None if settings.budget_ms is None else started + settings.budget_ms / 1000
    time_zone = settings.session_time_zone
    zone = zone_of(time_zone)
    if zone is None:
        raise ValueError(f"unknown time zone {time_zone!r}")
    faults = Faults(settings.strict)
    if opened is None:
        opened = open_snapshot_of(table, zone, faults, use_index=settings.use_index)
    bound = bind(predicate, opened.binding_schema, session_time_zone=time_zone, case_sensitive=settings.case_sensitive)
    executors = None if settings.executors is None else settings.executors(opened, faults)
    rewritten = rewrite(bound)
    opened.catalog.expect(fields(rewritten))
    query = Query(rewritten, opened.catalog, settings.limit, deadline, executors, implied_by(rewritten, opened))
    survivors, report = run(query, faults, predicate=brief(sql), index=_describe(opened))
    binder = Binder(opened.binding_schema, zone, settings.case_sensitive)
    named = tuple(dict.fromkeys(named_columns(predicate, binder)))
    report = replace(
        report,
        table=opened.table.location,
        snapshot_id=opened.table.id,
        planning_seconds=time.perf_counter() - started,
        measure=lambda: _file_metrics(opened, survivors),
    )
    tell(report)
    return Scan(
        predicate=query.predicate,
        written=sql,
        named=named,
        paths=opened.listing.paths,
        survivors=survivors,
        trail=tuple(query.trail),
        report=report,
        limit=settings.limit,
        session_time_zone=time_zone,
        opened=opened,
        origin=Origin(table, predicate, settings),
    )


def _file_metrics(opened: OpenedTable, survivors: Survivors) -> FileMetrics:
    """What a plan found of files and manifests."""
    assert survivors.blocks is not None
    ordinals = np.flatnonzero(np.bincount(survivors.blocks.file))
    manifests, read = opened.table.metadata_tables.manifest_counts, opened.manifests_read
    deletes = opened.listing.delete_counts(ordinals)
    return FileMetrics(
        file_bytes=int(opened.listing.size[ordinals].sum()),
        data_manifests=manifests.data,
        data_manifests_read=read.data,
        delete_manifests=manifests.deletes,
        delete_manifests_read=read.deletes,
        position_deletes=deletes.position,
        equality_deletes=deletes.equality,
        deletion_vectors=deletes.vectors,
        applied_deletes=deletes.applied,
        applied_delete_bytes=deletes.applied_bytes,
        needed_deletes=deletes.needed,
        touched=deletes.touched,
    )


def implied_by(predicate: Predicate, opened: OpenedTable) -> Within | None:
    """What a predicate says of the tuples of the index's sort key."""
    snapshot, naming = opened.catalog.snapshot, opened.table.naming
    if snapshot is None:
        return None
    outside = {name.lower() for name in opened.listing.columns}
    key = parse_sort_key(snapshot.options.sort_key)
    if any(column.path[0].lower() in outside for column in key):
        return None  # a column that directories name has other values than that of the same name in the files
    if naming is None:
        return tuple_condition(predicate, key, snapshot.columns, opened.schema)
    return tuple_condition(predicate, key, snapshot.columns, called_by_id(opened.schema), naming.in_table)


def _describe(opened: OpenedTable) -> str:
    snapshot = opened.catalog.snapshot
    if snapshot is None:
        return "none"
    files = len(opened.catalog.files)
    covered = files - len(opened.catalog.coverage.uncovered)
    segments = f"{len(snapshot.segments):,} segments"
    made_of = "" if snapshot.made_of is None else f", made of table snapshot {snapshot.made_of.id}"
    entries = len(opened.catalog.coverage.live)
    live = (
        f"; {covered:,} of its {entries:,} files are live" if covered < entries or opened.table.id is not None else ""
    )
    return f"snapshot {snapshot.number}, {segments}, covers {covered:,} of {files:,} files{live}{made_of}"
