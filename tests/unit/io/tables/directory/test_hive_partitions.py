"""Hive partition columns have the types and values that Spark infers from the directory names."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import IncompatibleSchemas
from secateur.io.spark.file_reader import spark_schema
from secateur.io.tables.directory.hive_partitions import DEFAULT_PARTITION, unescape
from tests.support.checks.oracle import ask, plain, rows
from tests.support.drawn.strategies import TEXTS, ZONES
from tests.support.profiles import examples
from tests.support.tables import WriteTable, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPECIAL = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")  # ExternalCatalogUtils.charToEscape


def escaped(text: str) -> str:
    """A value as Spark and Hive write it into a directory name."""
    return SPECIAL.sub(lambda match: f"%{ord(match.group()):02X}", text)


CASES: list[list[str]] = [
    # integers, longs, and what they widen to
    ["0"],
    ["1", "2147483647", "-2147483648"],
    ["1", "2147483648"],
    ["9223372036854775807", "-9223372036854775808"],
    ["+5", "-0", "007"],
    ["0" * 50],
    ["1_0"],
    [" 1"],
    ["1 "],
    # decimals: whole numbers beyond a long, or with a point or an exponent but no fraction
    ["9223372036854775808"],
    ["99999999999999999999", "1"],
    ["99999999999999999999", "9223372036854775807"],
    ["99999999999999999999", "0.5"],
    ["12345678901234567890123456789012345678"],
    ["123456789012345678901234567890123456789"],
    ["1e3", "5"],
    ["1.5e3"],
    ["0e5"],
    ["5."],
    ["1e37"],
    ["1e38"],
    # doubles: they take ints beside them, but make text of longs and decimals
    ["0.5", "-0.0", "1e-3"],
    ["0.5", "1"],
    ["0.5", "9223372036854775807"],
    ["0.5", "1e3"],
    ["NaN", "Infinity", "-Infinity"],
    ["nan"],
    ["1f", "2"],
    [".5", "1e400"],
    # dates and timestamps, in one form each
    ["2024-02-29", "0001-01-01", "9999-12-31"],
    ["0000-01-01"],
    ["2024-1-1"],
    ["2024-02-30"],
    ["2024-01-01 x"],
    ["2024%2D01%2D01"],
    ["+2024-01-01"],
    ["2024-01-01 00%3A00%3A00", "2024-03-31 02%3A30%3A00"],
    ["2024-01-01 00:00:00.5"],
    ["2024-01-01 00:00:00.55"],
    ["2024-01-01 00%3A00%3A00", "2024-01-02"],
    ["2024-01-01 00%3A00%3A00", "0000-02-29"],
    ["2024-01-01 12%3A30"],
    ["2024-01-01T00:00:00"],
    ["2024-01-01 24:00:00"],
    ["2024-01-01 1:00:00"],
    ["2024-01-01 00%3A00%3A00Z"],
    # text, alone and from what has no type in common
    ["a", "b"],
    ["true", "false"],
    ["1", "x"],
    ["0.5", "x"],
    ["2024-01-01", "5"],
    ["a%20b", "a b"],
    ["é", "%C3%A9"],
    ["%31"],
    ["%", "%zz", "50%25"],
    ["a%3Db", "a=b"],
    ["-", ".", "e5"],
    # NULL takes any type
    [DEFAULT_PARTITION, "1"],
    [DEFAULT_PARTITION, "2024-01-01"],
    [DEFAULT_PARTITION, "x"],
    ["null"],
]


def write_partitions(root: Path, columns: Sequence[Sequence[str]]) -> Path:
    """A table with a partition column for each list of raw values; every value occurs in some file."""
    for row in range(max(len(values) for values in columns)):
        folders = [f"p{i}={values[row % len(values)]}" for i, values in enumerate(columns)]
        write_file(root / "/".join(folders) / "part.parquet", {"rid": [row]})
    return root


def check_as_spark(spark: SparkSession, root: Path, columns: Sequence[Sequence[str]]) -> None:
    frame = spark.read.parquet(str(root))
    expected = frame.toArrow().sort_by("rid")
    read = sec.prune(sec.open_table(str(root)), "TRUE").to_arrow().sort_by("rid")
    types = spark_schema(read.schema)
    for i, values in enumerate(columns):
        name = f"p{i}"
        # a column without a value has no type in Spark, and is text here
        if set(values) != {DEFAULT_PARTITION}:
            assert types[name].dataType == frame.schema[name].dataType, values
        assert list(map(repr, plain(read[name]))) == list(map(repr, plain(expected[name]))), values


@pytest.mark.parametrize("part", range(3))
def test_types_and_values_are_sparks(spark: SparkSession, tmp_path: Path, part: int) -> None:
    """Every case is one partition column of a table."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    columns = CASES[part::3]
    check_as_spark(spark, write_partitions(tmp_path, columns), columns)


