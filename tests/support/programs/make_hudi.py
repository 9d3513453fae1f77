"""Makes `tests/data/hudi/*.zip`: small Hudi tables by Hudi's own Spark writer, with what its reader reads of them.

With Spark 3.5, from the root: ``python -m tests.support.programs.make_hudi``
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import secateur as sec
from secateur.session import local_session
from tests.support.formats.hudi_runtime import CATALOG, hudi_runtime
from tests.support.formats.hudi_tables import ALWAYS_CLUSTERED, ALWAYS_COMPACTED, HudiHistory

DATA = Path(__file__).parents[2] / "data" / "hudi"
EXPECTED = "expected.json"  # rows by instant, and of the base files alone
COLUMNS = ["rid", "s", "v", "p"]
COMMON = {
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.parquet.compression.codec": "gzip",
}


def history_of(spark: SparkSession, path: Path, version: int, kind: str) -> HudiHistory:
    """A table that was inserted into, updated, deleted from, clustered, overwritten; of a newer one, rolled back."""
    settings = {**COMMON, "hoodie.write.table.version": str(version), "hoodie.datasource.write.table.type": kind}
    history = HudiHistory(spark, str(path), settings)
    history.write(history.new(12).select(COLUMNS), "insert")
    history.write(history.known("id % 3 = 1").union(history.new(2)).select(COLUMNS).coalesce(1), "upsert")
    if kind == "MERGE_ON_READ":
        history.write(history.known("id % 5 = 0").select(COLUMNS), "upsert", **ALWAYS_COMPACTED)
        history.write(history.known("id < 3").select(COLUMNS), "upsert")
        return history
    history.write(history.known("id % 5 = 4").select(COLUMNS), "delete")
    history.write(history.new(2).select(COLUMNS), "insert", hoodie_clustering_inline="true", **ALWAYS_CLUSTERED)
    history.write(history.known("id < 3").select(COLUMNS), "upsert")
    if version > 6:  # the procedure would turn an older table into one of the newest version
        history.roll_back(max(instants(history)))
    history.write(history.new(2).select(COLUMNS).where("p = 'one'"), "insert_overwrite")
    return history


def instants(history: HudiHistory) -> list[int]:
    table = sec.open_table(history.path, read_optimized=True)
    known: list[int] = table.snapshot().metadata_tables.snapshots()["snapshot_id"].to_pylist()
    return known


def rows_of(history: HudiHistory, **options: str) -> list[list[Any]]:
    """What Hudi's reader reads."""
    rows = history.read(**options).select(*COLUMNS, "_hoodie_commit_time", "_hoodie_file_name").collect()
    return sorted([list(row) for row in rows])


def main() -> None:
    runtime = hudi_runtime()
    spark = local_session(spark_default_parallelism="1", **runtime.with_settings({})).newSession()
    spark.conf.set(*CATALOG)
    spark.sparkContext.setLogLevel("OFF")
    DATA.mkdir(parents=True, exist_ok=True)
    for name, version, kind in (
        ("cow-6", 6, "COPY_ON_WRITE"),
        ("cow-9", 9, "COPY_ON_WRITE"),
        ("mor-6", 6, "MERGE_ON_READ"),
        ("mor-9", 9, "MERGE_ON_READ"),
    ):
        with tempfile.TemporaryDirectory() as directory:
            history = history_of(spark, Path(directory) / "t", version, kind)
            base = {"hoodie_datasource_query_type": "read_optimized"} if kind == "MERGE_ON_READ" else {}
            expected = {
                str(instant): rows_of(history, as_of_instant=str(instant), **base) for instant in instants(history)
            }
            pack(Path(directory) / "t", DATA / f"{name}.zip", json.dumps({"now": rows_of(history, **base), **expected}))


def pack(table: Path, archive: Path, expected: str) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(table.rglob("*")):
            if path.is_file() and path.suffix != ".crc":
                packed.write(path, path.relative_to(table))
        packed.writestr(EXPECTED, expected)


if __name__ == "__main__":
    main()
