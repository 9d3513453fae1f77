"""Join keys beside Spark: its casts are the oracle, its joins make reads exact, and its frames are a source of keys."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.errors import IncomparableLiteral, UnsupportedPredicate
from secateur.io.spark import join_keys, key_filter
from secateur.io.spark.file_reader import spark_schema
from secateur.io.spark.to_spark import _loose, descriptors
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.joins.key_casts import cast_keys
from secateur.scan import Scan
from secateur.values.conversion import keys_of
from secateur.values.kinds import Kind, kind_of
from tests.support.older_spark import since_4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

INTEGERS = [0, 1, -1, 5, 100, 127, -128, 2**15 - 1, 2**24, 2**24 + 1, 2**31 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, 1.5, 0.1, float("nan"), float("inf"), 100.0, -128.0, 2.0**24, 2.0**24 + 1, 2.0**31, 2.0**53]
DECIMALS = [Decimal(text) for text in ("0", "1", "1.5", "-1", "100", "100.25", "127", "99999", "0.001")]
MOMENTS = [
    dt.datetime(2026, 3, 29),
    dt.datetime(2026, 3, 29, 2, 30),
    dt.datetime(1999, 12, 31, 23),
    dt.datetime(1970, 1, 1),
]
TYPES: dict[pa.DataType, list[Any]] = {
    pa.int8(): INTEGERS,
    pa.int32(): INTEGERS,
    pa.int64(): INTEGERS,
    pa.float32(): FLOATS,
    pa.float64(): FLOATS,
    pa.decimal128(7, 2): DECIMALS,
    pa.decimal128(20, 3): [*DECIMALS, Decimal(10) ** 16, Decimal(2**53)],
    pa.decimal128(38, 0): [*DECIMALS, Decimal(10) ** 37, Decimal(2**63 - 1), Decimal(2**63)],
    pa.string(): ["", "1", "1.0", " 1", "x", "2026-03-29"],
    pa.binary(): [b"", b"1", b"x"],
    pa.bool_(): [True, False],
    pa.date32(): [moment.date() for moment in MOMENTS],
    pa.timestamp("us", "UTC"): [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS],
    pa.timestamp("us"): MOMENTS,
}


def valid(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Those values that fit into a type, and NULL."""
    conditions = []
    for value in values:
        try:
            conditions.append(pa.array([value], type_)[0].as_py())
        except pa.ArrowInvalid:
            continue
    return pa.array([*conditions, None], type_)


