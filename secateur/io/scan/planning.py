"""Plan a query: from a predicate and settings to a plan, made now or kept from when the same was asked before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from secateur.io.scan.index_options import fields_at_paths, implied_by, indexed_expressions, order_over
from secateur.io.scan.kept.plan_memory import PlanMemory, PlanRequest, can_keep_plans, key_of
from secateur.io.scan.kept.verdicts import verdicts_on
from secateur.io.scan.last_state import has_last_state, plan_with_last_state
from secateur.io.scan.opened_table import OpenedTable, TableState, open_snapshot_of
from secateur.io.scan.planned_scan import Origin, PlannedScan, Settings
from secateur.io.tables.table import Table
from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.metrics import FileMetrics
from secateur.pruning.pipeline import run
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.binding.resolve import Binder, named_columns
from secateur.pruning.predicate.binding.variants import values_of
from secateur.pruning.predicate.bound import Field, Operand, Unsupported
from secateur.pruning.predicate.bound_walks import all_leaves, fields
from secateur.pruning.predicate.indexed.upper_by_lower import with_lower
from secateur.pruning.predicate.nodes import And, Predicate, Sql
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.variant_paths import is_variant
from secateur.pruning.report import Faults, Reads, counted
from secateur.pruning.reporters import notify
from secateur.pruning.shape import shape_of
from secateur.pruning.stages.survivors import Query, Survivors


def plan_scan(
    table: Table,
    predicate: Predicate,
    sql: Sql,
    settings: Settings,
    opened: OpenedTable | None = None,
    files: np.ndarray | None = None,
) -> PlannedScan:
    """Plan a query over the table's current snapshot, or over an open one, and report the plan.

    `sql` prints the predicate for Spark. `files` marks the only files of an open table whose rows are asked for.
    """
    scan = plan_unreported(table, predicate, sql, settings, opened, files)
    notify(scan.report)
    return scan


def plan_unreported(
    table: Table,
    predicate: Predicate,
    sql: Sql,
    settings: Settings,
    opened: OpenedTable | None = None,
    files: np.ndarray | None = None,
) -> PlannedScan:
    """Plan as `plan_scan` does what is only an estimate of a query."""
    started = time.perf_counter()
    if opened is not None:
        return _planned(Origin(table, predicate, settings), sql, started, opened, Faults(settings.strict), files)
    assert files is None, "files are numbered by the listing of an open table"
    snapshot, zone = table.snapshot(), known_zone(settings.session_time_zone)

    plan = partial(_again_or_planned, Origin(table, predicate, settings), sql, started)

    def open_table(known: TableState | None) -> OpenedTable:
        faults = Faults(settings.strict)
        return open_snapshot_of(snapshot, zone, faults, use_index=settings.use_index, since=settings.since, known=known)

    is_plain = settings.use_index and settings.since is None and settings.executors is None
    if not (is_plain and has_last_state(snapshot)):
        opened = open_table(None)
        return plan(opened, opened.catalog.faults)
    scan = plan_with_last_state(snapshot, open_table, lambda opened: plan(opened, opened.catalog.faults))
    return replace(scan, report=replace(scan.report, planning_seconds=time.perf_counter() - started))


def _again_or_planned(origin: Origin, sql: Sql, started: float, opened: OpenedTable, faults: Faults) -> PlannedScan:
    """Return the plan that was made when the same was asked before in the same state, else plan the query."""
    asked = _asked(origin, sql)
    if asked is None:
        return _planned(origin, sql, started, opened, faults)
    memory: PlanMemory[PlannedScan] = opened.table.cache.get("plans", PlanMemory)
    key = key_of(asked, opened)  # before planning: what reads of other threads find meanwhile makes another plan
    before = memory.find(key, asked.predicate, opened)
    if before is not None:
        return _given_again(before, origin, started, opened)
    folds = None if origin.settings.value_of is None else FoldsInSession(origin.settings.value_of)
    settings = replace(origin.settings, value_of=folds)
    plan = replace(_planned(replace(origin, settings=settings), sql, started, opened, faults), origin=origin)
    if folds is None or not folds.number:
        memory.keep(key, asked.predicate, opened, plan)
    return plan


def _given_again(before: PlannedScan, origin: Origin, started: float, opened: OpenedTable) -> PlannedScan:
    """Return a plan that was made before, with what it took now: looking up the state of the table, and no stage."""
    seen = replace(before.opened, manifests_read=opened.manifests_read)
    report = replace(
        before.report,
        kept=True,
        reads=Reads(),
        stages=tuple(replace(stage, seconds=0.0) for stage in before.report.stages),
        planning_seconds=time.perf_counter() - started,
        measure=lambda: _file_metrics(seen, before.survivors),
    )
    return replace(before, opened=seen, origin=origin, report=report)


def _asked(origin: Origin, sql: Sql) -> PlanRequest | None:
    """Return what is asked; None if its plan is not kept: a budget, keys, executors and `since` ask for more."""
    settings = origin.settings
    more = (settings.budget_ms, settings.executors, settings.since, settings.semi_join)
    if any(part is not None for part in more) or not isinstance(sql, str) or not can_keep_plans():
        return None
    session = (settings.session_time_zone, settings.ansi, settings.case_sensitive)
    how = (settings.limit, settings.order_by, settings.use_index, settings.use_verdicts, settings.strict)
    return PlanRequest(origin.predicate, (sql, session, how), settings.use_verdicts)


@dataclass
class FoldsInSession:
    """Computes constants in the Spark session, and counts them: they may be others when they are asked for again."""

    value_of: Callable[[str, bool, str], pa.Scalar | None]
    number: int = 0

    def __call__(self, session_time_zone: str, ansi: bool, text: str) -> pa.Scalar | None:
        """Compute an expression over constants, in a time zone, with or without ANSI mode."""
        self.number += 1
        return self.value_of(session_time_zone, ansi, text)


def _planned(
    origin: Origin, sql: Sql, started: float, opened: OpenedTable, faults: Faults, files: np.ndarray | None = None
) -> PlannedScan:
    """Plan a query, begun at a time by `time.perf_counter`, over an open table."""
    predicate, settings = origin.predicate, origin.settings
    deadline = None if settings.budget_ms is None else started + settings.budget_ms / 1000
    time_zone = settings.session_time_zone
    zone = known_zone(time_zone)
    bound = settings.bind(predicate, opened.binding_schema)
    executors = None if settings.executors is None else settings.executors(opened, faults)
    rewritten = rewrite(bound)
    order = order_over(settings.order_by, opened, Binder(opened.schema, zone, settings.case_sensitive))
    by_statistics = with_variant_values(rewritten, settings, predicate, opened)
    asked_of_index = with_indexed(by_statistics, settings, predicate, opened)
    opened.catalog.expect([*fields(asked_of_index), *([] if order is None else [order.first.field])])
    implied = implied_by(rewritten, opened)
    verdicts = verdicts_on(asked_of_index, opened, time_zone, ansi=settings.ansi) if settings.use_verdicts else ()
    query = Query(
        asked_of_index,
        opened.catalog,
        settings.limit,
        files,
        deadline=deadline,
        executors=executors,
        implied=implied,
        order=order,
        verdicts=verdicts,
    )
    asked = brief(sql) if settings.semi_join is None else f"{brief(sql)} AND {settings.semi_join}"
    pruned = run(query, faults, predicate=asked, index=_describe(opened))
    binder = Binder(opened.binding_schema, zone, settings.case_sensitive)
    named = tuple(
        dict.fromkeys([*named_columns(settings.whole(predicate), binder), *(() if order is None else order.names)])
    )
    survivors = pruned.survivors
    report = replace(
        pruned.report,
        table=opened.table.location,
        snapshot_id=opened.table.id,
        since=opened.since,
        order="" if order is None else f"{order} LIMIT {settings.limit}",
        planning_seconds=time.perf_counter() - started,
        measure=lambda: _file_metrics(opened, survivors),
        asked=lambda: shape_of(settings.whole(predicate)),
    )
    return PlannedScan(
        predicate=rewritten,
        written=sql,
        named=named,
        paths=opened.listing.paths,
        survivors=survivors,
        trail=pruned.trail,
        report=report,
        limit=settings.limit,
        order_by=order,
        session_time_zone=time_zone,
        ansi=settings.ansi,
        opened=opened,
        origin=origin,
        is_part=files is not None,
    )


def _file_metrics(opened: OpenedTable, survivors: Survivors) -> FileMetrics:
    """Return a plan's metrics of files and manifests."""
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


