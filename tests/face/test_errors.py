"""Bad input gets an error that says what, which value, and what to do; and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import (
    AmbiguousColumn,
    EvaluationError,
    IncomparableLiteral,
    IncompatibleSchemas,
    IndexNotWritable,
    InvalidAggregate,
    InvalidOption,
    InvalidOrder,
    InvalidParquet,
    InvalidPredicate,
    SecateurError,
    TableNotFound,
    UnknownColumn,
    UnsupportedPredicate,
)
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.tables import write_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    root.mkdir()
    table = pa.table(
        {
            "user_id": [1, 2, 3],
            "name": ["a", "b", "c"],
            "day": pa.array([1, 2, 3], pa.date32()),
            "active": [True, False, None],
            "address": [{"zip": "1"}, {"zip": "2"}, None],
        }
    )
    pq.write_table(table, root / "rows.parquet")
    return root


@pytest.fixture
def table(root: Path) -> ParquetDirectory:
    return sec.open_table(str(root))


PREDICATES = [
    ("user_idd = 1", UnknownColumn, "unknown column `user_idd`: did you mean user_id?"),
    ("zzz = 1", UnknownColumn, "unknown column `zzz`: the table has user_id, name, day"),
    ("address.zpi = '1'", UnknownColumn, "unknown column `address`.`zpi`: did you mean zip?"),
    ("year(dya) = 2020", UnknownColumn, "did you mean day?"),
    ("upper(nmae) = 'A'", UnknownColumn, "did you mean name?"),
    ("user_id = = 1", InvalidPredicate, "cannot parse the predicate at line 1, column 11"),
    ("user_id = 1 AND\n  name LIKE", InvalidPredicate, "line 2"),
    ("", InvalidPredicate, "the predicate is empty: write true for all rows"),
    ("\n ", InvalidPredicate, "the predicate is empty"),
    ("SELECT 1", InvalidPredicate, "is not one boolean expression: it reads as SELECT"),
    ("user_id = 1; name = 'a'", InvalidPredicate, "is not one boolean expression"),
    ("name = 'a", InvalidPredicate, "name = 'a\": ' is not closed"),
    ("name LIKE 'a\\\\b'", InvalidPredicate, "must precede %, _ or itself"),
    ("user_id = 'five'", IncomparableLiteral, "cannot compare column user_id of type int64 with 'five'"),
    ("day > 5", IncomparableLiteral, "cannot compare column day of type date32[day] with 5"),
    ("day > 2020-01-31", IncomparableLiteral, "a date or timestamp is needed, such as DATE '2020-01-31'"),
    ("2020-01-01 <= day", IncomparableLiteral, "such as DATE '2020-01-31'"),
    ("day BETWEEN 2020-01-01 AND 2020-02-01", IncomparableLiteral, "such as DATE '2020-01-31'"),
    ("user_id IN ()", InvalidPredicate, "user_id IN () is a list without values"),
    ("user_id > 3 AND NOT user_id NOT IN ()", InvalidPredicate, "user_id IN () is a list without values"),
    ("day = 'yesterdayish'", IncomparableLiteral, "the text is not a date or timestamp"),
    ("active = 1", IncomparableLiteral, "a boolean compares with TRUE or FALSE"),
]


@pytest.mark.parametrize(("predicate", "error", "message"), PREDICATES)
def test_predicates(table: ParquetDirectory, predicate: str, error: type[SecateurError], message: str) -> None:
    with pytest.raises(error) as caught:
        sec.prune(table, predicate)
    assert message in str(caught.value)


def test_the_position_is_marked(table: ParquetDirectory) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        sec.prune(table, "user_id = = 1")
    _, source, marker = str(caught.value).splitlines()
    assert source[marker.index("^")] == "="
    assert marker.index("^") == source.rindex("=")


def test_names_that_differ_in_case_alone(tmp_path: Path) -> None:
    schema = pa.schema([("Id", pa.int64()), ("id", pa.int64())])
    pq.write_table(pa.table({"Id": [1]}), tmp_path / "rows.parquet")
    declared = sec.open_table(str(tmp_path), schema=schema)
    with pytest.raises(AmbiguousColumn, match="could be any of Id, id: pass case_sensitive=True"):
        sec.prune(declared, "ID = 1")
    plan = sec.prune(declared, "Id = 1", case_sensitive=True)
    assert plan.to_arrow(["Id"]).to_pydict() == {"Id": [1]}
    with pytest.raises(AmbiguousColumn):
        sec.prune(declared, "true").to_arrow(["Id"])


def test_other_things_than_predicates(table: ParquetDirectory) -> None:
    with pytest.raises(InvalidPredicate, match="use SQL text or a comparison"):
        sec.prune(table, 5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown time zone 'Mars/Base'"):
        sec.prune(table, "user_id = 1", session_time_zone="Mars/Base")
    with pytest.raises(ValueError, match="limit is -1"):
        sec.prune(table, "user_id = 1", limit=-1)
    with pytest.raises(TypeError, match=r"combine with &, \| and ~"):
        bool(sec.col("user_id") == 1)


def test_orders(table: ParquetDirectory) -> None:
    with pytest.raises(ValueError, match="order_by needs a limit"):
        sec.prune(table, "user_id = 1", order_by="user_id")
    with pytest.raises(InvalidOrder, match="cannot order by 'user_id \\+ 1'"):
        sec.prune(table, "user_id = 1", order_by="user_id + 1", limit=1)
    with pytest.raises(UnknownColumn, match="did you mean user_id"):
        sec.prune(table, "user_id = 1", order_by=["user_idd DESC"], limit=1)


def test_columns_of_the_result(table: ParquetDirectory) -> None:
    with pytest.raises(UnknownColumn, match="did you mean name"):
        sec.prune(table, "user_id = 1").to_arrow(columns=["nam"])
    for columns in (["name", "name"], ["user_id", "NAME", "name"]):
        with pytest.raises(InvalidOption, match="columns has name twice"):
            sec.prune(table, "user_id = 1").to_arrow(columns=columns)


def test_what_only_spark_can_evaluate(table: ParquetDirectory) -> None:
    with pytest.raises(UnsupportedPredicate, match=r"reverse\(`name`\) = 'x'.*to_spark"):
        sec.prune(table, "reverse(name) = 'x'").to_arrow()
    with pytest.raises(UnsupportedPredicate, match=r"split\(`name`, '\[ab\]'\)\[0\] = 'A'.*to_spark"):
        sec.prune(table, "split(name, '[ab]')[0] = 'A'").to_arrow()


def test_a_row_whose_value_only_spark_knows(tmp_path: Path) -> None:
    """The column, its value and what to do; a row of ASCII is never in doubt."""
    write_file(tmp_path / "a.parquet", {"name": ["Stra\u00dfe", "strasse"]})
    plan = sec.prune(sec.open_table(str(tmp_path)), "upper(name) = 'STRASSE'")
    with pytest.raises(EvaluationError, match=r"upper\(`name`\) = 'STRASSE'.*name = 'Stra\u00dfe'.*to_spark"):
        plan.to_arrow()


def test_no_such_path(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound, match="absent does not exist"):
        sec.open_table(str(tmp_path / "absent"))


def test_a_name_that_no_catalog_knows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    for name in ("db.events", "prod.db.events"):
        with pytest.raises(
            TableNotFound, match=f"{name} is no path here, and PyIceberg has no catalogs: give catalog="
        ):
            sec.open_table(name)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "sqlite://")
    with pytest.raises(TableNotFound, match=r"begins with none of PyIceberg's catalogs \(lake\): .* spark= "):
        sec.open_table("prod.db.events")


def test_an_unknown_kind_of_uri() -> None:
    with pytest.raises(TableNotFound, match="cannot open gopher://lake"):
        sec.open_table("gopher://lake")


def test_an_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound, match="holds no Parquet file"):
        sec.prune(sec.open_table(str(tmp_path)), "a = 1")


def test_a_glob_that_no_name_matches(root: Path) -> None:
    table = sec.open_table(str(root), glob="*.parq")
    for asked in (lambda: sec.prune(table, "user_id = 1"), lambda: sec.build_index(table)):
        with pytest.raises(TableNotFound, match=r"holds no Parquet file whose name matches '\*\.parq'$"):
            asked()


def not_parquet(root: Path) -> None:
    (root / "note.txt").write_text("a note among the data, long enough to have a tail")


def truncated(root: Path) -> None:
    data = (root / "rows.parquet").read_bytes()
    (root / "half.parquet").write_bytes(data[: len(data) // 2])


def empty(root: Path) -> None:
    (root / "empty.parquet").write_bytes(b"")


def test_an_empty_file_is_left_out_as_in_spark(spark: SparkSession, root: Path) -> None:
    empty(root)
    expected = sorted(row.user_id for row in spark.read.parquet(str(root)).select("user_id").collect())
    assert sorted(sec.prune(str(root), "user_id >= 0").to_arrow()["user_id"].to_pylist()) == expected


@pytest.mark.parametrize(("harm", "name"), [(not_parquet, "note.txt"), (truncated, "half.parquet")])
def test_broken_data_files(spark: SparkSession, root: Path, harm: Callable[[Path], None], name: str) -> None:
    """They are data, not index: never passed over in silence, by a query or a build."""
    harm(root)
    table = sec.open_table(str(root))
    with pytest.raises(InvalidParquet, match=name):
        sec.prune(table, "user_id = 1")
    with pytest.raises(InvalidParquet, match=name):
        sec.build_index(table, spark=spark)
    assert not list((root / "_secateur" / "segments").iterdir())


def test_files_whose_columns_no_type_holds(root: Path) -> None:
    pq.write_table(pa.table({"user_id": ["one"]}), root / "words.parquet")
    with pytest.raises(IncompatibleSchemas, match=r"words\.parquet has column user_id as string, other files as int64"):
        sec.prune(sec.open_table(str(root)), "name = 'a'")


def test_directories_that_name_different_partition_columns(tmp_path: Path) -> None:
    for folder in ("a=1", "b=2"):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"x": [1]}), tmp_path / folder / "rows.parquet")
    with pytest.raises(IncompatibleSchemas, match="conflicting partition columns in the directory names: a; b"):
        sec.prune(sec.open_table(str(tmp_path)), "x = 1")


def test_an_index_directory_that_cannot_be_written(spark: SparkSession, root: Path) -> None:
    (root / "_secateur").write_text("a file where the directory should be")
    with pytest.raises(IndexNotWritable, match="index_location="):
        sec.build_index(sec.open_table(str(root)), spark=spark)
    assert sec.prune(sec.open_table(str(root)), "user_id = 2").count() == 1


@pytest.mark.parametrize("argument", ["sort_key", "bloom", "gaps", "auto"])
def test_one_text_is_no_list_of_columns(table: ParquetDirectory, argument: str) -> None:
    with pytest.raises(InvalidOption, match=r"write a list of columns: \['day'\]"):
        sec.build_index(table, **{argument: "day"})


@pytest.mark.parametrize("argument", ["bloom", "postings", "gaps", "sums", "sort_key"])
def test_a_partition_column_needs_no_index(tmp_path: Path, argument: str) -> None:
    write_file(tmp_path / "Region=7" / "a.parquet", {"id": [1, 2]})
    with pytest.raises(InvalidOption, match="region is a partition column, of which a file has one value"):
        sec.build_index(sec.open_table(tmp_path), **{argument: ["region"]})


def test_columns_to_index(spark: SparkSession, table: ParquetDirectory) -> None:
    with pytest.raises(UnknownColumn, match="did you mean user_id"):
        sec.build_index(table, spark=spark, bloom=["userid"])
    with pytest.raises(UnknownColumn, match="did you mean day"):
        sec.build_index(table, spark=spark, sort_key=["dya"])
    assert sec.prune(table, "user_id = 1").report.index == "none"


def test_read_paths_and_formats(spark: SparkSession, table: ParquetDirectory) -> None:
    plan = sec.prune(table, "user_id = 1")
    with pytest.raises(ValueError, match="via is one of auto, local, blocks, native, iceberg, not 'bus'"):
        plan.to_spark(spark, via="bus")
    with pytest.raises(ValueError, match="'text' or 'json', not 'xml'"):
        plan.explain("xml")


def test_one_text_is_no_list_of_values_nor_of_columns_to_read(root: Path) -> None:
    """Its characters would be the values: `isin` would ask for other rows, and find none."""
    with pytest.raises(InvalidPredicate, match=r"'ab' is one value; write a list of values: \['ab'\]"):
        sec.col("name").isin("ab")
    with pytest.raises(InvalidOption, match=r"'day' is one text; write a list of columns: \['day'\]"):
        sec.prune(str(root), "true").to_arrow(columns="day")


def test_none_is_no_table() -> None:
    with pytest.raises(InvalidOption, match="None is no table: name one by"):
        sec.open_table(None)  # type: ignore[arg-type]


def test_aggregates_that_cannot_be_parsed(root: Path) -> None:
    with pytest.raises(InvalidAggregate, match=r"cannot parse the aggregates 'count\(\*': Expecting \)$"):
        sec.aggregate(str(root), "count(*")
