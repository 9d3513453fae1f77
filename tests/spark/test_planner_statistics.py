"""What Spark's optimizer is told of a scan: rows, NULLs, different values, bounds; and that answers stay the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from tests.support.profiles import some

DAYS, BLOCKS, ROWS = 4, 5, 100  # directories, row groups of each, rows of these
CBO = ("spark.sql.cbo.enabled", "spark.sql.cbo.joinReorder.enabled", "spark.sql.cbo.planStats.enabled")


@pytest.fixture(scope="module")
def data() -> pa.Table:
    n = np.arange(DAYS * BLOCKS * ROWS)
    block = n // ROWS
    return pa.table(
        {
            "id": n,
            "one": pa.array(block % 7, pa.int32(), mask=block % 10 == 9),  # one value per row group, or none
            "price": pa.array(block % 3, pa.float64()).cast(pa.decimal128(9, 2)),
            "at": pa.array(block * 3_600_000_000, pa.timestamp("us", "UTC")),
            "local": pa.array(block * 3_600_000_000, pa.timestamp("us")),
            "kind": pa.array([f"k{i % 4}" for i in block.tolist()]),
            "many": pa.array(n * 7919 % 1999, mask=n % 13 == 0),
            "ratio": pa.array(np.where(block % 2 == 0, np.nan, 1.5)),
            "parts": pa.array([[i] for i in n.tolist()]),
        }
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, data: pa.Table) -> Path:
    root = tmp_path_factory.mktemp("told") / "lake"
    for day in range(DAYS):
        directory = root / f"day=2026-01-0{day + 1}"
        directory.mkdir(parents=True)
        part = data.slice(day * BLOCKS * ROWS, BLOCKS * ROWS)
        pq.write_table(part, directory / "a.parquet", row_group_size=ROWS)
    sec.build_index(sec.open_table(str(root)), sort_key=["id"])
    return root


@pytest.fixture
def cbo(spark: SparkSession) -> Iterator[None]:
    for name in CBO:
        spark.conf.set(name, "true")
    yield
    for name in CBO:
        spark.conf.unset(name)


@pytest.fixture(params=["dataframe", "enable"])
def frame(request: pytest.FixtureRequest, spark: SparkSession, lake: Path) -> Iterator[DataFrame]:
    if request.param == "dataframe":
        yield sec.dataframe(spark, sec.open_table(str(lake)), via="transparent")
        return
    sec.enable(spark)
    yield spark.read.parquet(str(lake))
    sec.disable(spark)


def scanned(frame: DataFrame) -> tuple[Any, dict[str, Any]]:
    """The statistics of the one scan of a plan: its own, and those of its columns by name."""
    leaf = frame._jdf.queryExecution().optimizedPlan().collectLeaves().head()
    whole, columns = leaf.stats(), leaf.output()
    named = {columns.apply(i).name(): whole.attributeStats().get(columns.apply(i)) for i in range(columns.size())}
    return whole, {name: column.get() for name, column in named.items() if column.isDefined()}


def known(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None


def told(column: Any) -> tuple[str | None, ...]:
    return tuple(map(known, (column.distinctCount(), column.nullCount(), column.min(), column.max())))


def test_statistics_are_those_of_the_rows_that_are_left(frame: DataFrame, data: pa.Table, cbo: None) -> None:
    for where, left in {"id >= 0": data, "id BETWEEN 600 AND 1399": data.slice(600, 800)}.items():
        whole, columns = scanned(frame.where(where))
        assert known(whole.rowCount()) == str(left.num_rows)
        for name in ("one", "price", "at", "kind"):
            values = left[name].combine_chunks()
            bounds: tuple[str | None, ...] = (None, None)
            if name != "kind":
                internal = values.cast(pa.int64()) if name == "at" else values
                bounds = tuple(str(end.as_py()) for end in pc.min_max(internal).values())
            assert told(columns[name]) == (str(len(values.drop_null().unique())), str(values.null_count), *bounds), name
        assert told(columns["day"])[0] == str(len({i // (BLOCKS * ROWS) for i in left["id"].to_pylist()}))
        assert told(columns["many"]) == (None, str(left["many"].null_count), None, None)
        assert told(columns["ratio"]) == (None, "0", None, None)
        assert not {"local", "parts"} & set(columns)


def test_nothing_is_asked_where_the_session_does_not_use_it(frame: DataFrame) -> None:
    assert scanned(frame.where("id < 300"))[1] == {}


def test_a_filter_with_few_values_is_estimated(frame: DataFrame, cbo: None) -> None:
    """By bounds alone Spark expects every row; a value in seven is a seventh of them."""
    estimate = frame.where("id >= 0 AND kind = 'k1'")._jdf.queryExecution().optimizedPlan().stats()
    assert int(known(estimate.rowCount()) or 0) == DAYS * BLOCKS * ROWS // 4


COLUMNS = ("id", "one", "price", "at", "local", "kind", "many", "ratio", "day")
CONDITIONS = (
    *("one = 3", "one > 6", "one IN (1, 99)", "one IS NULL", "one <=> NULL", "price < 1", "price >= 2", "kind = 'no'"),
    *("kind IN ('k1', 'k2')", "at > timestamp'1970-01-01 05:00:00'", "local IN (timestamp_ntz'1970-01-01 05:00:00')"),
    *("ratio > 1", "ratio = double('nan')", "many = 5", "id < 450", "day = '2026-01-02'", "one > price", "one < 0"),
)


def test_answers_are_those_without_statistics(spark: SparkSession, lake: Path, frame: DataFrame, cbo: None) -> None:
    """Filters, joins and groups, with estimates of no rows and of all rows among them."""
    draw = random.Random(3)
    plain = spark.read.option("recursiveFileLookup", "false").parquet(str(lake))
    for _ in range(some(12)):
        where = f" {draw.choice(['AND', 'OR'])} ".join(draw.sample(CONDITIONS, 2))
        key = draw.choice(("one", "kind", "day", "price"))

        def asked(rows: DataFrame, where: str = where, key: str = key) -> list[str]:
            small = rows.where("id % 100 = 7").select(key, rows["id"].alias("other"))
            joined = rows.where(where).join(small, key, "inner").groupBy(key).count()
            return sorted(map(repr, [*joined.collect(), *rows.where(where).select(*COLUMNS).collect()]))

        with_statistics = asked(frame)
        spark.conf.set("secateur.enabled", "false")
        for name in CBO:
            spark.conf.unset(name)
        try:
            assert asked(plain) == with_statistics, (where, key)
        finally:
            spark.conf.unset("secateur.enabled")
            for name in CBO:
                spark.conf.set(name, "true")
