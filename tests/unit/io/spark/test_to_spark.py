"""Plans go to sessions in which their predicates mean the same."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import secateur as sec
from secateur.errors import StalePlan
from secateur.io.spark.to_spark import to_spark
from tests.support.tables import WriteTable

DAYS = pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)])
TIMES = pa.StructArray.from_arrays([DAYS.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))], ["t"])


def session(zone: str) -> Any:
    settings = {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": "true"}
    return SimpleNamespace(conf=SimpleNamespace(get=settings.__getitem__))


@pytest.mark.parametrize(
    "predicate",
    [
        "d >= TIMESTAMP '2024-01-02 00:00:00Z'",
        "nested.t < TIMESTAMP '2024-01-02 00:00:00'",
        "from_unixtime(n) >= '2024-01-01 12:00:00'",
        "hour(nested.t) = 0",
    ],
)
def test_a_plan_of_another_time_zone_is_refused(write_table: WriteTable, predicate: str) -> None:
    """Its blocks were pruned by other instants than those that the session would compare."""
    table = sec.open_table(write_table({"a.parquet": {"d": DAYS, "nested": TIMES, "n": [1704110400, 1704067200]}}))
    plan = sec.prune(table, predicate, session_time_zone="Asia/Tokyo")
    with pytest.raises(StalePlan, match="session_time_zone='UTC'"):
        to_spark(plan, session("UTC"), None, "blocks")


def test_a_predicate_without_a_zone_goes_to_any_session(write_table: WriteTable) -> None:
    table = sec.open_table(write_table({"a.parquet": {"d": DAYS}}))
    plan = sec.prune(table, "d >= DATE '2024-01-02' AND year(d) = 2024", session_time_zone="Asia/Tokyo")
    assert plan.means_the_same(ansi=True, session_time_zone="UTC")
