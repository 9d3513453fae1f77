"""Events of a web shop: look-ups, times, texts, rare values, functions, the newest ten, a join with a small side.

As generated, ten files share a span of time, and hold its events in no order, as consumers of a queue leave them.
Clustered, events are sorted by time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.logs.logs import UNIT, log_lines
from benchmarks.rates.questions import Keys, Layout, Question, Workload

ROWS, GROUPS, FILES = 2_000, 5, 60
BATCH = 10 * GROUPS * ROWS  # events that lie in no order
EPOCH, SECOND = 1_767_225_600_000_000, 1_000_000  # 2026-01-01 in microseconds
PER_USER, PER_SESSION, PER_ORDER = 20, 8, 5  # events
STATUS = {"viewed": 0.7, "basket": 0.2, "paid": 0.0899, "returned": 0.01, "disputed": 0.0001}
COUNTRIES = ("DE", "FR", "PL", "IT", "ES", "NL", "SE", "AT", "DK", "FI", "BE", "PT")
RARE_COUNTRIES = {"IS": 40_000, "MT": 100_000}  # with one event in so many
VOUCHER_EVERY = 50_000  # events


def events(rows: int) -> pa.Table:
    """Generate events, the same for the same number."""
    rng = np.random.default_rng(41)
    number = np.arange(rows)
    user = rng.integers(0, max(1, rows // PER_USER), rows) * 7_919
    session = number // (50 * PER_SESSION) * 50 + rng.integers(0, 50, rows)
    country = rng.choice(COUNTRIES, rows).astype(object)
    for name, every in RARE_COUNTRIES.items():
        country[number % every == every // 3] = name
    voucher = pa.array(np.where(number % VOUCHER_EVERY == 17, number, -1))
    table = pa.table(
        {
            "ts": pa.array(EPOCH + number * SECOND + rng.integers(0, SECOND, rows), pa.timestamp("us", "UTC")),
            "event_id": number,
            "user_id": user,
            "session_id": pa.array([f"{value:012x}" for value in (session * 2_654_435_761 % (1 << 47)).tolist()]),
            "order_id": pa.array(number * 104_729 % 1_299_709, mask=rng.integers(0, PER_ORDER, rows) > 0),
            "status": pa.array(rng.choice(list(STATUS), rows, p=list(STATUS.values()))),
            "country": pa.array(country.tolist(), pa.string()),
            "email": _emails(user),
            "amount": rng.pareto(2.5, rows) * 20,
            "voucher": pc.if_else(pc.less(voucher, 0), None, voucher),
            "message": log_lines(0, -(-rows // UNIT) * UNIT)["message"].slice(0, rows).combine_chunks(),
        }
    )
    order = np.lexsort((rng.random(rows), number // BATCH))
    return table.take(pa.array(order)).combine_chunks()


def _emails(user: np.ndarray) -> pa.Array:
    """The addresses of users, in either case as they typed them."""
    return pa.array([f"{'User' if number % 3 else 'user'}.{number}@Example.com" for number in user.tolist()])


def questions(data: pa.Table) -> tuple[Question, ...]:
    """The questions, with values of events in the middle of the table."""
    some = data.slice(len(data) // 2, 1_001).sort_by("user_id")
    one = some.slice(len(some) // 2, 1).to_pylist()[0]  # a user whom bounds do not rule out
    users, orders = data["user_id"].unique(), data["order_id"].drop_null()
    ten = ", ".join(map(str, users[:: max(1, len(users) // 10)].to_pylist()[:10]))
    start = one["ts"].replace(microsecond=0)
    request = one["message"].rsplit("request=")[-1][:16]
    newest = "ts DESC"
    return (
        Question("one user", f"user_id = {one['user_id']}", "bloom"),
        Question("a user that is not there", "user_id = 13", "bloom"),
        Question("ten users", f"user_id IN ({ten})", "bloom"),
        Question("one order", f"order_id = {orders[len(orders) // 2]}", "bloom"),
        Question("one session", f"session_id = '{one['session_id']}'", "bloom"),
        Question("one minute", _between(start, "00", "59"), "zone maps"),
        Question("one hour", f"date_trunc('HOUR', ts) = TIMESTAMP '{start:%Y-%m-%d %H}:00:00'", "zone maps"),
        Question("one day", f"to_date(ts) = DATE '{start:%Y-%m-%d}'", "zone maps"),
        Question("all but one day", f"NOT to_date(ts) = DATE '{start:%Y-%m-%d}'", "zone maps"),
        Question("a user since a day", f"user_id = {one['user_id']} AND ts >= '{start:%Y-%m-%d}'", "bloom, zone maps"),
        Question("a user or an order", f"user_id = {one['user_id']} OR order_id = {orders[7]}", "bloom"),
        Question("a rare status", "status = 'disputed'", "postings"),
        Question("a status seldom seen", "status = 'returned'", "postings"),
        Question("two rare countries", "country IN ('IS', 'MT')", "postings"),
        Question("a rare status, not of Germany", "status = 'disputed' AND NOT country = 'DE'", "postings"),
        Question("a part of a text", f"message LIKE '%{request[:10]}%'", "n-grams"),
        Question("a rare text", "message LIKE '%deadlock detected%'", "n-grams"),
        Question("a text and a status", "message LIKE '%segfault%' OR status = 'disputed'", "n-grams, postings"),
        Question("an address in lower case", f"lower(email) = 'user.{one['user_id']}@example.com'", "bloom"),
        Question("a voucher", "voucher IS NOT NULL", "zone maps"),
        Question("great amounts", "amount > 900", "zone maps"),
        Question("a range of great amounts", "amount BETWEEN 600 AND 610", "gaps"),
        Question("a range of amounts", f"amount BETWEEN {one['amount']} AND {one['amount'] + 0.01}"),
        Question("the newest ten", "TRUE", "zone maps", newest, 10),
        Question("the newest ten with a rare status", "status = 'disputed'", "postings", newest, 10),
        Question("the newest ten of a user", f"user_id = {one['user_id']}", "bloom", newest, 10),
        Question("the ten greatest amounts", "TRUE", "zone maps", "amount DESC", 10),
        Question("any ten", "TRUE", "zone maps", limit=10),
        Question("any thousand of some hours", f"ts >= '{start:%Y-%m-%d}'", "zone maps", limit=1_000),
        Question("any ten of a status", "status = 'returned'", "", limit=10),
        Question("a join with three users", "TRUE", "bloom", keys=Keys("user_id", users[3:6])),
        Question(
            "a day joined with orders",
            f"to_date(ts) = DATE '{start:%Y-%m-%d}'",
            "bloom, zone maps",
            keys=Keys("order_id", orders[:: max(1, len(orders) // 20)].combine_chunks()),
        ),
    )


def _between(start: object, first: str, last: str) -> str:
    return f"ts BETWEEN '{start:%Y-%m-%d %H:%M}:{first}' AND '{start:%Y-%m-%d %H:%M}:{last}.999999'"


EVENTS = Workload(
    "events",
    FILES,
    GROUPS,
    ROWS,
    events,
    questions,
    {
        "bloom": ["user_id", "order_id", "session_id", "lower(email)"],
        "postings": ["status", "country"],
        "ngram": ["message"],
    },
    ("amount",),
    (Layout("generated", (), ()), Layout("clustered", ("ts",), ("ts",))),
)
