"""The demo's predicates, one of each kind."""

from __future__ import annotations

from dataclasses import dataclass

ORDERS_PER_SCALE = 1_500_000


@dataclass(frozen=True)
class DemoQuery:
    """A predicate and its kind."""

    name: str
    sql: str


DATE_RANGES = ("one week",)
LOOK_UP = "one order"


def questions(scale_factor: float) -> list[DemoQuery]:
    """Return the predicates for a scale factor; their keys exist in the table, except where absence is the point."""
    orders = int(ORDERS_PER_SCALE * scale_factor)
    middle = order_key(orders * 2 // 5)
    year = "l_shipdate BETWEEN DATE '1994-01-01' AND DATE '1994-12-31'"
    return [
        DemoQuery("one week", "l_shipdate >= DATE '1995-03-06' AND l_shipdate < DATE '1995-03-13'"),
        DemoQuery(LOOK_UP, f"l_orderkey = {middle}"),
        DemoQuery("conjunction", f"{year} AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"),
        DemoQuery("disjunction", f"l_orderkey = {middle} OR l_shipdate >= DATE '1998-12-01'"),
        DemoQuery("prefix", "l_comment LIKE 'zzle?%'"),
        DemoQuery("everything", "l_quantity >= 1"),
    ]


def order_key(n: int) -> int:
    """Return the key of the n-th order: TPC-H uses the first eight of every 32 numbers."""
    return n // 8 * 32 + n % 8
