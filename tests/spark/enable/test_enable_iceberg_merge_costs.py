"""What the keys of a MERGE may cost: how often its source is run, and how many keys are collected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.enabled_session import SWITCH, reasons
from tests.support.merged_tables import (
    TABLE,
    TWIN,
    UPDATE,
    change,
    merge,
    merged_tables,
    narrowed,
    require_twins,
    reset,
    row_groups_left,
)
from tests.support.profiles import one_in

ROWS = 30_000  # of a source; far more than the target's
LARGE = 400  # bytes of a row that no codec makes fewer: more than 10 MiB in all
MOST_KEYS = 1 << 18


MODES = ["merge-on-read", "copy-on-write"]


@pytest.fixture(scope="module", params=MODES)
def mode(iceberg: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    with merged_tables(iceberg, request.param):
        yield request.param


def write_source(spark: SparkSession, path: Path, bytes_of_a_row: int) -> None:
    """The view ``written``: a file of rows of which ten have a partner."""
    drawn = np.random.default_rng(0).integers(97, 123, ROWS * bytes_of_a_row, np.uint8).tobytes().decode()
    names = [drawn[i * bytes_of_a_row : (i + 1) * bytes_of_a_row] for i in range(ROWS)]
    rows = pa.table({"id": np.arange(ROWS) + 10 - ROWS, "name": names})
    pq.write_table(rows, path, compression="none", use_dictionary=False)
    spark.read.parquet(str(path)).createOrReplaceTempView("written")


def rows_read(spark: SparkSession) -> dict[int, int]:
    """How many rows every stage that Spark remembers has read from files."""
    context, java = spark._jsc.sc(), spark._jvm.java.util
    context.listenerBus().waitUntilEmpty()
    no_quantiles = spark.sparkContext._gateway.new_array(spark._jvm.double, 0)
    stages = context.statusStore().stageList(java.ArrayList(), False, False, no_quantiles, java.ArrayList())
    every = [stages.apply(i) for i in range(stages.length())]
    return {stage.stageId(): stage.inputRecords() for stage in every}


def runs(spark: SparkSession, statement: str) -> int:
    """How often a statement reads the rows of the source, which are many more than the target's."""
    before = rows_read(spark)
    spark.sql(statement)
    return sum(rows for stage, rows in rows_read(spark).items() if stage not in before) // ROWS


@pytest.mark.parametrize("bytes_of_a_row", one_in(2, [LARGE, 4]))
def test_a_source_larger_than_its_target_is_not_run_for_its_keys(
    iceberg: SparkSession, mode: str, tmp_path: Path, bytes_of_a_row: int
) -> None:
    """Spark runs a source once, and once more where files are written anew: to see which ones."""
    write_source(iceberg, tmp_path / "source.parquet", bytes_of_a_row)
    reset(iceberg)
    narrowed(iceberg).clear()
    statement = merge("written", UPDATE)
    with_keys, left = runs(iceberg, statement.format(TABLE)), row_groups_left(iceberg)
    iceberg.conf.set(SWITCH, "false")
    try:
        without = runs(iceberg, statement.format(TWIN))
    finally:
        iceberg.conf.unset(SWITCH)
    require_twins(iceberg, statement)
    assert without == (1 if mode == "merge-on-read" else 2)
    if bytes_of_a_row == LARGE:
        assert (with_keys, left) == (without, None)
        assert reasons(iceberg)[-1] == "the source has more bytes to read than the target"
    else:
        assert (with_keys, left) == (without + 1, 1)


@pytest.mark.parametrize("mode", one_in(2, MODES), indirect=True)
@pytest.mark.parametrize(("keys", "left"), [(MOST_KEYS, 1), (MOST_KEYS + 1, None)])
def test_more_keys_than_the_driver_collects(iceberg: SparkSession, mode: str, keys: int, left: int | None) -> None:
    """The first ones of them would lose the rows of the others."""
    many = f"(SELECT {1995 + keys} - id AS id, 'many' AS name FROM range({keys}) WHERE id > -1)"
    assert change(iceberg, merge(many, UPDATE)) == left
    if left is None:
        assert reasons(iceberg)[-1] == "a source has more than 262,144 keys: the driver does not collect them"
