"""The first rows of an order by every read path, with Spark's own ORDER BY and LIMIT as the oracle."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import secateur as sec
from secateur.errors import UnknownColumn, UnsupportedPredicate
from secateur.io.scan.surviving_blocks import surviving_bytes
from secateur.io.spark import top_n
from secateur.pruning.stages import first_rows
from secateur.scan import Scan
from tests.support.profiles import one_in
from tests.support.tables import WriteTable, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = [
    "f",
    "f DESC",
    "f DESC NULLS FIRST, id",
    "s DESC, id DESC",
    "s NULLS LAST, f",
    "n.a DESC, id",
    "d, ts DESC, id",
]
WHERES = ["TRUE", "id % 3 = 0", "f > 0", "s LIKE '%1%' OR f IS NULL"]
N = 120


@pytest.fixture
def lake(write_table: WriteTable) -> Path:
    """Text longer than bounds, NaN, both zeros, NULL, a struct, a file without statistics, and few distinct days."""
    floats = [None, math.nan, 0.0, -0.0, 1.5, -math.inf, math.inf, -2.0]
    ids = list(range(N))
    table = pa.table(
        {
            "id": ids,
            "f": pa.array([floats[i * 7 % 8] for i in ids], pa.float64()),
            "s": [None if i % 11 == 0 else "x" * 70 + str(i * 37 % 50) for i in ids],
            "n": [{"a": None if i % 13 == 0 else i * 29 % 31} for i in ids],
            "d": pa.array([i // 30 for i in ids], pa.int32()).cast(pa.date32()),
            "ts": pa.array([i * 1_000_003 % 977 for i in ids], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "tags": [[i % 3] for i in ids],
        }
    )
    root = write_table({"0.parquet": table.slice(0, 50), "1.parquet": table.slice(50, 40)}, row_group_size=8)
    write_file(root / "2.parquet", table.slice(90), row_group_size=8, write_statistics=False)
    return root


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows with NaN and zero as values that are equal to themselves."""
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    return repr(value + 0.0) if isinstance(value, float) else repr(value)


def check(spark: SparkSession, lake: Path, plan: Scan, where: str, order: str, limit: int, *paths: str) -> None:
    """The columns of the order are Spark's, in order, and all rows are rows of the table."""
    frame = spark.read.parquet(str(lake))
    frame.createOrReplaceTempView("lake")
    keys = [text.split()[0] for text in order.split(",")]
    selected = ", ".join(keys)
    wanted = spark.sql(f"SELECT {selected} FROM lake WHERE {where} ORDER BY {order} LIMIT {limit}").toArrow()
    every = Counter(rows(frame.where(where).toArrow()))
    names = [key.split(".")[0] for key in keys]
    for path in paths:
        read = plan.to_spark(spark, via=path).toArrow() if path != "arrow" else plan.to_arrow()
        got = [read[key] if "." not in key else read[key[0]].combine_chunks().field(key[2:]) for key in keys]
        assert rows(pa.table(got, names=keys)) == rows(wanted.rename_columns(keys)), (where, order, path)
        assert Counter(rows(read)) <= every, (where, order, path)
        assert plan.to_spark(spark, names[:1], via=path if path != "arrow" else "auto").columns == names[:1]


IN_ORDER = dict.fromkeys(("id", "f", "s", "n.a", "d", "ts"), "ordered")


@pytest.mark.parametrize("indexed", ["by a sort key", "in order", ""])
def test_every_read_path_gives_the_first_rows_of_spark(
    spark: SparkSession, lake: Path, indexed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_rows, "FEW_ROWS", -1)
    table = sec.open_table(str(lake))
    if indexed:
        postings = IN_ORDER if indexed == "in order" else {}
        sec.build_index(table, sort_key=["d", "ts DESC"], segment_blocks=4, postings=postings)
    for i, order in enumerate(one_in(2, ORDERS)):
        where = WHERES[i % len(WHERES)]
        plan = sec.prune(table, where, order_by=order, limit=7, strict=bool(indexed))
        check(spark, lake, plan, where, order, 7, "arrow", "auto", *(("local", "blocks", "native")[i % 3 :][:1]))


@pytest.mark.parametrize("where", [*WHERES, "f > 0 AND d < DATE '1970-01-04'", "id IN (3, 4, 77) OR n.a < 5"])
def test_aggregates_by_values_in_order_are_those_of_spark(spark: SparkSession, lake: Path, where: str) -> None:
    table = sec.open_table(str(lake))
    sec.build_index(table, segment_blocks=4, postings=IN_ORDER)
    calls = [f"{call}{name})" for name in IN_ORDER for call in ("count(", "count(DISTINCT ", "min(", "max(")]
    spark.read.parquet(str(lake)).createOrReplaceTempView("lake")
    wanted = spark.sql(f"SELECT count(*), {', '.join(calls)} FROM lake WHERE {where}").toArrow()
    answer = sec.aggregate(table, f"count(*), {', '.join(calls)}", where, strict=True)
    assert rows(answer) == rows(wanted)
    assert sec.prune(table, where, strict=True).count() == wanted[0][0].as_py()


def test_what_takes_long_to_find_here_is_left_to_spark(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = sec.prune(sec.open_table(str(lake)), "id % 2 = 0", order_by="id DESC", limit=3)
    search = top_n.FirstRows(plan, plan.fields())
    of_first = int(surviving_bytes(plan)[search.ahead[:1]].sum())
    monkeypatch.setattr(top_n, "SEARCH_BYTES", of_first)
    assert not search.run(top_n.SEARCH_BYTES)
    assert 0 < len(search.left) < len(plan.blocks)  # some blocks were read, and these ruled others out
    check(spark, lake, plan, "id % 2 = 0", "id DESC", 3, "auto")


def test_values_that_only_spark_orders(spark: SparkSession, lake: Path) -> None:
    plan = sec.prune(sec.open_table(str(lake)), "id < 20", order_by=["tags DESC", "id"], limit=4)
    with pytest.raises(UnsupportedPredicate, match="ORDER BY tags DESC NULLS LAST"):
        plan.to_arrow()
    assert plan.count() == 4
    check(spark, lake, plan, "id < 20", "tags DESC, id", 4, "auto")


def test_an_order_names_columns(lake: Path) -> None:
    with pytest.raises(UnknownColumn, match="did you mean ts"):
        sec.prune(sec.open_table(str(lake)), "TRUE", order_by="tss", limit=1)
