"""A MERGE beside another commit: Iceberg refuses the same ones with ``sec.enable`` as without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.support.enabled_session import SWITCH
from tests.support.merged_tables import (
    SAME_ID,
    TABLE,
    TWIN,
    UPSERT,
    merged_tables,
    narrowed,
    require_twins,
    reset,
    row_groups_left,
    source,
)
from tests.support.older_spark import SCANS_TELL_SNAPSHOTS
from tests.support.profiles import one_in

KINDS = ["org.apache.iceberg.exceptions.ValidationException"]
if not SCANS_TELL_SNAPSHOTS:
    KINDS.append("java.lang.IllegalStateException")  # Iceberg 1.11 looks for files to write anew in no later snapshot


@pytest.fixture(scope="module", params=["merge-on-read", "copy-on-write"])
def mode(iceberg: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    with merged_tables(iceberg, request.param):
        yield request.param


def conflict(spark: SparkSession, statement: str, between: str, name: str, *, pruned: bool) -> str:
    """Plan a MERGE, commit `between`, then run the plan. Return why Iceberg refuses it, without paths; or nothing."""
    jvm: Any = spark._jvm
    state: Any = spark._jsparkSession.sessionState()
    parsed = state.sqlParser().parsePlan(statement.format(name))
    execution = jvm.org.apache.spark.sql.execution
    spark.conf.set(SWITCH, str(pruned).lower())
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # which makes plans while it runs
    try:
        plan = state.executePlan(parsed, execution.CommandExecutionMode.SKIP()).executedPlan()
        execution.SparkPlanInfo.fromSparkPlan(plan)  # makes the metrics, which a task cannot
        spark.conf.set(SWITCH, "false")
        spark.sql(between.format(name))
        spark.conf.set(SWITCH, str(pruned).lower())
        plan.executeCollect()
    except Py4JJavaError as error:
        cause: Any = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        kind, _, message = cause.toString().partition(": ")
        assert kind in KINDS, str(error)
        return str(message).partition(": [")[0].partition(" Row-level operation scan snapshot")[0]
    finally:
        spark.conf.unset(SWITCH)
        spark.conf.unset("spark.sql.adaptive.enabled")
    return ""


NO_KEY, OF_KEY = "INSERT INTO {} VALUES (700, 1, 'of no key', 0)", "INSERT INTO {} VALUES (40, 1, 'of a key', 0)"
OTHER_PART = "INSERT INTO {} VALUES (40, 1, 'of a key', 1000)"
GONE, OTHERS_GONE = "DELETE FROM {} WHERE kind = 0 AND id = 700", "DELETE FROM {} WHERE kind = 1000 AND id = 1700"
BETWEEN = [  # what is committed, and by which isolation levels the MERGE is refused after it
    ("", NO_KEY, ["serializable"]),
    ("", OF_KEY, ["serializable"]),
    (" AND t.kind = 0", NO_KEY, ["serializable"]),
    (" AND t.kind = 0", OTHER_PART, []),
    (" AND t.kind = 0", GONE, ["serializable", "snapshot"]),
    (" AND t.kind = 0", OTHERS_GONE, []),
]


@pytest.mark.parametrize(
    ("condition", "between", "refused", "isolation"),
    one_in(5, [(*case, isolation) for case in BETWEEN for isolation in ("serializable", "snapshot")]),
)
def test_a_commit_between_planning_and_writing_is_refused_as_without(
    iceberg: SparkSession, mode: str, condition: str, between: str, refused: list[str], isolation: str
) -> None:
    """Keys narrow what is read, not what Iceberg takes for a conflict: also rows that no key matches."""
    source(iceberg, [(5, "five"), (40, "forty"), (3000, "new")])
    reset(iceberg)
    for name in (TABLE, TWIN):
        iceberg.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.merge.isolation-level'='{isolation}')")
    narrowed(iceberg).clear()
    statement = f"{SAME_ID}{condition} {UPSERT}"
    with_keys = conflict(iceberg, statement, between, TABLE, pruned=True)
    left = row_groups_left(iceberg)
    assert left is not None and left <= 3
    assert with_keys == conflict(iceberg, statement, between, TWIN, pruned=False)
    if mode == "copy-on-write" and between == GONE:  # from a file that the MERGE does not write anew
        refused = ["serializable"]
    if mode == "copy-on-write" and not SCANS_TELL_SNAPSHOTS:
        refused = ["serializable", "snapshot"]
    assert bool(with_keys) == (isolation in refused)
    require_twins(iceberg, statement)
    forty = iceberg.table(TABLE).where("id = 40 AND name = 'forty'").count()
    assert (forty > 0) != bool(with_keys)
