"""Pruning rates of events, logs, TPC-H and TPC-DS: blocks, rows and bytes kept of every scan, beside the ideal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.rates.copies import Copy, copies, generated
from benchmarks.rates.events import EVENTS
from benchmarks.rates.log_events import LOGS
from benchmarks.rates.questions import Question
from benchmarks.rates.scans import Measured, measured
from benchmarks.rates.sql_scans import QueryRead, sql_scans
from benchmarks.rates.truth import rows_of
from benchmarks.results import Kept, Result
from benchmarks.setting import Setting
from benchmarks.spark.sessions import spark_session
from benchmarks.spark.tpc_sql import rows_read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKLOADS = (EVENTS, LOGS)
ALONE = "Spark alone"
SMALL, EVERY_SMALL = 0.05, 6  # below this scale each n-th question is asked


@dataclass(frozen=True)
class Rates:
    """All scans of all workloads, the blocks that whole TPC queries read, and notes on scans left out."""

    scans: tuple[Measured, ...]
    queries: tuple[QueryRead, ...]
    notes: tuple[str, ...]


def pruning_rates(setting: Setting) -> Result:
    """Blocks, rows and bytes of every scan, as results have them."""
    rates = measured_rates(setting)
    kept = [left for scan in rates.scans for left in _kept(scan)]
    for query in rates.queries:
        counts = {"secateur": query.pruned, ALONE: query.alone}
        kept.append(Kept(f"{query.table}, whole queries", f"query {query.query}", "blocks", query.all, None, counts))
    missed = sum(scan.misses for scan in rates.scans)
    served = sum(bool(scan.served) for scan in rates.scans)
    sizes = {"scans": len(rates.scans), "scans_with_a_structure": served, "of_these_over_the_goal": missed}
    return Result(sizes, kept=tuple(kept), notes=rates.notes)


def measured_rates(setting: Setting, sparse: int = 1) -> Rates:
    """Measure all scans and each n-th TPC query. Spark runs the queries, and is itself measured as a peer."""
    with spark_session() as spark, _settled(spark):
        every = EVERY_SMALL if setting.scale < SMALL else 1
        scans = [
            scan for workload in WORKLOADS for copy in copies(setting, workload) for scan in _scans(copy, spark, every)
        ]
        sql = sql_scans(setting, spark, sparse)
    return Rates((*scans, *sql.scans), tuple(sql.queries), tuple(sql.notes))


@contextmanager
def _settled(spark: SparkSession) -> Iterator[None]:
    """Have plans show all of their scans, and times in UTC; restore the settings afterwards."""
    wanted = {"spark.sql.adaptive.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    before = {name: str(spark.conf.get(name)) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _scans(copy: Copy, spark: SparkSession, every: int) -> Iterator[Measured]:
    """Each n-th question of a copy's workload; what Spark alone reads is measured where the table is a directory."""
    rows = rows_of(copy)
    for question in copy.workload.questions(generated(copy))[::every]:
        scan = measured(copy, rows, question)
        if copy.format == "directory":
            scan = replace(scan, others={**scan.others, ALONE: _alone(copy, question, spark)})
        yield scan


def _alone(copy: Copy, question: Question, spark: SparkSession) -> int:
    """The blocks whose rows leave Spark's own scan: it prunes by the bounds and dictionaries in the files."""
    from pyspark.sql.functions import asc, desc

    options = {"parquet.filter.columnindex.enabled": "false"}  # whole row groups: rows give their number
    frame: Any = spark.read.options(**options).parquet(str(copy.home)).where(question.sql)
    if question.keys is not None:
        small = spark.createDataFrame([(key,) for key in question.keys.values.to_pylist()], [question.keys.column])
        frame = frame.join(small, question.keys.column, "left_semi")
    if question.order_by:
        column, _, direction = question.order_by.partition(" ")
        frame = frame.orderBy(desc(column) if direction == "DESC" else asc(column))
    frame = frame.groupBy().count() if question.limit is None else frame.limit(question.limit)
    frame.collect()
    read = (rows for _, rows in rows_read(frame._jdf.queryExecution().executedPlan()))
    return sum(-(-rows // copy.workload.rows) for rows in read)


def _kept(scan: Measured) -> Iterator[Kept]:
    """A scan as results have it, in blocks, rows and bytes."""
    for unit in ("blocks", "rows", "bytes"):
        everything, kept, ideal = (getattr(amount, unit) for amount in (scan.all, scan.kept, scan.ideal))
        if unit == "bytes" and scan.technique == "limit":
            ideal = None  # the blocks with most matches need not be the smallest
        others, pruned = (scan.others, scan.pruned) if unit == "blocks" else ({}, {})
        yield Kept(scan.table, scan.label, unit, everything, ideal, {"secateur": kept, **others}, pruned)
