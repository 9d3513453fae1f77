"""Delta tables that Delta's own Spark writer writes, with random histories: what is read is what its reader reads."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import StalePlan, UnsupportedTable
from tests.support.checks import oracle
from tests.support.profiles import by_profile

SEEDS = by_profile(quick=range(1), full=range(8), nightly=range(60))
STEPS = by_profile(quick=3, full=5, nightly=5)
PREDICATES = (  # which DuckDB reads as Spark does
    "true",
    "rid % 3 = 0",
    "rid BETWEEN 10 AND 25",
    "k IS NULL OR k = 3",
    "NOT (k > 2)",
    "s LIKE 'a%' AND rid < 40",
    "x > 1.5",
    "p = 'b c' OR rid = 7",
)
ROWS = """
    SELECT id AS rid,
        CAST(element_at(array(-1, 0, 1, 2, 3, 5, NULL), CAST(1 + (id * 7 + {salt}) % 7 AS INT)) AS INT) AS k,
        element_at(array('', 'a', 'a/b=c', repeat('a', 80), NULL), CAST(1 + (id * 3 + {salt}) % 5 AS INT)) AS s,
        CAST(element_at(array('NaN', '-0.0', '0.0', '1.5', '2.5', NULL), CAST(1 + (id * 5 + {salt}) % 6 AS INT))
            AS DOUBLE) AS x,
        element_at(array('one', 'b c', 'a/b=c%', NULL), CAST(1 + (id + {salt}) % 4 AS INT)) AS p
    FROM range({start}, {stop}, 1, 2)
"""


class History:
    """A table that Delta's own writer writes, by SQL."""

    def __init__(self, spark: SparkSession, path: str, seed: int) -> None:
        self.spark, self.path, self.draw, self.rid, self.columns = spark, path, random.Random(seed), 0, 0
        self.log = [f"seed {seed}"]
        vectors, mapped = seed % 2 == 0, seed % 2 == 1
        options = {
            "delta.enableDeletionVectors": str(vectors).lower(),
            "delta.columnMapping.mode": "name" if mapped else "none",
            "delta.checkpointInterval": "3",
        }
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
        by = self.draw.choice(["", "PARTITIONED BY (p)"])
        self.run(f"CREATE TABLE {{t}} USING delta {by} TBLPROPERTIES ({properties}) AS {self.rows(30)}")

    def run(self, sql: str) -> None:
        self.spark.sql(sql.replace("{t}", f"delta.`{self.path}`"))

    def rows(self, n: int) -> str:
        self.rid += n
        return ROWS.format(salt=self.draw.randrange(50), start=self.rid - n, stop=self.rid)

    def append(self) -> None:
        more = ", ".join(["*", *(f"rid AS c{i}" for i in range(self.columns))])
        self.run(f"INSERT INTO {{t}} SELECT {more} FROM ({self.rows(self.draw.choice([3, 20]))})")

    def evolve(self) -> None:
        self.run(f"ALTER TABLE {{t}} ADD COLUMNS (c{self.columns} BIGINT)")
        self.columns += 1

    def delete(self) -> None:
        self.run(f"DELETE FROM {{t}} WHERE {self.draw.choice(['rid % 5 = 0', f'rid > {self.rid - 4}', 'k = 3'])}")

    def update(self) -> None:
        self.run("UPDATE {t} SET k = 5 WHERE rid % 4 = 1")

    def merge(self) -> None:
        self.rid += 3
        self.run(
            f"MERGE INTO {{t}} t USING (SELECT id FROM range({self.rid - 8}, {self.rid})) u ON t.rid = u.id "
            "WHEN MATCHED THEN UPDATE SET k = 2 WHEN NOT MATCHED THEN INSERT (rid, s) VALUES (u.id, 'merged')"
        )

    def optimize(self) -> None:
        self.run(f"OPTIMIZE {{t}} {self.draw.choice(['', 'ZORDER BY (rid, k)'])}")

    def restore(self) -> None:
        self.run(f"RESTORE TABLE {{t}} TO VERSION AS OF {self.version - 1}")

    @property
    def version(self) -> int:
        history = self.spark.sql(f"DESCRIBE HISTORY delta.`{self.path}` LIMIT 1").collect()
        return int(history[0]["version"])

    def step(self) -> None:
        name = self.draw.choice(["append", "append", "delete", "delete", "update", "merge", "optimize", "evolve"])
        self.log.append(name)
        getattr(self, name)()

    def read(self, version: int | None = None) -> pa.Table:
        """The table as Delta's own reader has it."""
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(self.path).toArrow()


