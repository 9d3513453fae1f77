"""Law: queries of TPC-DS on Iceberg tables have the same answers in a session with ``sec.enable`` as without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import secateur as sec
from tests.support import tpcds
from tests.support.enabled_session import enabled, require_same
from tests.support.formats.iceberg_spark import metadata_file
from tests.support.profiles import by_profile, slow

pytestmark = slow
EVERY = by_profile(20, 3, 1)  # of the 99 queries
SMALL = "'write.parquet.row-group-size-bytes'='1', 'write.parquet.row-group-check-min-record-count'='500'"


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory, iceberg: SparkSession) -> Iterator[dict[int, str]]:
    """All tables at scale factor 0.01, indexed, in small row groups, the sales with rows deleted by position."""
    generator = tpcds.generator()
    if generator.python is None:
        pytest.skip(generator.reason)
    made = tmp_path_factory.mktemp("tpcds")
    generator.generate(0.01, made)
    names = [path.stem for path in sorted(made.glob("*.parquet"))]
    for name in names:
        iceberg.sql(
            f"CREATE TABLE lake.tpcds.{name} USING iceberg TBLPROPERTIES ('format-version'='2', "
            f"'write.delete.mode'='merge-on-read', {SMALL}) AS SELECT * FROM parquet.`{made / name}.parquet`"
        )
        if name.endswith("_sales"):
            iceberg.sql(f"DELETE FROM lake.tpcds.{name} WHERE {name[0]}s_quantity % 50 = 0")
        sec.build_index(sec.open_table(metadata_file(iceberg, f"lake.tpcds.{name}")))
        iceberg.table(f"lake.tpcds.{name}").createOrReplaceTempView(name)
    with enabled(iceberg):
        yield tpcds.queries(made)
    for name in names:
        iceberg.catalog.dropTempView(name)
        iceberg.sql(f"DROP TABLE lake.tpcds.{name}")


@pytest.mark.parametrize("number", range(1, 100, EVERY))
def test_answers_are_those_without(iceberg: SparkSession, queries: dict[int, str], number: int) -> None:
    require_same(iceberg, queries[number])
