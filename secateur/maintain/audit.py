"""Audit an index with a Spark job: its statistics and its plans against the data."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from secateur import api
from secateur.errors import IndexFault, InvalidParquet, SecateurError, StalePlan, UnsupportedTable
from secateur.index.build.spark_tasks import run_tasks, task_count
from secateur.index.build.tasks import RunTasks
from secateur.index.model import is_derived, name_of
from secateur.io.scan.audit_findings import AuditFault, AuditFindings
from secateur.io.scan.block_list import block_list, reading_order
from secateur.io.scan.explain import why
from secateur.io.scan.index_audit import AuditPart, StatisticsAudit
from secateur.io.scan.opened_table import OpenedTable, open_snapshot_of
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.pruned_blocks import excluded_by, sampled
from secateur.io.spark.audit import Asked, Match, matches_left_out
from secateur.io.spark.to_spark import is_ansi
from secateur.io.tables.table import Table
from secateur.maintain.random_predicates import DrawnColumn, python_values, random_predicates
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import Faults
from secateur.scan import Scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_BLOCKS = 256  # blocks read by default: at 128 MB each, half an hour of one core
MOST_EXCLUDED = 64  # pruned blocks read for one predicate by default
MOST_PARTITION_VALUES = 64  # partition values kept of each column
WAVES = 8  # jobs into which the work is split, so that progress can be shown

OnStep = Callable[[str, int, int], None]  # arguments: step, done, total


@dataclass(frozen=True)
class LostRow:
    """A row that matches a predicate but that its plan leaves out."""

    predicate: str
    file: str
    row_group: int
    position: int
    values: str
    why: str  # the stage and the conditions that pruned the block

    def __str__(self) -> str:
        return (
            f"{self.file}, row group {self.row_group}, row {self.position} matches {self.predicate}, and the plan "
            f"leaves it out: {self.values}. {self.why}"
        )


@dataclass(frozen=True)
class Audit:
    """The result of an audit: what was compared with the data, and every contradiction."""

    seed: int  # draws the same blocks, values and predicates again
    blocks: int  # blocks whose statistics were compared with their values
    covered_blocks: int  # blocks from which they were drawn
    rows: int
    values: int
    predicates: tuple[str, ...]
    pruned_blocks: int  # pruned blocks read for a predicate, counted once per predicate
    pruned_rows: int
    contradictions: tuple[AuditFault, ...]
    lost_rows: tuple[LostRow, ...]
    skipped: tuple[str, ...]  # what could not be checked, and why

    @property
    def faults(self) -> tuple[str, ...]:
        """Return all faults as text."""
        return tuple(map(str, (*self.contradictions, *self.lost_rows)))


def audit_index(
    table: Table,
    spark: SparkSession,
    share: float | None,
    predicates: Sequence[str | Predicate],
    random: int,
    seed: int,
    on_progress: OnStep,
) -> Audit:
    """Compare a share of the covered blocks (None: at most :data:`MOST_BLOCKS`) and of the plans with the data.

    Raises what :func:`secateur.prune` raises for the given predicates.
    """
    draw = np.random.default_rng(seed)
    zone = spark.conf.get("spark.sql.session.timeZone")
    planned = partial(api.prune, table, session_time_zone=zone, ansi=is_ansi(spark))
    faults = Faults()
    opened = open_snapshot_of(table, dt.UTC, faults)
    run, parallel = partial(run_tasks, spark), partial(task_count, spark)
    findings, covered = compared(opened, run, parallel, share, seed, on_progress)
    findings.skipped += faults.drain()
    plans = [planned(given) for given in predicates]
    for predicate in random_predicates(_drawn_columns(opened, findings, draw), random, draw):
        try:
            plans.append(planned(predicate))
        except SecateurError as error:
            findings.skipped.append(f"{predicate}: {error}")
    asked = [checked for plan in plans if (checked := _asked(plan, plans[0], share, draw, findings)) is not None]
    lost = _lost_rows(spark, asked, findings, on_progress)
    return Audit(
        seed=seed,
        blocks=findings.blocks,
        covered_blocks=covered,
        rows=findings.rows,
        values=findings.values,
        predicates=tuple(plan.sql for plan in plans),
        pruned_blocks=sum(len(checked.excluded) for checked in asked),
        pruned_rows=sum(checked.excluded.rows for checked in asked),
        contradictions=tuple(dict.fromkeys(_named(fault, opened) for fault in findings.faults)),
        lost_rows=tuple(lost),
        skipped=tuple(dict.fromkeys(findings.skipped)),
    )


def _named(fault: AuditFault, opened: OpenedTable) -> AuditFault:
    """Return the fault with the table's column name; for a column that the table has lost, the index's name."""
    naming, snapshot = opened.table.naming, opened.catalog.snapshot
    paths = {} if snapshot is None else {name_of(column.path): column.path for column in snapshot.columns}
    path = paths.get(fault.column, tuple(fault.column.split(".")))
    return replace(fault, column=".".join(naming.in_table(path)))


# ---- statistics ------------------------------------------------------------------------------------------------------


def compared(
    opened: OpenedTable,
    run: RunTasks,
    parallel: Callable[[int], int],
    share: float | None,
    seed: int,
    on_progress: OnStep,
) -> tuple[AuditFindings, int]:
    """Return what the statistics of some covered blocks contradict, and how many blocks are covered.

    `run` distributes the work over tasks; `parallel` gives the number of tasks for a number of blocks.
    """
    draw = np.random.default_rng(seed)
    catalog, findings = opened.catalog, AuditFindings()
    snapshot = catalog.snapshot
    if snapshot is None:
        return findings, 0
    runs = catalog.runs(None, catalog.everywhere(None))
    numbers = np.concatenate([np.zeros(0, np.int64), *(run.begin + np.arange(len(run)) for run in runs)])
    blocks = catalog.open(numbers, None)
    blocks = blocks.take(np.flatnonzero((blocks.segment >= 0) & (blocks.file >= 0)))
    chosen = blocks.take(sampled(len(blocks), _most(share, len(blocks), MOST_BLOCKS), draw))
    within = chosen.numbers - catalog.memory.groups.block_begin[chosen.segment]
    parts = _audit_parts(opened, chosen.segment, chosen.file, chosen.row_group, within, parallel(len(chosen)))
    opening = opened.table.delivery_of_all(opened.listing, np.zeros(0, np.int64)).open
    on_progress("blocks", 0, len(parts))
    done = 0
    for wave in np.array_split(np.arange(len(parts)), min(WAVES, max(1, len(parts) // WAVES))):
        audited = (opened.table.store, snapshot.number, snapshot.created, opening, [parts[i] for i in wave], seed)
        try:
            for data in StatisticsAudit(*audited).run(run):
                findings.add(data)
        except (IndexFault, StalePlan, InvalidParquet) as error:
            findings.skipped.append(str(error))
        done += len(wave)
        on_progress("blocks", done, len(parts))
    return findings, len(blocks)


def _most(share: float | None, count: int, bound: int) -> int:
    return min(count, bound) if share is None else math.ceil(share * count)


def _audit_parts(
    opened: OpenedTable, segment: np.ndarray, file: np.ndarray, row_group: np.ndarray, within: np.ndarray, tasks: int
) -> list[AuditPart]:
    """Split blocks into parts of one segment each, at least as many as there are tasks."""
    most = max(1, len(segment) // max(tasks, 1))
    parts = []
    for number in np.unique(segment).tolist():
        of_segment = np.flatnonzero(segment == number)
        of_segment = of_segment[reading_order(file[of_segment], row_group[of_segment])]
        for chosen in np.array_split(of_segment, -(-len(of_segment) // most)):
            options = opened.table.delivery_of_all(opened.listing, np.unique(file[chosen])).options
            listed = block_list(opened.listing, options, file[chosen], row_group[chosen], within[chosen])
            parts.append(AuditPart(number, listed.to_bytes()))
    return parts


# ---- predicates ------------------------------------------------------------------------------------------------------


def _drawn_columns(opened: OpenedTable, findings: AuditFindings, draw: np.random.Generator) -> list[DrawnColumn]:
    """Return the index's columns, and the partition columns, with sample values."""
    snapshot = opened.catalog.snapshot
    named: list[DrawnColumn] = []
    for number, column in enumerate([] if snapshot is None else snapshot.columns):
        path = opened.table.naming.in_table(column.path)
        is_own = opened.table.naming.is_in_table(column.path) and not is_derived(column.path)
        if is_own and path[0] not in opened.listing.columns:
            values = python_values(findings.drawn.get(number, ()), column.type)
            named.append(DrawnColumn(path, column.type, values))
    partitions = opened.listing.partitions
    for field, values_of_files in zip(partitions.fields, partitions.values, strict=True):
        chosen = sampled(len(values_of_files), MOST_PARTITION_VALUES, draw).tolist()
        some = tuple(values_of_files[i].as_py() for i in chosen if values_of_files[i].is_valid)
        named.append(DrawnColumn((field.name,), field.type, some))
    return named


