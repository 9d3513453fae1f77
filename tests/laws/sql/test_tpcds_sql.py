"""Law: queries of TPC-DS have the same answers in a session with ``sec.enable`` as without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from tests.support import tpcds
from tests.support.enabled_session import enabled, require_same
from tests.support.profiles import by_profile

ROWS = 500  # of a row group
EVERY = by_profile(20, 2, 1)  # of the 99 queries


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[dict[int, str]]:
    """All tables at scale factor 0.01, indexed, in small row groups."""
    generator = tpcds.generator()
    if generator.python is None:
        pytest.skip(generator.reason)
    root: Path = tmp_path_factory.mktemp("tpcds")
    (root / "made").mkdir()
    generator.generate(0.01, root / "made")
    for path in (root / "made").glob("*.parquet"):
        data = pq.read_table(path)
        (root / path.stem).mkdir()
        pq.write_table(data, root / path.stem / "a.parquet", row_group_size=ROWS)
        sec.build_index(sec.open_table(str(root / path.stem)), sort_key=data.column_names[:1])
        spark.read.parquet(str(root / path.stem)).createOrReplaceTempView(path.stem)
    with enabled(spark):
        yield tpcds.queries(root / "made")


@pytest.mark.parametrize("number", range(1, 100, EVERY))
def test_answers_are_those_without(spark: SparkSession, queries: dict[int, str], number: int) -> None:
    require_same(spark, queries[number])
