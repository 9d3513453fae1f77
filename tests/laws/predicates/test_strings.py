"""Strings with a collation, which pruning leaves to Spark; padded strings; and texts that are no UTF-8."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException

import secateur as sec
from secateur.errors import UnsupportedPredicate, UnsupportedTable
from secateur.front_ends import read_predicate
from secateur.io.spark.version import IS_3
from secateur.pruning.functions.text import RULES
from secateur.pruning.interval import Argument
from secateur.values.kinds import COLLATED
from tests.support.checks.laws import check_table
from tests.support.checks.oracle import rows
from tests.support.tables import WriteTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREDICATES = ["s = 'NAME3'", "s > 'name5' AND id < 8", "s = 'x' OR id = 2", "st.u = 'a'", "lower(s) = 'name3'"]
PREDICATES += ["s LIKE 'NAME%'", "s IN ('NAME1', 'name2')", "NOT (s = 'NAME1')", "s <=> 'NAME1'"]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    text = "CAST(concat('Name', id) AS STRING)"
    collated = f"{text} COLLATE UTF8_LCASE AS s, named_struct('u', 'A' COLLATE UTF8_LCASE) AS st, {text} AS plain"
    frame = spark.sql(f"SELECT id, {collated} FROM range(10)")
    frame.coalesce(2).write.parquet(str(tmp_path / "lake"))
    return tmp_path / "lake"


@pytest.mark.parametrize("predicate", PREDICATES)
def test_c19_a_collation_keeps_every_block_and_compares_as_spark_does(
    spark: SparkSession, lake: Path, predicate: str
) -> None:
    table = sec.open_table(str(lake))
    sec.build_index(table)
    plan = sec.prune(table, predicate)
    assert plan.report.unsupported
    assert rows(plan.to_spark(spark).toArrow()) == rows(spark.read.parquet(str(lake)).where(predicate).toArrow())
    with pytest.raises(UnsupportedPredicate, match="collation"):
        plan.to_arrow()
    with pytest.raises(UnsupportedPredicate, match="collation"):
        plan.to_spark(spark, via="blocks")


@pytest.mark.parametrize("columns", [None, ["s"], ["id", "st"]])
@pytest.mark.parametrize("predicate", ["id IN (3, 4)", "id > 99"])
def test_c19_a_collation_is_handed_on(
    spark: SparkSession, lake: Path, columns: list[str] | None, predicate: str
) -> None:
    """A later filter would else compare without it, and lose rows; one file lacks the columns."""
    pq.write_table(pa.table({"id": [4]}), lake / "without.parquet")
    plan = sec.prune(sec.open_table(str(lake)), predicate)
    for via in ("auto", "native"):
        frame = plan.to_spark(spark, columns, via=via)
        wanted = spark.read.option("mergeSchema", "true").parquet(str(lake)).where(predicate).select(*frame.columns)
        assert frame.schema == wanted.schema
        assert rows(frame.toArrow()) == rows(wanted.toArrow())
        if "s" in frame.columns:
            assert frame.where("s = 'NAME3'").count() == (predicate != "id > 99")
    for via in ("blocks", "local"):
        with pytest.raises(UnsupportedTable, match="has a collation or is VARIANT"):
            plan.to_spark(spark, columns, via=via)
        assert plan.to_spark(spark, ["id"], via=via).count() == 3 * (predicate != "id > 99")


def test_a_table_with_collations_may_have_no_file(spark: SparkSession, tmp_path: Path) -> None:
    table = sec.open_table(str(tmp_path), schema=pa.schema([("id", pa.int64()), ("s", COLLATED)]))
    assert sec.dataframe(spark, table).where("s = 'name3'").collect() == []
    assert sec.prune(table, "s = 'name3'").to_spark(spark).collect() == []


def test_c19_a_reader_that_keeps_no_collation_is_refused(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(
        AnalysisException, match=r"s, st has a collation or is VARIANT, which format\(\"secateur\"\) does not keep"
    ):
        spark.read.format("secateur").load(str(lake))
    assert spark.read.format("secateur").schema("id bigint, plain string").load(str(lake)).count() == 10


def test_other_columns_of_such_a_table_prune(spark: SparkSession, lake: Path) -> None:
    plan = sec.prune(sec.open_table(str(lake)), "id = 3 AND s IS NOT NULL")
    assert plan.to_arrow(["id"])["id"].to_pylist() == [3]
    assert len(plan.blocks) == 1


CHAR_PREDICATES = ["c = 'ab'", "c = 'ab   '", "c < 'ab '", "c IN ('ab', 'abcde')", "v = 'ab'", "v = 'ab '", "c = v"]
CHAR_PREDICATES += ["c LIKE 'ab%'", "length(c) = 5", "substring(c, 1, 2) = 'ab'"]


def test_c19_padded_strings_compare_as_spark_reads_them_by_path(spark: SparkSession, tmp_path: Path) -> None:
    """CHAR(5) is padded in the files, and nothing in them says so: without the catalog it is a plain string."""
    spark.sql(f"CREATE TABLE padded (rid BIGINT, c CHAR(5), v VARCHAR(5)) USING parquet LOCATION '{tmp_path}'")
    try:
        spark.sql(
            "INSERT INTO padded VALUES (1, 'ab', 'ab'), (2, 'ab ', 'ab '), (3, 'abcde', 'abcde'), (4, NULL, NULL)"
        )
        answers = check_table(
            spark, tmp_path, CHAR_PREDICATES, read_paths=len(CHAR_PREDICATES), build={"bloom": ["c", "v"]}
        )
        assert set(answers.truth) == set(CHAR_PREDICATES)
    finally:
        spark.sql("DROP TABLE padded")


QUOTED = [
    "s = 'it''s'",
    "s LIKE 'it''s%'",
    "s IN ('x', 'it''s')",
    "s = 'it' 's'",
    's = "a""b"',
    "s = ''''",
    "s > 'a''b'",
]
QUOTED += ["s = ''", "s = 'it\\'''s'", "concat(s, 'it''s') = 'it''sit''s'"]


@pytest.mark.skipif(IS_3, reason="two quotes are one since Spark 4.0")
def test_c29_two_quotes_within_a_text_are_one(spark: SparkSession, write_table: WriteTable) -> None:
    texts = ["it's", "its", "it''s", 'a"b', "ab", "'", "", None, "it's late", "a'b"]
    table = pa.table({"rid": pa.array(range(len(texts))), "s": pa.array(texts)})
    root = write_table({"part.parquet": table}, row_group_size=1)
    answers = check_table(spark, root, QUOTED, build={"bloom": ["s"]})
    assert set(answers.truth) == set(QUOTED)
    for text in QUOTED:
        for path in ("local", "native"):
            read = sec.prune(str(root), text).to_spark(spark, via=path).toArrow()
            assert rows(read) == rows(spark.read.parquet(str(root)).where(text).toArrow())


def test_c29_spark_gets_two_quotes_as_they_were_read(write_table: WriteTable) -> None:
    """Spark 3.5 would read none of them: it evaluates what is left to check by the same text as the index was asked."""
    root = write_table({"part.parquet": pa.table({"s": ["it's", "its"]})}, row_group_size=1)
    plan = sec.prune(str(root), "s = 'it''s'")
    assert plan.to_arrow()["s"].to_pylist() == ["it's"]
    assert plan.sql == "`s` = 'it\\'s'"
    for text in ("s = ''", "s = '' OR s = \"\"", "s = '\"\"'", "`a''b` IS NULL OR s = 'x'"):
        assert str(read_predicate(text)[1]) == text


ODD_TEXTS = [
    b"a\xc3\xa9",
    b"a\x7f",
    b"ab",
    b"b",
    b"\xc3A",
    b"a\x80b",
    b"\xc3\xa9\x7f",
    b"\xe0AB\x80c",
    b"\xf0ABCD",
    b"",
    None,
]
PREFIXES = ["a\x7f", "é\x7f", "\x7f", "a", "é", "ab"]


def test_c18_prefixes_of_texts_end_where_spark_ends_them(spark: SparkSession, write_table: WriteTable) -> None:
    """Also of texts that are no UTF-8, and where the end of a range is none: after 'a\\x7f' comes 'a\\x80'."""
    texts = pa.array(ODD_TEXTS, pa.binary()).view(pa.string())
    root = write_table({"a.parquet": pa.table({"rid": range(len(texts)), "s": texts})}, row_group_size=1)
    shapes = [
        "left(s, {n}) LIKE '{p}%'",
        "left(s, {n}) NOT LIKE '{p}%'",
        "left(s, {n}) = '{p}'",
        "left(s, {n}) > '{p}'",
    ]
    predicates = [shape.format(n=n, p=p) for shape in shapes for n in (0, 1, 2) for p in PREFIXES]
    predicates += [f"length(s) {op} {n}" for op in ("=", "<", ">=") for n in (1, 2, 3)]
    answers = check_table(spark, root, predicates, build={})
    assert set(answers.truth) == set(predicates)


sizes = {
    **dict.fromkeys(range(0xC2, 0xE0), 2),
    **dict.fromkeys(range(0xE0, 0xF0), 3),
    **dict.fromkeys(range(0xF0, 0xF5), 4),
}
any_text = st.lists(st.sampled_from([0x61, 0x62, 0x7F, 0x80, 0xBF, 0xC3, 0xE0, 0xF0, 0xFF]), max_size=7).map(bytes)


@given(text=any_text, bound=any_text, count=st.integers(0, 3))
def test_c18_a_prefix_is_at_least_a_bound_from_the_key_on_that_is_said(text: bytes, bound: bytes, count: int) -> None:
    """For any bytes: prefix(text) >= bound if and only if text >= inverse(bound)."""
    arguments = [Argument(pa.string()), Argument(pa.int32(), 1), Argument(pa.int32(), count)]
    function = RULES["substring"](arguments, dt.UTC)
    assert function is not None
    assert function.inverse is not None
    end = 0
    for _ in range(count):
        end += sizes.get(text[end], 1) if end < len(text) else 0
    first = function.inverse(bound)
    assert (text[:end] >= bound) == (first is not None and text >= first)  # type: ignore[operator]