digits = st.integers(-(2**70), 2**70).map(str) | st.integers(-100, 100).map(str)
fractions = st.decimals(-1000, 1000, places=3).map(str) | st.floats().map(repr)
days = st.dates().map(lambda day: f"{day.year:04}-{day.month:02}-{day.day:02}")
moments = st.datetimes().map(lambda t: escaped(f"{t.year:04}-{t:%m-%d %H:%M:%S}"))
words = (st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=8)).map(escaped)
values = st.one_of(digits, fractions, days, moments, words, st.just(DEFAULT_PARTITION)).filter(
    lambda raw: 0 < len(raw.encode()) < 150 and "\0" not in raw and "/" not in raw and not raw.strip("% ").isspace()
)


@examples(15, shrink=False)
@given(
    columns=st.lists(st.lists(values, min_size=1, max_size=3, unique=True), min_size=1, max_size=8),
    zone=st.sampled_from(ZONES),
)
def test_random_types_and_values_are_sparks(spark: SparkSession, columns: list[list[str]], zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    with tempfile.TemporaryDirectory(prefix="secateur-") as folder:
        check_as_spark(spark, write_partitions(Path(folder), columns), columns)


def test_c41_escaped_values_and_names_select_the_rows_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Names and values with spaces, %, +, quotes and letters beyond ASCII; the index knows files by raw path."""
    texts = ["a b", "50%", "x/y", "a+b", "é", "😀", "it's", 'say "x"', "a=b", "[1]", "c:d", "~", "\x01"]
    for i, text in enumerate(texts):
        write_file(tmp_path / f"k%20ey={escaped(text)}" / f"p +é{i}.parquet", {"rid": [i]})
    table = sec.open_table(str(tmp_path))
    frame = spark.read.parquet(str(tmp_path))
    assert frame.columns == ["rid", "k ey"]
    sec.build_index(table, spark=spark)
    wanted = [str(sec.col("`k ey`") == text) for text in texts]
    answers = ask(frame, wanted)
    for i, predicate in enumerate(wanted):
        read = sec.prune(table, predicate, strict=True).to_arrow()
        assert rows(read) == answers.matching(predicate)
        assert read["rid"].to_pylist() == [i]


FILE_NAMES = [
    "a b",
    "a&b",
    "a+b",
    'a,b;c=d@e$f!(g)*"<>^`|',
    "a[1]{2}",
    "back\\s",
    "it's",
    "p%20q",
    "q?r#s",
    "~t",
    "é",
    "😀",
]


def test_c41_file_names_are_those_of_sparks_metadata(spark: SparkSession, write_table: WriteTable) -> None:
    """``_metadata.file_name`` is escaped as in a URI."""
    root = write_table({f"{name}.parquet": {"rid": [i]} for i, name in enumerate(FILE_NAMES)})
    table = sec.open_table(str(root))
    frame = spark.read.parquet(*[str(path) for path in root.iterdir() if not set("{}[]*?\\") & set(path.name)])
    for row in frame.selectExpr("rid", "_metadata.file_name").collect():
        plan = sec.prune(table, sec.col("_metadata.file_name") == row.file_name, strict=True)
        assert plan.to_arrow()["rid"].to_pylist() == [row.rid]


def test_a_column_of_the_name_that_spark_hides(spark: SparkSession, tmp_path: Path) -> None:
    """It is a column like any other, in pruning and in reading."""
    for i in range(3):
        names = pa.array([{"file_name": f"x{i}"}] * 2)
        write_file(tmp_path / f"{i}.parquet", {"rid": [2 * i, 2 * i + 1], "_metadata": names})
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, spark=spark, bloom=["_metadata.file_name"], segment_blocks=1)
    for predicate, expected in (("_metadata.file_name = 'x1'", [2, 3]), ("_metadata.file_name = '1.parquet'", [])):
        for use_index in (True, False):
            plan = sec.prune(table, predicate, use_index=use_index)
            assert plan.to_arrow(columns=["rid"])["rid"].to_pylist() == expected
            assert sorted(row.rid for row in plan.to_spark(spark, via="blocks").collect()) == expected


@pytest.mark.parametrize("name", ["P", "p"])
def test_a_data_column_under_the_same_name_yields_to_the_directory(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Of other case, and of the same: then the index knows it, its tree and its filters too."""
    for i in range(3):
        data = {"rid": [i], "p": pa.array([100 + i], pa.int32()), "q": [i]}
        write_file(tmp_path / f"{name}={i}" / "part.parquet", data)
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, spark=spark, bloom=["p"], segment_blocks=1)
    expected = spark.read.parquet(str(tmp_path))
    for predicate in ("p = 1", "p = 101", "P >= 2", "p IS NULL"):
        wanted = sorted(row.rid for row in expected.where(predicate).collect())
        assert sorted(sec.prune(table, predicate, strict=True).to_arrow()["rid"].to_pylist()) == wanted


