"""What Spark 3.5 has otherwise than Spark 4: ANSI mode is off by default, and some roads are missing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.io.spark.version import IS_3
from tests.support.checks.laws import check_table
from tests.support.enabled_session import enabled, pruning, require_same
from tests.support.formats.iceberg_spark import metadata_file
from tests.support.tables import WriteTable

pytestmark = pytest.mark.skipif(not IS_3, reason="about Spark 3.5")

PREDICATES = [
    "i + 1 < 0",  # wraps around
    "CAST(s AS INT) = 3",
    "CAST(s AS INT) IS NULL",
    "10 / (i - 3) > 1",
    "i / 0 IS NULL",
    "CAST(i AS TINYINT) = 4",
    "i IN (3, NULL)",
    "NOT (i = 3 AND s > '1')",
    "upper(s) = 'B' OR i < 2",
    "size(NULL) = -1 AND i < 3",
    "abs(i) < 0",
    "s < 2",
]


def test_answers_without_ansi_mode(spark: SparkSession, write_table: WriteTable) -> None:
    """It is off unless somebody sets it, and plans ask the session."""
    assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    numbers = [0, 1, 3, 4, 5, 260, 2**31 - 1, -(2**31), None, -1]
    texts = ["1", "3", "x", "", None, "b", " 3 ", "3.9", "10", "99999999999"]
    rows = {"rid": pa.array(range(10)), "i": pa.array(numbers, pa.int32()), "s": pa.array(texts)}
    root = write_table({"part.parquet": pa.table(rows)}, row_group_size=2)
    answers = check_table(spark, root, PREDICATES, build={"bloom": ["i", "s"]}, read_paths=len(PREDICATES))
    assert set(answers.truth) == set(PREDICATES)
    assert not sec.prune(sec.open_table(str(root)), "i = 3").ansi


def test_the_format_is_refused_with_what_to_use_instead() -> None:
    sys.modules.pop("pyspark_secateur", None)
    with pytest.raises(ImportError, match=r"needs Spark 4\.0 or newer.*sec\.dataframe"):
        importlib.import_module("pyspark_secateur")


@pytest.fixture
def numbers(iceberg: SparkSession) -> Iterator[str]:
    iceberg.sql(
        "CREATE TABLE lake.db.numbers USING iceberg TBLPROPERTIES ('write.parquet.row-group-size-bytes'='100', "
        "'write.parquet.row-group-check-min-record-count'='10', 'write.parquet.row-group-check-max-record-count'='10') "
        "AS SELECT /*+ COALESCE(1) */ id FROM range(100)"
    )
    yield "lake.db.numbers"
    iceberg.sql("DROP TABLE lake.db.numbers")


def test_scans_of_iceberg_are_pruned(iceberg: SparkSession, numbers: str) -> None:
    sec.build_index(sec.open_table(metadata_file(iceberg, numbers)), spark=iceberg)
    with enabled(iceberg) as session:
        query = f"SELECT id FROM {numbers} WHERE id = 7"
        require_same(session, query)
        assert pruning(session.sql(query)) == ["1 of 5"]


def test_a_plan_of_an_iceberg_table_is_read_by_iceberg(iceberg: SparkSession, numbers: str, tmp_path: Path) -> None:
    plan = sec.prune(sec.open_table(metadata_file(iceberg, numbers)), "id = 7")
    frame = plan.to_spark(iceberg, via="iceberg")
    iceberg.sql(f"INSERT INTO {numbers} VALUES (7)")
    assert [row.id for row in frame.collect()] == [7]
