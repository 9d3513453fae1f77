"""The scans of TPC-H's and TPC-DS's queries, as Spark runs them: by filters, by the values of joins, by limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import sqlglot
from py4j.java_gateway import get_field
from sqlglot import exp

from benchmarks.rates.questions import Question
from benchmarks.rates.scans import FILTERS, JOINS, LIMIT, TOP_N, ZONE_MAPS, Measured
from benchmarks.rates.sql_tables import SqlBench, SqlTable, sql_benches
from benchmarks.rates.truth import conjuncts
from benchmarks.setting import Setting
from benchmarks.spark.enabled_sql import SWITCH, enabled
from benchmarks.spark.tpc_sql import leaves, rows_out, rows_read
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.planning import plan_scan
from secateur.io.spark.planner.session_rule import plans_of
from secateur.io.spark.planner.usable import without_limit
from secateur.io.tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_LETTERS = 110  # of a predicate, as results have it


@dataclass(frozen=True)
class QueryRead:
    """The blocks of all scans of one query: all of them, those that Spark alone reads, and those with pruning."""

    table: str
    query: int
    all: int
    alone: int
    pruned: int


@dataclass
class SqlScans:
    """The scans with filters of all queries, the blocks that whole queries read, and notes on scans left out."""

    scans: list[Measured] = field(default_factory=list)
    queries: list[QueryRead] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def sql_scans(setting: Setting, spark: SparkSession, sparse: int = 1) -> SqlScans:
    """Run each n-th query, with pruning and without, in a session whose plans show all of their scans.

    Raises AssertionError if answers differ, or a block is lost.
    """
    measured = SqlScans()
    for bench in sql_benches(setting, sparse):
        with enabled(spark, [table.table for table in bench.tables.values()]):
            for table in bench.tables.values():
                spark.read.parquet(str(table.directory)).createOrReplaceTempView(table.name)
            for number, query in bench.queries.items():
                _run(spark, bench, number, query, measured)
        spark.conf.unset(SWITCH)
    return measured


def _run(spark: SparkSession, bench: SqlBench, number: int, query: str, measured: SqlScans) -> None:
    answers, plans = [], []
    for switch in ("false", "true"):
        spark.conf.set(SWITCH, switch)
        frame: Any = spark.sql(query)
        answers.append(sorted(map(repr, frame.collect())))
        plans.append(frame._jdf.queryExecution().executedPlan())
    assert answers[0] == answers[1], f"{bench.label}: query {number} has other rows with pruning"
    alone, pruned = ([(name, -(-rows // bench.rows)) for name, rows in rows_read(plan)] for plan in plans)
    everything = sum(len(bench.tables[name].blocks) for name, _ in alone)
    read = (everything, sum(blocks for _, blocks in alone), sum(blocks for _, blocks in pruned))
    measured.queries.append(QueryRead(bench.label, number, *read))
    for leaf in leaves(plans[1]):
        if leaf.getClass().getSimpleName() == "BatchScanExec":
            table = bench.tables[Path(leaf.table().name()).name]
            plan, narrowed = plans_of(spark, get_field(leaf.scan().answer(), "number"))
            assert plan is not None, "the driver keeps the plans of the last hundred scans"
            if narrowed is not None and rows_out(leaf) > int(narrowed.survivors.blocks.row_count.sum()):
                narrowed = None  # the same scan stands in the plan twice, once without the values of the join
            _add(measured, bench, f"query {number}, {table.name}", table, plan, narrowed)


def _add(
    measured: SqlScans, bench: SqlBench, name: str, table: SqlTable, plan: PlannedScan, narrowed: PlannedScan | None
) -> None:
    """Measure one scan, if it has a filter, values of a join, or a limit."""
    last = plan if narrowed is None else narrowed
    sql = str(last.origin.predicate)
    conditions = conjuncts(sqlglot.parse_one(sql, read="spark").unnest())
    settings = plan.origin.settings
    if not conditions and settings.limit is None:
        return
    order = ", ".join(map(str, settings.order_by)) if narrowed is None else ""
    question = Question(name, sql, order_by=order, limit=settings.limit if narrowed is None else None)
    try:
        ideal = table.rows.holding(question)
    except (duckdb.Error, sqlglot.ParseError) as error:
        measured.notes.append(f"{bench.label}: {name} was not looked at: {str(error).splitlines()[0]}")
        return
    kept = np.zeros(len(table.blocks), bool)
    kept[last.survivors.blocks.row_group] = True
    assert question.limit is not None or not (ideal.blocks & ~kept).any(), f"{bench.label}: {name} loses blocks"
    rows = last.report.stages[-1].after.rows
    columns = {column.name for condition in conditions for column in condition.find_all(exp.Column)}
    text = " AND ".join(condition.sql("spark") for condition in conditions)
    measured.scans.append(
        Measured(
            bench.label,
            name,
            text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 4]} ...",
            "join" if narrowed is not None else "filter" if question.limit is None else "top-n" if order else "limit",
            "filter or order" if columns & set(table.served) else "",
            table.amount(np.ones(len(kept), bool)),
            table.amount(kept, rows),
            table.amount(ideal.blocks, ideal.rows),
            _pruned(table, plan, narrowed),
            apart=table.rows.met_apart(question, kept & ~ideal.blocks),
        )
    )


def _pruned(table: SqlTable, plan: PlannedScan, narrowed: PlannedScan | None) -> dict[str, int]:
    """What each technique prunes of what those before it left."""
    name = TOP_N if plan.origin.settings.order_by else LIMIT
    steps = [(ZONE_MAPS, _without_limit(table.bounds, plan)), (FILTERS, _without_limit(table.table, plan))]
    steps += [(name, plan)] if narrowed is None else [(JOINS, narrowed)]
    pruned, left = {}, len(table.blocks)
    for technique, step in steps:
        pruned[technique], left = left - len(step.survivors.blocks), len(step.survivors.blocks)
    return pruned


def _without_limit(table: Table, plan: PlannedScan) -> PlannedScan:
    return plan_scan(table, plan.origin.predicate, plan.written, without_limit(plan.origin.settings))