@pytest.fixture(params=["true", "false"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[bool]:
    """Sessions with and without ANSI mode, in a zone whose clocks change."""
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    spark.conf.set("spark.sql.session.timeZone", "Europe/Zurich")
    yield request.param == "true"
    spark.conf.unset("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_keys_are_cast_as_by_a_join(spark: SparkSession, ansi: bool) -> None:
    """One query compares all values of all types; those of ours that were not refused are equal to the same."""
    binder = Binder(pa.schema([]), known_zone("Europe/Zurich"), ansi=ansi)
    arrays = [valid(values, type_) for type_, values in TYPES.items()]
    most = max(map(len, arrays))
    padded = [pa.concat_arrays([array, pa.nulls(most - len(array), array.type)]) for array in arrays]
    sides = [
        pa.table([pa.array(range(most)), *padded], [side, *(f"{side}{i}" for i in range(len(padded)))]) for side in "ck"
    ]
    frames = [spark.createDataFrame(side, spark_schema(side.schema)) for side in sides]
    both = frames[0].crossJoin(frames[1])
    ours: dict[str, set[tuple[int, int]]] = {}
    for i, column in enumerate(padded):
        field, words = Field(("x",), column.type), words_of(column)
        for j, given in enumerate(padded):
            refused, equal = set(), set()
            for row in range(most):
                try:
                    cast = cast_keys(field, given.slice(row, 1), binder)
                except IncomparableLiteral:
                    refused.add(row)
                    continue
                assert cast.type == column.type
                equal |= {(at, row) for at, word in enumerate(words) if word is not None and [word] == words_of(cast)}
            if len(refused) < most:
                ours[f"c{i} = k{j} AND k NOT IN ({', '.join(map(str, [-1, *refused]))})"] = equal
    assert len(ours) > 50
    truths = both.selectExpr("c", "k", *(f"({text}) IS TRUE" for text in ours)).toArrow()
    places = list(zip(truths["c"].to_pylist(), truths["k"].to_pylist(), strict=True))
    for (text, equal), answers in zip(ours.items(), truths.columns[2:], strict=True):
        spark_says = {place for place, answer in zip(places, answers.to_pylist(), strict=True) if answer}
        assert equal == spark_says, text


def words_of(array: pa.Array) -> list[object]:
    """The keys of values as they are compared, None for NULL; text and bytes are compared as they are."""
    if kind_of(array.type) is Kind.BYTES:
        return array.to_pylist()
    words = zip(*(word.tolist() for word in keys_of(array).words), strict=True)
    return [word if present else None for word, present in zip(words, array.is_valid().to_pylist(), strict=True)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty row groups; a ascends, b is scattered and now and then NULL."""
    n = np.arange(2000)
    root = tmp_path_factory.mktemp("keys")
    b = pa.array(n * 37 % 101, mask=n % 50 == 0)
    pq.write_table(
        pa.table({"a": n, "b": b, "t": pa.array(n).cast(pa.string())}), root / "a.parquet", row_group_size=100
    )
    return root


def test_every_read_path_gives_the_rows_of_the_join(spark: SparkSession, lake: Path) -> None:
    table, frame = sec.open_table(str(lake)), spark.read.parquet(str(lake))
    source = pa.table({"x": [3, 77, 1250, 50, 50], "y": [10, 21, None, None, 7]})
    keys = spark.createDataFrame(source)
    for null_safe in (False, True):
        same = frame.b.eqNullSafe(keys.y) if null_safe else frame.b == keys.y
        wanted = frame.join(keys, [frame.a == keys.x, same], "left_semi")
        expected = sorted(wanted.toArrow()["a"].to_pylist())
        assert len(expected) == (4 if null_safe else 2)
        plan = sec.prune(table, "t <> '9'", keys=source, on={"a": "x", "b": "y"}, null_safe=null_safe)
        for via in ("local", "blocks", "native") if null_safe else ("auto",):
            assert sorted(plan.to_spark(spark, ["a"], via=via).toArrow()["a"].to_pylist()) == expected, via
        of_frame = sec.prune(table, "t <> '9'", keys=keys, on={"a": "x", "b": "y"}, null_safe=null_safe)
        assert sorted(of_frame.to_arrow(["a"])["a"].to_pylist()) == expected
    first = sec.prune(table, "TRUE", keys=keys, on={"a": "x"}, order_by="a DESC", limit=2)
    assert first.to_spark(spark).toArrow()["a"].to_pylist() == [1250, 77]
    nothing = sec.prune(table, "TRUE", keys=keys.where("x < 0"), on={"a": "x"})
    assert not len(nothing.blocks) and nothing.to_spark(spark).count() == 0


@since_4
def test_c19_keys_with_a_collation_are_refused(spark: SparkSession, lake: Path) -> None:
    """Of 'a' and 'A', DISTINCT keeps one."""
    keys = spark.sql("SELECT col1 COLLATE UTF8_LCASE AS name FROM VALUES ('a'), ('A'), ('7')")
    with pytest.raises(UnsupportedPredicate, match="name of the keys has a collation"):
        sec.prune(lake, "TRUE", keys=keys, on={"t": "name"})
    bytes_ = keys.selectExpr("name COLLATE UTF8_BINARY AS name")
    assert sec.prune(lake, "TRUE", keys=bytes_, on={"t": "name"}).count() == 1


def test_more_keys_than_are_collected_are_intervals(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_keys, "MOST_KEYS", 10)
    monkeypatch.setattr(join_keys, "MOST_INTERVALS", 4)
    table = sec.open_table(str(lake))
    keys = spark.sql("SELECT id, id + 1 AS t FROM range(300, 330) UNION ALL SELECT id, id FROM range(1500, 1510)")
    plan = sec.prune(table, "b < 90", keys=keys, on={"a": "id"})
    assert plan.blocks["row_group"].to_pylist() == [3, 15]
    frame = spark.read.parquet(str(lake)).where("b < 90")
    wanted = frame.join(keys, frame.a == keys.id, "left_semi")
    assert plan.to_spark(spark).count() == wanted.count() > 0
    with pytest.raises(UnsupportedPredicate, match="too many"):
        plan.count()


@pytest.fixture
def few_keys_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than three keys are not collected, and make a filter for executors, however few bytes are read."""
    monkeypatch.setattr(join_keys, "MOST_KEYS", 3)
    monkeypatch.setattr(join_keys, "MOST_INTERVALS", 4)
    monkeypatch.setattr(key_filter, "LEAST_BYTES", 0)


MANY = {  # keys, and the columns of the table that they are compared with
    "id AS a FROM range(300, 330)": ["a"],
    "CAST(id AS INT) AS a FROM range(300, 330)": ["a"],
    "concat('', id) AS t FROM range(500, 507)": ["t"],
    "id * 100 AS a, concat('', id * 100) AS t FROM range(20)": ["a", "t"],
    "id AS a, IF(id % 60 = 0, NULL, CAST(id * 37 % 101 AS BIGINT)) AS b FROM range(0, 2000, 30)": ["a", "b"],
    "CAST(id AS DECIMAL(20, 0)) AS a FROM range(300, 330)": ["a"],  # which Spark casts
    "id AS b FROM range(7)": ["b"],
}


@pytest.mark.parametrize("null_safe", [False, True])
@pytest.mark.parametrize("source", list(MANY))
def test_executors_drop_rows_without_a_key(
    spark: SparkSession, lake: Path, few_keys_are_many: None, source: str, null_safe: bool
) -> None:
    keys, columns = spark.sql(f"SELECT {source}"), MANY[source]
    frame = spark.read.parquet(str(lake)).where("b < 90 OR b IS NULL")
    same = [frame[name].eqNullSafe(keys[name]) if null_safe else frame[name] == keys[name] for name in columns]
    wanted = sorted(frame.join(keys, same, "left_semi").toArrow()["a"].to_pylist())
    plan = sec.prune(sec.open_table(str(lake)), "b < 90 OR b IS NULL", keys=keys, on=columns, null_safe=null_safe)
    for via in ("blocks", "native"):
        assert sorted(plan.to_spark(spark, ["a"], via=via).toArrow()["a"].to_pylist()) == wanted, via
    assert wanted


def test_a_filter_of_keys_leaves_few_rows_to_the_join(spark: SparkSession, lake: Path, few_keys_are_many: None) -> None:
    keys = spark.sql("SELECT concat('', id * 7) AS t FROM range(200)")
    plan = Scan.of(sec.prune(sec.open_table(str(lake)), "b < 90", keys=keys, on=["t"]))
    reader = _loose(descriptors(plan, plan.fields(["a"])).reader)
    files = list(plan.blocks_at(plan.order(), reader).by_file())
    keyed = key_filter.with_key_filter(reader, plan)
    read, left = (sum(batch.num_rows for file in files for batch in by.read(file)) for by in (reader, keyed))
    matching = plan.to_spark(spark, ["a"]).count()
    assert matching <= left < matching + 40 < read


def test_texts_of_more_keys_than_are_collected_are_intervals(
    spark: SparkSession, lake: Path, few_keys_are_many: None
) -> None:
    """The row groups of texts by the place of their first digits."""
    table = sec.open_table(str(lake))
    source = "SELECT concat('', id) AS t FROM range(1000, 1100) UNION ALL SELECT concat('', id) FROM range(1500, 1510)"
    keys = spark.sql(source)
    plan = sec.prune(table, "a >= 200", keys=keys, on=["t"])
    assert plan.blocks["row_group"].to_pylist() == [10, 15]
    frame = spark.read.parquet(str(lake)).where("a >= 200")
    assert plan.to_spark(spark).count() == frame.join(keys, "t", "left_semi").count() == 110