def agrees(handle: Any, model: pa.Table, about: object) -> None:
    for predicate in PREDICATES:
        expected = oracle.rows(duckdb.from_arrow(model).filter(predicate).to_arrow_table())
        plan = sec.prune(handle, predicate, strict=True)
        read = plan.to_arrow()
        assert read.schema.names == model.schema.names
        lost, more = expected - oracle.rows(read), oracle.rows(read) - expected
        assert not lost | more, (predicate, f"{lost=}, {more=}", about, plan.explain())
        assert plan.count() == expected.total(), (predicate, about)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_state_is_read_as_delta_reads_it(delta: SparkSession, tmp_path: Path, seed: int) -> None:
    """Without an index, and with one that is kept in order; in Spark; now and in the past."""
    path = str(tmp_path / "table")
    history = History(delta, path, seed)
    kept = sec.open_table(path, index_location=str(tmp_path / "index"))
    sec.build_index(kept, bloom=["rid", "s"], sort_key=["k"])
    past = history.read()
    for step in range(STEPS):
        history.step()
        if step % 3 == 0:
            agrees(kept, history.read(), history.log)  # with an index that does not know the step
            sec.refresh_index(kept)
    history.restore()
    now = history.read()
    for handle in (kept, sec.open_table(path)):
        agrees(handle, now, history.log)
    agrees(sec.open_table(path, version=0), past, history.log)
    for via in ("local", "blocks"):
        plan = sec.prune(kept, "rid % 3 = 0", strict=True)
        expected = duckdb.from_arrow(now).filter("rid % 3 = 0").to_arrow_table()
        assert oracle.rows(plan.to_spark(delta, via=via).toArrow()) == oracle.rows(expected), (via, history.log)


def test_by_name_and_while_files_are_vacuumed(delta: SparkSession, tmp_path: Path) -> None:
    delta.sql(f"CREATE TABLE by_name USING delta LOCATION '{tmp_path}/t' AS SELECT id FROM range(0, 20, 1, 2)")
    delta.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        table = sec.open_table("by_name", spark=delta)
        plan = sec.prune(table, "id > 3")
        delta.sql("OPTIMIZE by_name")
        delta.sql("VACUUM by_name RETAIN 0 HOURS")
        with pytest.raises(StalePlan, match="vanished"):
            plan.to_arrow()
        assert sec.prune(table, "id > 3").count() == 16
        assert (
            sec.prune(sec.open_table("spark_catalog.default.by_name", spark=delta, version=1), "id > 3").count() == 16
        )
    finally:
        delta.sql("DROP TABLE by_name")


def test_dataframes_in_the_place_of_tables(delta: SparkSession, tmp_path: Path) -> None:
    """By path and by name, now and at a version; what is no whole table is refused."""
    path = f"{tmp_path}/a b%20c"
    rows = ROWS.format(salt=1, start=0, stop=30)
    delta.sql(f"CREATE TABLE framed USING delta PARTITIONED BY (p) LOCATION '{path}' AS {rows}")
    try:
        frame = delta.read.format("delta").load(path)
        sec.build_index(frame, bloom=["rid"])
        delta.sql("DELETE FROM framed WHERE rid < 5")
        for table in (frame, delta.table("framed").alias("f"), delta.sql("SELECT * FROM framed")):
            agrees(table, delta.table("framed").toArrow(), "now")
        past = delta.read.option("versionAsOf", 0).table("framed")
        agrees(past, past.toArrow(), "past")
        agrees(delta.sql("SELECT * FROM framed VERSION AS OF 0"), past.toArrow(), "past")
        sec.enable(delta, [frame])
        with pytest.raises(TypeError, match="newest version"):
            sec.enable(delta, [past])
        for other in (frame.where("rid = 1"), delta.read.format("delta").load(f"{path}/p=one")):
            with pytest.raises(UnsupportedTable, match=r"Filter|some partitions"):
                sec.prune(other, "true")
        delta.sql("ALTER TABLE framed ADD COLUMNS (more INT)")
        with pytest.raises(UnsupportedTable, match=r"where the table has .*more"):
            sec.prune(frame, "true")
    finally:
        sec.disable(delta)
        delta.sql("DROP TABLE framed")
