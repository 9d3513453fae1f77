"""When the limit and the aggregates of a query are planned here, beside its filters."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.io.scan.planned_scan import Settings
from secateur.io.spark.planner.catalyst import PushedFilter, ScanQuestion
from secateur.io.spark.planner.usable import usable
from secateur.pruning.aggregates.answers import AggregateCall
from secateur.pruning.order import OrderItem
from secateur.pruning.predicate.nodes import Column, Opaque
from secateur.pruning.predicate.sql.parse import parse

SCHEMA = pa.schema({"id": pa.int64(), "s": pa.string(), "ts": pa.timestamp("us", "UTC")})
COUNT, LEAST = AggregateCall("count", None, ""), AggregateCall("min", Column(("id",)), "")


def pushed(text: str, *zones: str) -> PushedFilter:
    return PushedFilter(Opaque("?") if text == "?" else parse(text), frozenset(zones))


@pytest.mark.parametrize(
    ("filters", "exact"),
    [
        ([], True),
        ([pushed("id > 5"), pushed("s LIKE 'a%'"), pushed("id IN (1, NULL) OR s IS NULL")], True),
        ([pushed("CAST(ts AS DATE) = DATE '2026-01-01'", "UTC")], True),
        ([pushed("CAST(ts AS DATE) = DATE '2026-01-01'", "Asia/Tokyo"), pushed("hour(ts) = 3", "UTC")], False),
        ([pushed("id > 5"), pushed("?")], False),  # only Spark can evaluate it
        ([pushed("id > 5"), pushed("other = 1")], False),  # a column that the index does not have
        ([pushed("id + 1 > 5")], False),  # may overflow
        ([pushed("10 / id > 5")], False),
    ],
)
def test_a_limit_and_aggregates_need_every_filter(filters: list[PushedFilter], exact: bool) -> None:
    order = (OrderItem(Column(("ts",)), descending=True, nulls_first=False),)
    settings = usable(ScanQuestion(tuple(filters), 10, order), SCHEMA, Settings()).settings
    assert (settings.limit, settings.order_by) == ((10, order) if exact else (None, ()))
    by = (Column(("s",)),)
    asked = usable(ScanQuestion(tuple(filters), aggregates=(COUNT, LEAST), groups=by), SCHEMA, Settings())
    assert (asked.aggregates, asked.groups) == (((COUNT, LEAST), by) if exact else ((), ()))


def test_columns_that_mean_something_else_here() -> None:
    other = Column(("other",))
    for order in (None, (OrderItem(other),)):
        assert usable(ScanQuestion((), 10, order), SCHEMA, Settings()).settings.limit is None
    for calls in (None, (COUNT, AggregateCall("max", other, ""))):
        assert usable(ScanQuestion((), aggregates=calls), SCHEMA, Settings()).aggregates == ()
    for groups in (None, (Column(("id",)), other)):
        asked = usable(ScanQuestion((), aggregates=(COUNT,), groups=groups), SCHEMA, Settings())
        assert (asked.aggregates, asked.groups) == ((), ())
