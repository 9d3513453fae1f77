"""Files chosen by a glob: Hadoop says which names match, and Spark's ``pathGlobFilter`` which rows are read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import InvalidOption, TableNotFound, UnsupportedTable
from secateur.io.tables.directory.glob import regex_of
from tests.support.profiles import examples
from tests.support.tables import write_file

GLOBS = st.text(st.sampled_from("ab1.*?[]{},!^-\\|$ç"), max_size=8)
NAMES = st.text(st.sampled_from("ab1.-,!^[]{}|$ç\n"), max_size=6)


@examples(300)
@given(glob=GLOBS, names=st.lists(NAMES, min_size=1, max_size=6))
def test_names_match_as_for_hadoop(spark: SparkSession, glob: str, names: list[str]) -> None:
    jvm: Any = spark._jvm
    try:
        pattern = jvm.org.apache.hadoop.fs.GlobPattern(glob)
    except Exception:
        pattern = None
    try:
        matches = pc.match_substring_regex(pa.array(names), regex_of(glob)).to_pylist()
    except (InvalidOption, pa.ArrowInvalid):
        assert pattern is None
        return
    assert pattern is not None
    assert matches == [pattern.matches(name) for name in names]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Partitions in a tree, a foreign file in one of them, and an index of the Parquet files."""
    root = tmp_path_factory.mktemp("glob") / "lake"
    for number in range(6):
        ids = list(range(10 * number, 10 * number + 10))
        write_file(root / f"day={number // 2}" / f"part-{number}.parquet", {"id": ids}, row_group_size=5)
    write_file(root / "day=2" / "part-7.old", {"id": [70, 71]})
    (root / "day=x").mkdir()
    (root / "day=x" / "notes.csv").write_text("id\n7\n")
    sec.build_index(sec.open_table(str(root), glob="*.parquet"), bloom=["id"])
    return str(root)


@pytest.mark.parametrize(
    "glob", ["*.parquet", "part-[!0-2].{parquet,old}", "part-?.*", "part-*[15].parquet", "*.orc", "day=0"]
)
def test_rows_are_those_of_spark(spark: SparkSession, lake: str, glob: str) -> None:
    predicate = "id % 10 < 7 AND id > 3"
    if glob in ("*.orc", "day=0"):  # Spark says that it finds no schema
        with pytest.raises(Exception, match="infer schema"):
            spark.read.option("pathGlobFilter", glob).parquet(lake)
        with pytest.raises(TableNotFound, match="holds no Parquet file"):
            sec.prune(lake, "true", glob=glob)
        return
    asked = spark.read.option("pathGlobFilter", glob).parquet(lake)
    expected = sorted(map(tuple, asked.where(predicate).collect()))
    plan = sec.prune(lake, predicate, glob=glob)
    table = sec.open_table(lake, glob=glob)
    frames = [plan.to_spark(spark, via=path) for path in ("blocks", "native")]
    frames += [sec.dataframe(spark, table).where(predicate)]
    by_source = spark.read.format("secateur")
    frames += [by_source.option(name, glob).load(lake).where(predicate) for name in ("glob", "pathGlobFilter")]
    for frame in frames:
        assert frame.schema == asked.schema
        assert sorted(map(tuple, frame.collect())) == expected


@pytest.mark.parametrize("glob", ["*[24]*", "part-{4,7}.*", "part-{4, x=7}.*", "*"])
def test_a_catalogs_table_whose_options_choose_files(spark: SparkSession, lake: str, glob: str) -> None:
    options = f"compression 'snappy', pathGlobFilter '{glob}', another 'x'"
    spark.sql(f"CREATE TABLE globbed (id BIGINT) USING parquet OPTIONS ({options}) LOCATION '{lake}/day=2'")
    try:
        expected = spark.table("globbed").where("id % 3 = 1").collect()
        table = sec.open_table("globbed", spark=spark)
        assert table.glob == glob
        plan = sec.prune(table, "id % 3 = 1")
        assert sorted(plan.to_arrow()["id"].to_pylist()) == sorted(row.id for row in expected)
        assert plan.to_spark(spark).count() == len(expected)
    finally:
        spark.sql("DROP TABLE globbed")


def test_a_catalogs_table_with_an_option_that_is_not_read_is_refused(spark: SparkSession, lake: str) -> None:
    options = "modifiedAfter '2020-01-01', pathGlobFilter '*'"
    spark.sql(f"CREATE TABLE globbed (id BIGINT) USING parquet OPTIONS ({options}) LOCATION '{lake}/day=2'")
    try:
        with pytest.raises(UnsupportedTable, match="has the option modifiedAfter"):
            sec.open_table("globbed", spark=spark)
    finally:
        spark.sql("DROP TABLE globbed")