def test_directories_between_are_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    """Nearest to the file: the run of ``column=value`` directories, below which others may lie."""
    for i in range(2):
        write_file(tmp_path / f"a={i}" / "b=x" / "deep" / "er" / "part.parquet", {"rid": [i]})
    expected = spark.read.parquet(str(tmp_path)).orderBy("rid").toArrow()
    read = sec.prune(sec.open_table(str(tmp_path)), "a >= 0").to_arrow().sort_by("rid")
    assert read.to_pylist() == expected.to_pylist() == [{"rid": 0, "a": 0, "b": "x"}, {"rid": 1, "a": 1, "b": "x"}]


@pytest.mark.parametrize("folders", [("a=1", "b=1"), ("a=1", "a=1/b=2"), ("a=1", "plain")])
def test_directories_that_disagree_are_refused(tmp_path: Path, folders: tuple[str, str]) -> None:
    for folder in folders:
        write_file(tmp_path / folder / "part.parquet", {"rid": [1]})
    with pytest.raises(IncompatibleSchemas, match="partition columns"):
        sec.prune(sec.open_table(str(tmp_path)), "TRUE")


@given(st.text(st.characters(codec="utf-8")))
def test_unescape_undoes_escape(text: str) -> None:
    assert unescape(escaped(text)) == text


def test_partition_values_are_exact_bounds(tmp_path: Path) -> None:
    """A partition decides its files whole: pruned where it is FALSE or NULL, fully matching where it is TRUE."""
    for value in ("1", "2", DEFAULT_PARTITION):
        write_file(tmp_path / f"p={value}" / "part.parquet", pa.table({"rid": [1, 2, 3]}))
    table = sec.open_table(str(tmp_path))
    assert sec.prune(table, "p = 1").files == ["p=1/part.parquet"]
    assert sec.prune(table, "NOT p = 1").files == ["p=2/part.parquet"]
    assert sec.prune(table, "p IS NULL").files == [f"p={DEFAULT_PARTITION}/part.parquet"]
    plan = sec.prune(table, "p >= 1")
    assert plan.residual is None
    assert plan.count() == 6