def with_variant_values(bound: Predicate, settings: Settings, predicate: Predicate, opened: OpenedTable) -> Predicate:
    """Return a bound predicate as statistics are asked: the values at paths into VARIANT are columns.

    It has the same value on every row on which Spark raises no error.
    """
    named = (field for leaf in all_leaves(bound) if isinstance(leaf, Unsupported) for field in leaf.fields)
    if not any(pa.types.is_struct(field.type) and is_variant(field.type) for field in named):
        return bound
    return rewrite(settings.bind(predicate, opened.binding_schema, variant_values=True))


def with_indexed(bound: Predicate, settings: Settings, predicate: Predicate, opened: OpenedTable) -> Predicate:
    """Return a bound predicate AND its rewriting over indexed expressions, which the index keeps like columns.

    Both parts have the same value on every row, so whatever rules out one of them rules out the predicate.
    """
    asked = frozenset(fields(bound))
    indexed: dict[Operand, Field] = {
        expression.operand: expression.field
        for expression in indexed_expressions(opened)
        if asked >= {*expression.fields}
    }
    at_paths = [field for field in fields_at_paths(opened) if field in asked]
    for field in at_paths:
        indexed |= dict.fromkeys(values_of(field), field)
    if not indexed:
        return bound
    alone, kept = replace(settings, semi_join=None), frozenset(indexed.values())
    again = alone.bind(predicate, opened.binding_schema, indexed, variant_values=bool(at_paths))
    of_index = [part for part in conjuncts(rewrite(with_lower(again, indexed))) if not kept.isdisjoint(fields(part))]
    return And((*conjuncts(bound), *of_index)) if of_index else bound


def _describe(opened: OpenedTable) -> str:
    snapshot = opened.catalog.snapshot
    if snapshot is None:
        return "none"
    files = len(opened.catalog.files)
    covered = files - len(opened.catalog.coverage.uncovered)
    segments = counted(len(snapshot.segments), "segment")
    made_of = "" if snapshot.made_of is None else f", made of table snapshot {snapshot.made_of.id}"
    entries = len(opened.catalog.coverage.live)
    tells_live = covered < entries or opened.table.id is not None
    live = f"; {covered:,} of its {counted(entries, 'file')} live" if tells_live else ""
    return f"snapshot {snapshot.number}, {segments}, covers {covered:,} of {counted(files, 'file')}{live}{made_of}"
