"""Sums and averages of plain queries: Spark's answers and types, from kept sums and the row groups in doubt.

Classes C48 (what has no sum is read), C49 and C59 (every row counts once), and overflow, which is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

import secateur as sec
from tests.support.enabled_session import SWITCH, enabled, pruning
from tests.support.profiles import examples, one_in

ROWS, FILES, GROUP = 240, 2, 20
BLOCKS = ROWS // GROUP
DECIMALS = {  # by name, whether Spark adds unscaled values, and averages as doubles
    "small": (5, 2),  # both
    "mean": (11, 3),  # averages only
    "plain": (18, 4),  # neither
    "wide": (27, 6),
    "widest": (34, 3),  # sums of sums have no room
}
INTEGERS = {"i": pa.int64(), "int": pa.int32(), "short": pa.int16(), "byte": pa.int8()}
NAMES = [*INTEGERS, *DECIMALS]


def values(i: int, digits: int) -> int | None:
    """NULLs now and then, and in whole blocks; both signs; of up to so many digits."""
    return None if i % 7 == 3 or 40 <= i < 60 else (i * 7919 % 10**digits) * (-1) ** (i % 3 == 0)


def numbered(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    integers = {name: pa.array([values(i, 2) for i in ids], type_) for name, type_ in INTEGERS.items()}
    decimals = {
        name: pa.array(
            [None if (v := values(i, p - 1)) is None else Decimal(v).scaleb(-s) for i in ids], pa.decimal128(p, s)
        )
        for name, (p, s) in DECIMALS.items()
    }
    others = {
        "id": pa.array(ids, pa.int64()),
        "g": pa.array([None if i < 40 else i // 80 for i in ids], pa.int32()),
        "huge": pa.array([2**62 + i for i in ids], pa.int64()),
        "f": pa.array([i / 3 for i in ids], pa.float64()),
        "unkept": pa.array([values(i, 2) for i in ids], pa.int64()),
    }
    return pa.table({**others, **integers, **decimals})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[str]:
    """An indexed table with two views: `kept`, which `enable` prunes, and `framed`, made by `dataframe`."""
    root = tmp_path_factory.mktemp("sums") / "kept"
    root.mkdir()
    for i in range(FILES):
        piece = numbered(i * ROWS // FILES, (i + 1) * ROWS // FILES)
        pq.write_table(piece, root / f"{i}.parquet", row_group_size=GROUP)
    table = sec.open_table(str(root))
    sec.build_index(table, sort_key=["id"], segment_blocks=4, sums=[*NAMES, "huge"])
    spark.read.parquet(str(root)).createOrReplaceTempView("kept")
    sec.dataframe(spark, table, via="transparent").createOrReplaceTempView("framed")
    with enabled(spark):
        yield str(root)


def both(names: list[str]) -> str:
    return ", ".join(f"sum(`{name}`) AS s_{name}, avg(`{name}`) AS a_{name}" for name in names)


ROOMY = [name for name in NAMES if name != "widest"]
QUERIES: list[tuple[str, int | None]] = [  # with the row groups that are read
    (f"SELECT {both(ROOMY)} FROM {{}}", 0),
    (f"SELECT {both(ROOMY)}, count(*), min(i), max(wide) FROM {{}} WHERE id >= 30", 1),
    ("SELECT sum(i) + 1 AS s, avg(small) / 2 AS h FROM {} WHERE id BETWEEN 30 AND 199", 1),
    ("SELECT sum(i), avg(plain) FROM {} WHERE id BETWEEN 40 AND 59", 0),  # of NULLs only
    ("SELECT sum(i), avg(i), avg(small), sum(small) FROM {} WHERE id BETWEEN 45 AND 65", 2),
    ("SELECT sum(i), avg(i), avg(mean), avg(plain) FROM {} WHERE id < 0", 0),
    ("SELECT sum(i) FROM (SELECT i, id AS n FROM {} WHERE short IS NOT NULL OR id > 0) WHERE n >= 20", 0),
    (f"SELECT g, {both(ROOMY)}, count(i), min(id) FROM {{}} GROUP BY g", 0),
    (f"SELECT g, {both(ROOMY)} FROM {{}} WHERE id BETWEEN 35 AND 130 GROUP BY g", 2),
    ("SELECT g, sum(i) AS s FROM {} WHERE id >= 50 GROUP BY g HAVING avg(small) < 100 ORDER BY s", 1),
    ("SELECT count(DISTINCT g), sum(i), avg(wide) FROM {} WHERE id >= 70", 1),
    ("SELECT try_sum(i), try_avg(mean), mean(int) FROM {} WHERE id >= 30", 1),
    ("SELECT id FROM {0} WHERE i > (SELECT avg(i) FROM {0} WHERE id < 100)", None),
    # left to Spark
    ("SELECT sum(widest), avg(widest) FROM {} WHERE id >= 30", 11),
    ("SELECT sum(unkept) FROM {}", None),
    ("SELECT round(sum(f), 3), sum(i) FROM {}", BLOCKS),
    ("SELECT sum(DISTINCT i), sum(int) FROM {}", BLOCKS),
    ("SELECT sum(i) FILTER (WHERE id > 5) FROM {}", BLOCKS),
    ("SELECT sum(i + 1) FROM {}", BLOCKS),
    ("SELECT avg(huge) FROM {}", BLOCKS),
]


def told(spark: SparkSession, query: str) -> tuple[list[str], list[str]]:
    """The types of the result, and its rows; or the class of the error."""
    frame = spark.sql(query)
    types = [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields]
    try:
        return types, sorted(repr(tuple(row)) for row in frame.collect())
    except Exception as error:
        return types, re.findall(r"[A-Z_]+OVERFLOW", str(error))[:1] or [str(error)]


def require_same(spark: SparkSession, query: str, view: str) -> None:
    """Types and rows are those of the query without pruning."""
    spark.conf.set(SWITCH, "false")
    wanted = told(spark, query.format("kept"))
    spark.conf.unset(SWITCH)
    assert told(spark, query.format(view)) == wanted, (query, view)


@pytest.mark.parametrize(("view", "ansi"), [("kept", "true"), ("framed", "false")])
def test_sums_and_averages_are_those_of_spark(spark: SparkSession, root: str, view: str, ansi: str) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for query, read in one_in(3, QUERIES):
            require_same(spark, query, view)
            kept_now = pruning(spark.sql(query.format(view)))
            assert read is None or kept_now == [f"{read} of {BLOCKS}"], query
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


SPAN = st.tuples(st.integers(-5, ROWS), st.integers(0, ROWS))
CALLS = st.lists(st.sampled_from([f"{f}({name})" for f in ("sum", "avg") for name in NAMES]), min_size=1, max_size=4)


@examples(12)
@given(SPAN, CALLS, st.booleans())
def test_any_sums_of_any_rows(
    spark: SparkSession, root: str, span: tuple[int, int], calls: list[str], grouped: bool
) -> None:
    by, ids = ("GROUP BY g", "g, ") if grouped else ("", "")
    columns = ", ".join(f"{call} AS c{i}" for i, call in enumerate(calls))
    condition = f"id BETWEEN {span[0]} AND {sum(span)}"
    require_same(spark, f"SELECT {ids}{columns}, count(*) AS n FROM {{}} WHERE {condition} {by}", "kept")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_an_overflow_is_sparks(spark: SparkSession, root: str, ansi: str) -> None:
    """It wraps around or is an error, as without secateur: kept sums are used where neither can be."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for query in ("SELECT sum(huge) FROM {}", "SELECT g, sum(huge) FROM {} GROUP BY g"):
            require_same(spark, query, "kept")
            assert pruning(spark.sql(query.format("kept"))) == [f"{BLOCKS} of {BLOCKS}"]
        assert pruning(spark.sql("SELECT sum(huge) FROM kept WHERE id = 25")) == [f"1 of {BLOCKS}"]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_aggregate_gives_what_spark_gives(spark: SparkSession, root: str) -> None:
    """Types, rounding and NULLs, of all rows and of groups."""
    table = sec.open_table(root)
    calls = ", ".join(f"sum({name}), avg({name})" for name in NAMES)
    for where in ("true", "id >= 33", "id BETWEEN 45 AND 47", "id < 0", "id % 11 = 4"):
        for group in ("", "g"):
            answer = sec.aggregate(table, calls, where, group_by=[group] if group else (), strict=True)
            spark.conf.set(SWITCH, "false")
            columns = f"{group}, {calls}" if group else calls
            by = f"GROUP BY {group}" if group else ""
            wanted = spark.sql(f"SELECT {columns} FROM kept WHERE {where} {by}")
            rows: list[tuple[Any, ...]] = [tuple(row) for row in wanted.collect()]
            spark.conf.unset(SWITCH)
            ours = [tuple(row.values()) for row in answer.to_pylist()]
            assert sorted(map(repr, ours)) == sorted(map(repr, rows)), (where, group)
            types = [field.dataType.simpleString() for field in wanted.schema.fields]
            assert [from_arrow_type(type_).simpleString() for type_ in answer.schema.types] == types