def _asked(
    plan: Scan, first: Scan, share: float | None, draw: np.random.Generator, findings: AuditFindings
) -> Asked | None:
    """Plan a predicate and draw some pruned blocks; None if the table has changed since the first plan."""
    if plan.opened.listing.id != first.opened.listing.id:
        findings.skipped.append(f"{plan.sql}: the table has changed since the audit began")
        return None
    excluded = excluded_by(plan)
    return Asked(plan, excluded.take(sampled(len(excluded), _most(share, len(excluded), MOST_EXCLUDED), draw)))


def _lost_rows(
    spark: SparkSession, asked: Sequence[Asked], findings: AuditFindings, on_progress: OnStep
) -> Iterator[LostRow]:
    on_progress("predicates", 0, len(asked))
    try:
        proof = matches_left_out(spark, asked)
    except (UnsupportedTable, StalePlan, InvalidParquet) as error:
        findings.skipped.append(f"no predicate could be proven: {error}")
        return
    on_progress("predicates", len(asked), len(asked))
    findings.skipped += [f"{asked[number].plan.sql}: {reason}" for number, reason in proof.undecided.items()]
    for match in proof.matches:
        yield _lost(asked[match.asked].plan, match)


def _lost(plan: PlannedScan, match: Match) -> LostRow:
    place = match.path, match.row_group
    return LostRow(plan.sql, *place, match.position, match.values, str(why(plan, *place)))
