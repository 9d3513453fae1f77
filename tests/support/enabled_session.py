"""Switch ``sec.enable`` on and off in a session, and run the same query with it and without it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import get_field
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.io.spark.planner import session_rule
from tests.support.older_spark import condition_of

SWITCH = "secateur.enabled"


@contextmanager
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with pruning."""
    sec.enable(spark)
    try:
        yield spark
    finally:
        sec.disable(spark)
        spark.conf.unset(SWITCH)


@contextmanager
def new_rule(spark: SparkSession) -> Iterator[SparkSession]:
    """The same by a rule of its own, made with the settings of now; the one that was there comes back."""
    before = dict(session_rule._rules)
    session_rule._rules.clear()
    try:
        with enabled(spark):
            yield spark
    finally:
        session_rule._rules.clear()
        session_rule._rules.update(before)


@contextmanager
def settings(spark: SparkSession, chosen: Mapping[str, str]) -> Iterator[None]:
    """The session with other settings."""
    before = {key: spark.conf.get(key, None) for key in chosen}
    for key, value in chosen.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, was in before.items():
            spark.conf.unset(key) if was is None else spark.conf.set(key, was)


def answer(spark: SparkSession, query: str, *, pruned: bool) -> list[str]:
    """Columns and sorted rows of a query, or the kind of its error."""
    spark.conf.set(SWITCH, str(pruned).lower())
    try:
        frame = spark.sql(query)
        return [str(frame.dtypes), *sorted(map(repr, frame.collect()))]
    except PySparkException as error:
        return [condition_of(error) or type(error).__name__]
    except Py4JJavaError as error:  # of a task
        return re.findall(r"\[([A-Z_0-9.]+)\]", str(error))[:1]
    finally:
        spark.conf.unset(SWITCH)


def answers(frame: DataFrame) -> list[int]:
    """The numbers of the answers that the pruned scans of a query have; its plan is not adaptive, which hides them."""
    plan: Any = frame._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves()
    scans = [leaves.apply(i) for i in range(leaves.length())]
    pruned = [leaf.scan().answer() for leaf in scans if leaf.getClass().getSimpleName() == "BatchScanExec"]
    return [get_field(metric, "number") for metric in pruned]


def require_same(spark: SparkSession, query: str) -> None:
    """The answer with pruning is that without it."""
    assert answer(spark, query, pruned=True) == answer(spark, query, pruned=False), query


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def pruning(frame: DataFrame) -> list[str]:
    """What EXPLAIN says of every pruned scan."""
    return re.findall(r"IndexPruning: ([\d,]+ of [\d,]+)", plan_of(frame))


def reasons(spark: SparkSession) -> list[str]:
    """Why the session's last relations were left as they were."""
    return [record.reason for record in sec.last_plans(spark) if record.plan is None]
