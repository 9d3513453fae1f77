"""Install the optimizer rule that prunes a session's queries, remove it, and report what it did."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from secateur.forks import lock_for
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark.hadoop_locations import as_opened_here
from secateur.io.spark.planner.compiled import (
    DELTA,
    FIRST,
    FIRST_DELTA,
    ICEBERG,
    RANGED_DELTA,
    RULE,
    TARGET_DELTA,
    compiled,
    compiled_beside,
)
from secateur.io.spark.planner.enabled import Enabled
from secateur.io.spark.planner.python_lists import unchanging
from secateur.io.spark.planner.relation import first_line, listed
from secateur.io.spark.version import IS_3
from secateur.io.tables.delta.table import DeltaTable
from secateur.io.tables.directory.table import ParquetDirectory

_log = logging.getLogger("secateur")

MOST_MILLISECONDS = 10_000  # limit of one call into Python; the first call loads modules and the index
LOOK_MILLISECONDS = 10_000  # how long "this table has an index" (or has none) is cached


@dataclass(frozen=True)
class Relation:
    """The result for one relation of a query: its plan, or why it was left unchanged."""

    location: str
    text: str
    plan: PlannedScan | None


@dataclass
class SessionRule:
    """The rule of one JVM, shared by all its sessions."""

    python: Enabled
    java: Any
    is_injected: bool = field(default=False)

    def relations(self, session: str) -> Iterator[Relation]:
        """Yield the results for a session's last relations, oldest first."""
        events = list(self.java.events())
        for i in range(0, len(events), 4):
            owner, location, number, text = events[i : i + 4]
            if owner == session:
                yield Relation(location, text, self.python.plan(int(number)) if number else None)


_rules: dict[Any, SessionRule] = {}  # by gateway
_lock = lock_for(sys.modules[__name__], "_lock")


def enable(
    spark: SparkSession, tables: Sequence[ParquetDirectory | DeltaTable], uses_index: Callable[[], bool]
) -> str | None:
    """Prune the queries of a session and of sessions made from it later. Return None, or why that is impossible."""
    if not hasattr(spark, "_jsparkSession"):
        return "Spark Connect plans in another process: enable the session of the server"
    gateway = spark.sparkContext._gateway
    try:
        with _lock:
            rule = _rules.get(gateway) or _registered(spark.sparkContext, uses_index)
            rule.python.named.update({as_opened_here(table.location): table for table in tables})
            rule.java.enable(spark._jsparkSession)
            if not rule.is_injected:
                rule.java.enableLater(spark._jsparkSession)
                rule.is_injected = True
    except (Py4JError, PySparkException, TypeError, ValueError) as error:
        return f"this Spark has other internals: {first_line(error)}"
    return None


def disable(spark: SparkSession) -> None:
    """Stop pruning the queries of a session, and of sessions made later."""
    rule = _rule_of(spark)
    if rule is not None:
        rule.java.disable(spark._jsparkSession)


def relations(spark: SparkSession) -> list[Relation]:
    """Return the results for the relations of a session's last queries, oldest first; empty if not enabled."""
    rule = _rule_of(spark)
    return [] if rule is None else list(rule.relations(spark._jsparkSession.sessionUUID()))


def plans_of(spark: SparkSession, number: int) -> tuple[PlannedScan | None, PlannedScan | None]:
    """Return the plan of an answer to a session's scan, and what the values of a join left of it last, if any came."""
    rule = _rule_of(spark)
    return (None, None) if rule is None else (rule.python.plan(number), rule.python.narrowed(number))


def _rule_of(spark: SparkSession) -> SessionRule | None:
    return _rules.get(spark.sparkContext._gateway) if hasattr(spark, "_jsparkSession") else None


def _registered(context: SparkContext, uses_index: Callable[[], bool]) -> SessionRule:
    """Compile and register the rule. Raises Py4JError or TypeError if Spark's internals do not fit."""
    gateway: Any = context._gateway
    rule_class = compiled(gateway, RULE)
    ensure_callback_server_started(gateway)
    python = Enabled(uses_index)
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
    arguments[0] = listed(gateway.jvm, (python, MOST_MILLISECONDS, LOOK_MILLISECONDS))
    (constructor,) = rule_class.getConstructors()
    rule = SessionRule(python, constructor.newInstance(arguments))
    _also_iceberg(context, rule, rule_class)
    _also_delta(gateway, rule, rule_class)
    _rules.clear()  # rules of a JVM that has ended
    _rules[gateway] = rule
    return rule


def _know_lists(context: SparkContext, rule: SessionRule) -> None:
    """Let the rule recognise DataFrames that are made of a list of Python's. Without that they count as unknown."""
    try:
        for pair in unchanging(context):
            rule.java.alsoKnow(*map(bytearray, pair))
    except (Py4JError, PySparkException, AttributeError, TypeError) as error:
        _log.debug("DataFrames made of lists are not recognised: %s", first_line(error))


def _also_iceberg(context: SparkContext, rule: SessionRule, rule_class: Any) -> None:
    """Prune Iceberg's scans too, if the session has Iceberg's runtime and this process has PyIceberg."""
    gateway: Any = context._gateway
    if find_spec("pyiceberg") is not None and _has(gateway.jvm.org.apache.iceberg.spark.ScanTaskSetManager):
        _also(rule.java.alsoAsk, rule_class, ICEBERG, "tables of Iceberg are read unpruned")
        _install(gateway, rule, rule_class, FIRST, rule.java.alsoFirst, "Iceberg plans from manifests")
        _know_lists(context, rule)  # of a MERGE, which prunes Iceberg's tables alone


def _also_delta(gateway: Any, rule: SessionRule, rule_class: Any) -> None:
    """Prune Delta's relations too, if the session has Delta's jar."""
    if _has(gateway.jvm.org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex):
        _also(rule.java.alsoAsk, rule_class, DELTA, "tables of Delta are read unpruned")
        if not IS_3:
            _install(gateway, rule, rule_class, FIRST_DELTA, rule.java.alsoFirst, "Delta plans from its log")
            _install(gateway, rule, rule_class, RANGED_DELTA, rule.java.alsoPlan, "files of Delta are read whole")
            _also(rule.java.alsoTargets, rule_class, TARGET_DELTA, "transactions of Delta read what they would without")


def _install(
    gateway: Any, rule: SessionRule, rule_class: Any, name: str, install: Callable[[Any], None], without: str
) -> None:
    """Make a part of the rule and install it; where that is impossible, log what is `without` it."""
    try:
        (constructor,) = compiled_beside(rule_class, name).getConstructors()
        arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
        arguments[0] = rule.java
        install(constructor.newInstance(arguments))
    except (Py4JError, PySparkException) as error:
        _log.warning("%s: %s", without, first_line(error))


def _has(name: Any) -> bool:
    """Return whether a JVM has a class of this name."""
    return isinstance(name, JavaClass)


def _also(install: Callable[[Any], None], rule_class: Any, name: str, without: str) -> None:
    """Make a function of Java's that a part of the rule calls; where that is impossible, log what is `without` it."""
    try:
        install(compiled_beside(rule_class, name).newInstance())
    except (Py4JError, PySparkException) as error:
        _log.warning("%s: %s", without, first_line(error))
