"""Pruning against Spark, on random tables and predicates: the laws of :mod:`laws` hold for all of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import arro3.io
import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from hypothesis import event, given
from hypothesis import strategies as st

from secateur.io.spark.file_reader import spark_schema
from secateur.values.kinds import Kind, kind_of
from tests.support.checks.laws import check_source, check_table
from tests.support.drawn.strategies import KINDS, ZONES, FileSpec, TableSpec, predicates, table_specs
from tests.support.profiles import examples, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREDICATES = some(30)  # per table, evaluated by Spark in one query
READ_PATHS = 4  # predicates per table whose rows take every read path


@dataclass(frozen=True, repr=False)
class Case:
    """A table, predicates on it, the session's time zone and whether it is in ANSI mode, and a limit."""

    spec: TableSpec
    predicates: list[str]
    zone: str
    ansi: bool
    limit: int
    structures: str

    def __repr__(self) -> str:  # short: what fails is named by the assertion
        mode = "" if self.ansi else " without ANSI"
        return f"<a table of {len(self.spec.files)} files in {self.zone}{mode}>"


@st.composite
def cases(draw: st.DrawFn, specs: st.SearchStrategy[TableSpec]) -> Case:
    spec = draw(specs)
    texts = draw(st.lists(predicates(spec), min_size=PREDICATES, max_size=PREDICATES, unique=True))
    zone, ansi = draw(st.sampled_from(ZONES)), draw(st.sampled_from([True, True, False]))
    return Case(spec, texts, zone, ansi, draw(st.integers(0, 30)), draw(st.sampled_from(STRUCTURES)))


STRUCTURES = ["bloom", "native", "postings", "ordered", "texts and gaps", "auto"]


def structures(case: Case) -> dict[str, Any]:
    """What a build is asked for, of all columns that can have it."""
    names = [kind.sql for kind in case.spec.kinds]
    texts = [kind.sql for kind in case.spec.kinds if kind.type == pa.string()]
    match case.structures:
        case "native":
            return {"bloom": dict.fromkeys(names, "native"), "tokens": texts}
        case "postings":
            return {"postings": names}
        case "ordered":
            return {"postings": {kind.sql: "ordered" for kind in case.spec.kinds if kind_of(kind.type) is not None}}
        case "texts and gaps":
            gaps = [kind.sql for kind in case.spec.kinds if kind_of(kind.type) is Kind.WORD]
            return {"ngram": {name: {"n": 2, "fold": True} for name in texts}, "tokens": texts, "gaps": gaps}
        case "auto":
            return {"auto": True, "ngram": dict.fromkeys(texts, 2)}
        case _:
            return {"bloom": names, "ngram": dict.fromkeys(texts, 3)}


Write = Callable[[FileSpec, Path], None]


def write_with_pyarrow(file: FileSpec, path: Path) -> None:
    pq.write_table(file.data, path, **file.options)


@examples(10, shrink=False)
@given(case=cases(table_specs()))
def test_plans_are_right_on_random_tables(spark: SparkSession, case: Case) -> None:
    """Pages, structures for look-ups on every column, and segments of a few blocks under a tree."""
    check_case(spark, case, write_with_pyarrow)


def check_case(spark: SparkSession, case: Case, write: Write) -> None:
    spark.conf.set("spark.sql.session.timeZone", case.zone)
    spark.conf.set("spark.sql.ansi.enabled", str(case.ansi).lower())
    try:
        check_written(spark, case, write)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def check_written(spark: SparkSession, case: Case, write: Write) -> None:
    with tempfile.TemporaryDirectory(prefix="secateur-") as folder:
        root = case.spec.write(Path(folder) / "lake", write)
        # data columns by their types, partition columns as Spark infers them
        frame = spark.read.schema(spark_schema(case.spec.schema)).parquet(str(root))
        names = [kind.sql for kind in case.spec.kinds]
        build = {"sort_key": names[:1], "fpr": 0.2, "segment_blocks": 3, **structures(case)}
        answers = check_table(
            spark,
            root,
            case.predicates,
            frame=frame,
            limit=case.limit,
            read_paths=READ_PATHS,
            build=build,
            ansi=case.ansi,
        )
        texts = [text for text in answers.truth if text != "NULL"][: READ_PATHS // 2]
        if texts and case.ansi:  # the data source plans in processes that have no session
            check_source(spark, root, texts, answers)
        event(f"{len(answers.truth) * 10 // len(case.predicates) * 10} % of the predicates evaluate")


# ---- files of other writers ------------------------------------------------------------------------------------------


def write_with_polars(file: FileSpec, path: Path) -> None:
    pl.from_arrow(file.data).write_parquet(path, row_group_size=7, statistics="full")


def write_with_duckdb(file: FileSpec, path: Path) -> None:
    rows = file.data  # noqa: F841, found by name
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"COPY (SELECT * FROM rows) TO '{path}' (FORMAT parquet)")


def write_with_arrow_rs(file: FileSpec, path: Path) -> None:
    arro3.io.write_parquet(file.data, str(path), max_row_group_size=7)


def write_with_datafusion(file: FileSpec, path: Path) -> None:
    if not len(file.data):  # of which it writes no file
        return write_with_arrow_rs(file, path)
    return write_to_folder(lambda folder: SessionContext().from_arrow(file.data).write_parquet(folder), path)


def write_with_delta_rs(file: FileSpec, path: Path) -> None:
    if not len(file.data) or "uint64" in str(file.data.schema):  # no file, and no such type
        return write_with_arrow_rs(file, path)
    return write_to_folder(lambda folder: deltalake.write_deltalake(folder, file.data), path)


def write_to_folder(write: Callable[[str], object], path: Path) -> None:
    """The one file that a writer of tables leaves in a folder."""
    with tempfile.TemporaryDirectory(prefix="secateur-") as folder:
        write(f"{folder}/table")
        (part,) = Path(folder).rglob("*.parquet")
        shutil.move(part, path)


def write_with_spark(spark: SparkSession, file: FileSpec, path: Path) -> None:
    rows = spark.createDataFrame(file.data, spark_schema(file.data.schema))
    write_to_folder(lambda folder: rows.coalesce(1).write.parquet(folder), path)


# Other writers have no type for the extremes, and write Arrow's narrower types in their own way.
COMMON = [kind for kind in KINDS if not kind.name.startswith("far")]
common_tables = table_specs(COMMON, widened=False)
of_spark = table_specs([kind for kind in COMMON if kind.name != "unsigned"], widened=False)
tables_with_instants = of_spark.filter(lambda spec: any(kind.name == "ts" for kind in spec.kinds + spec.nested))


OTHERS = [write_with_polars, write_with_duckdb, write_with_arrow_rs, write_with_datafusion, write_with_delta_rs]


@examples(18, shrink=False)
@given(case=cases(common_tables), first=st.integers(0, 4))
def test_plans_are_right_on_files_of_other_writers(spark: SparkSession, case: Case, first: int) -> None:
    """Every file of a table is of another one."""
    writers = {file.path: OTHERS[(first + i) % len(OTHERS)] for i, file in enumerate(case.spec.files)}
    check_case(spark, case, lambda file, path: writers[file.path](file, path))


@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_c20_plans_are_right_on_files_of_spark(spark: SparkSession, timestamps: str) -> None:
    """INT96 has no statistics, and is an instant though it names no zone."""

    @examples(2, shrink=False)
    @given(case=cases(tables_with_instants))
    def check(case: Case) -> None:
        check_case(spark, case, lambda file, path: write_with_spark(spark, file, path))

    spark.conf.set("spark.sql.parquet.outputTimestampType", timestamps)
    try:
        check()
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
