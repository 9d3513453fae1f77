"""Log lines of a web shop: time, level, logger, and messages made of templates, ids, addresses, paths, rare errors.

Line i is always the same; lines are made in units of :data:`UNIT`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

UNIT = 1_000  # lines that are made together
EPOCH = 1_600_000_000_000_000  # microseconds
LEVELS = {"INFO": 0.8, "DEBUG": 0.12, "WARN": 0.06, "ERROR": 0.02}  # with the share of each
LOGGERS = tuple(
    f"com.example.{room}.{name}"
    for room in ("web", "orders", "payments", "search", "mail")
    for name in ("RequestFilter", "SessionStore", "RetryPolicy", "ConnectionPool", "Controller")
)
METHODS = ("GET", "GET", "GET", "POST", "PUT", "DELETE")
ROOMS = ("products", "orders", "customers", "baskets", "invoices", "static/js", "static/css", "api/v2/search")
WORDS = ("accepted", "rejected", "completed", "delayed", "scheduled", "forwarded", "cached", "expired")
RARE = (  # of one unit of lines in 200 each
    "deadlock detected",
    "checksum mismatch",
    "OutOfMemoryError",
    "certificate expired",
    "replica lagging",
    "segfault",
    "quorum lost",
    "disk quota exceeded",
    "ConcurrentModificationException",
    "poison message",
)

Draw = Callable[[int], pa.Array]


def log_lines(start: int, stop: int) -> pa.Table:
    """The lines [start, stop) with the columns `ts`, `level`, `logger`, `message`; `start` is a multiple of UNIT."""
    assert start % UNIT == 0
    units = [_unit(first) for first in range(start, stop, UNIT)]
    return pa.concat_tables(units).slice(0, stop - start).combine_chunks()


def _unit(first: int) -> pa.Table:
    """The lines of one unit."""
    rng = np.random.default_rng((17, first))
    ts = EPOCH + np.sort(rng.integers(first, first + UNIT, UNIT)) * 20_000
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "level": pa.array(rng.choice(list(LEVELS), UNIT, p=list(LEVELS.values()))),
            "logger": pa.array(rng.choice(LOGGERS, UNIT)),
            "message": _messages(rng),
        }
    )


def _messages(rng: np.random.Generator) -> pa.Array:
    def pick(choices: Sequence[str]) -> pa.Array:
        return pa.array(rng.choice(choices, UNIT))

    def number(least: int, most: int) -> pa.Array:
        return pa.array(rng.integers(least, most, UNIT)).cast(pa.string())

    request = pa.array([f"{value:016x}" for value in rng.integers(0, 2**63, UNIT).tolist()])
    address = _joined(number(1, 224), ".", number(0, 256), ".", number(0, 256), ".", number(1, 255))
    path = _joined("/", pick(ROOMS), "/", number(1, 10**6), "?page=", number(1, 40))
    kinds = [
        _joined(pick(METHODS), " ", path, " from ", address, " status=", pick(("200", "200", "304", "404", "500"))),
        _joined("order ", number(10**7, 10**8), " of customer ", number(1, 10**6), " ", pick(WORDS)),
        _joined("session opened for customer ", number(1, 10**6), " from ", address),
        _joined("connection pool: ", number(1, 64), " of 64 in use, waited ", number(0, 900), " ms"),
        _joined("search for ", pick(WORDS), " in ", pick(ROOMS), " took ", number(1, 5000), " ms"),
    ]
    which = rng.choice(len(kinds), UNIT, p=(0.6, 0.15, 0.1, 0.1, 0.05))
    text = pc.choose(pa.array(which), *kinds)
    whole = _joined(text, " request=", request).to_pylist()
    for word in RARE:
        if rng.random() < 0.005:
            whole[int(rng.integers(UNIT))] += f": {word}"
    return pa.array(whole)


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
