"""Predicates over functions, evaluated over zone maps in memory, against one comparison of one column's bounds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.kernels.arrays import ArrayStatistics, statistics_of
from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import once, race
from secateur.pruning.evaluate import evaluate
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

UNITS = 1_000_000
ZONE = "Europe/Paris"
_INSTANT = pa.timestamp("us", "UTC")
_YEARS = 50 * 365 * 86_400_000_000  # microseconds, from 1971 on
COLUMNS = {  # by name: the type, the greatest key, and how wide units are
    "i": (pa.int32(), 2**30, 2**20),
    "j": (pa.int32(), 2**30, 2**20),
    "price": (pa.decimal128(12, 2), 10**9, 10**6),
    "rate": (pa.decimal128(4, 2), 100, 10),
    "x": (pa.float64(), 2**60, 2**50),
    "ts": (_INSTANT, _YEARS, 86_400_000_000),
}
PULLED_BACK = ["i + 5 = 10000000", "year(ts) = 2010", "date_trunc('MONTH', ts) = TIMESTAMP '2010-03-01 00:00:00'"]
BY_INTERVALS = [
    "i < j",
    "i + j > 1000000",
    "abs(i) < 1000000",
    "x * 2 - 1 > 1e10",
    "coalesce(i, 0) = 5",
    "CASE WHEN i > 1000000 THEN j ELSE 0 END = 7",
    "month(ts) = 3",
    "hour(ts) BETWEEN 9 AND 17",
    "CAST(x AS INT) = i",
    "price * rate > 1000",
    "price * (1 - rate) > CAST(1000 AS DECIMAL(20, 2))",
]


def expressions_1m(setting: Setting) -> Result:
    """Monotone functions of one column, which cost as much as the column, and arithmetic on intervals."""
    n = setting.scaled(UNITS, least=100)
    statistics, schema = _random_columns(n)
    ratios = [_expression(sql, statistics, schema, setting) for sql in (*PULLED_BACK, *BY_INTERVALS)]
    binding = [_binding(sql, schema) for sql in PULLED_BACK]
    return Result({"units": n}, (*ratios, *binding))


def _random_columns(n: int) -> tuple[ArrayStatistics, pa.Schema]:
    rng = np.random.default_rng(7)
    bounds = {}
    for name, (type_, greatest, width) in COLUMNS.items():
        lower = rng.integers(0, greatest, n)
        bounds[Field((name,), type_)] = tuple(Keys(Kind.WORD, (v,)) for v in (lower, lower + rng.integers(0, width, n)))
    return statistics_of(bounds), pa.schema([(name, type_) for name, (type_, _, _) in COLUMNS.items()])  # type: ignore[arg-type]


def _expression(sql: str, statistics: ArrayStatistics, schema: pa.Schema, setting: Setting) -> Ratio:
    predicate = rewrite(bind(parse(sql), schema, session_time_zone=ZONE))
    zones = statistics.columns[Field(("i",), pa.int32())]
    low, high = zones.lower.words[0], zones.upper.words[0]
    floor = lambda: (low <= 10_000_000) & (high >= 10_000_000)  # noqa: E731
    timing, floor_timing = race([lambda: evaluate(predicate, statistics), floor], setting.repetitions)
    return timed(sql, timing, "one comparison of a column's bounds", floor_timing)


def _binding(sql: str, schema: pa.Schema) -> Ratio:
    tree = parse(sql)
    bind(tree, schema, session_time_zone=ZONE)  # the zone's table of clock changes is made once in a process
    timing, _ = once(lambda: bind(tree, schema, session_time_zone=ZONE))
    floor, _ = once(lambda: parse(sql))
    return timed(f"bind() of {sql}", timing, "parse() of the same", floor)
