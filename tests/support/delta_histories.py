"""Random histories of Delta tables, written by Delta's own library for Spark."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from tests.support.iceberg_histories import a_value

COLUMNS = (
    "rid BIGINT, k INT, s STRING, f FLOAT, d DOUBLE, amount DECIMAL(9, 2), ts TIMESTAMP, local TIMESTAMP_NTZ, "
    "day DATE, data BINARY, nested STRUCT<x: INT, y: STRING>, tags ARRAY<STRING>, marks MAP<STRING, INT>"
)
ADDED = ["INT", "STRING", "FLOAT", "DECIMAL(5, 1)", "DATE"]
WIDER = {
    "int": ["BIGINT", "DOUBLE"],
    "float": ["DOUBLE"],
    "decimal(9,2)": ["DECIMAL(18, 2)"],
    "date": ["TIMESTAMP_NTZ"],
}
PARTITIONS = ["", "", "s", "k", "day", "ts", "amount, k"]


@dataclass
class DeltaHistory:
    """A table, and what happened to it."""

    spark: SparkSession
    path: str
    draw: random.Random
    partitioned: str
    rid: int = 0
    count: int = 0
    log: list[str] = field(default_factory=list)

    @staticmethod
    def begin(spark: SparkSession, path: str, seed: int) -> DeltaHistory:
        """A table with deletion vectors, or without; with column mapping, or without; partitioned, or not."""
        draw = random.Random(seed)
        made = DeltaHistory(spark, path, draw, draw.choice(PARTITIONS))
        properties = {
            "delta.enableDeletionVectors": draw.choice(["true", "true", "false"]),
            "delta.columnMapping.mode": draw.choice(["none", "name", "id"]),
            "delta.enableTypeWidening": "true",
            "delta.checkpointInterval": draw.choice(["2", "5", "100"]),
            "delta.checkpointPolicy": draw.choice(["classic", "v2"]),
            "delta.checkpoint.writeStatsAsJson": draw.choice(["true", "true", "false"]),
            "delta.dataSkippingNumIndexedCols": draw.choice(["32", "32", "3"]),
            "delta.randomizeFilePrefixes": draw.choice(["true", "false"]),
        }
        properties["delta.checkpoint.writeStatsAsStruct"] = str(
            properties["delta.checkpoint.writeStatsAsJson"] == "false"
        ).lower()
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        by = f"PARTITIONED BY ({made.partitioned})" if made.partitioned else ""
        made.sql(f"CREATE TABLE delta.`{path}` ({COLUMNS}) USING delta {by} TBLPROPERTIES ({listed})")
        made.is_mapped = properties["delta.columnMapping.mode"] != "none"
        made.insert(20)
        return made

    is_mapped: bool = False

    @property
    def name(self) -> str:
        return f"delta.`{self.path}`"

    @property
    def schema(self) -> t.StructType:
        return self.spark.read.format("delta").load(self.path).schema

    def sql(self, text: str) -> Any:
        """Runs a command, and notes it."""
        self.log.append(text)
        return self.spark.sql(text)

    def step(self) -> None:
        """One thing that happens."""
        steps: list[tuple[Callable[[], None], int]] = [
            (self.insert, 4),
            (self.delete, 4),
            (self.update, 2),
            (self.merge, 2),
            (self.optimize, 1),
            (self.add, 1),
            (self.widen, 2),
            (self.restore, 1),
        ]
        if self.is_mapped:
            steps += [(self.rename, 2), (self.readd, 1)]
        (chosen,) = self.draw.choices([step for step, _ in steps], [weight for _, weight in steps])
        chosen()

    # ---- rows

    def insert(self, n: int = 0) -> None:
        n, schema = n or self.draw.choice([1, 5, 20, 40]), self.schema
        rows = []
        for rid in range(self.rid, self.rid + n):
            values = {each.name: a_value(each.dataType, self.draw, each.name) for each in schema}
            rows.append(tuple({**values, "rid": rid}.values()))
        self.log.append(f"insert rid {self.rid} to {self.rid + n}")
        self.rid += n
        frame = self.spark.createDataFrame(rows, schema).coalesce(1)
        frame.write.format("delta").mode("append").save(self.path)

    def _some(self) -> str:
        """A condition on row ids that holds for some rows of several files."""
        n, within = self.draw.choice([2, 3, 5, 7]), self.draw.randrange(0, max(self.rid, 1))
        return self.draw.choice([f"rid % {n} = 0", f"rid BETWEEN {within} AND {within + 8}"])

    def delete(self) -> None:
        self.sql(f"DELETE FROM {self.name} WHERE {self._some()}")

    def _free(self) -> list[t.StructField]:
        """Columns that neither name rows nor partitions."""
        taken = {"rid", *(part.strip() for part in self.partitioned.split(","))}
        return [each for each in self.schema if each.name not in taken]

    def _set(self, alias: str = "") -> str:
        own = [each for each in self._free() if "<" not in each.dataType.simpleString()]
        column = self.draw.choice(own)
        if column.dataType.simpleString() in ("int", "string") and self.draw.random() < 0.5:
            return f"{column.name} = CAST({alias}rid % 5 AS {column.dataType.simpleString()})"
        return f"{column.name} = NULL"

    def update(self) -> None:
        self.sql(f"UPDATE {self.name} SET {self._set()} WHERE {self._some()}")

    def merge(self) -> None:
        start = self.draw.randrange(0, self.rid + 1)
        self.sql(
            f"MERGE INTO {self.name} t USING (SELECT id AS r FROM range({start}, {start + 30})) u ON t.rid = u.r "
            f"WHEN MATCHED AND u.r % 3 = 0 THEN DELETE WHEN MATCHED AND u.r % 3 = 1 THEN UPDATE SET {self._set('t.')}"
        )

    def optimize(self) -> None:
        order = self.draw.choice(["", " ZORDER BY (rid)"])
        self.sql(f"OPTIMIZE {self.name}{order}")

    def restore(self) -> None:
        version = self.spark.sql(f"DESCRIBE HISTORY {self.name} LIMIT 1").collect()[0][0]
        if version > 3:
            self.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF {version - self.draw.choice([1, 2])}")

    # ---- schema

    def _new_name(self) -> str:
        self.count += 1
        return f"c{self.count}"

    def add(self) -> None:
        self.sql(f"ALTER TABLE {self.name} ADD COLUMN {self._new_name()} {self.draw.choice(ADDED)}")

    def widen(self) -> None:
        for each in self.draw.sample(self._free(), len(self._free())):
            wider = WIDER.get(each.dataType.simpleString())
            if wider is not None:
                self.sql(f"ALTER TABLE {self.name} ALTER COLUMN {each.name} TYPE {self.draw.choice(wider)}")
                return

    def rename(self) -> None:
        if free := self._free():
            self.sql(f"ALTER TABLE {self.name} RENAME COLUMN {self.draw.choice(free).name} TO {self._new_name()}")

    def readd(self) -> None:
        """Drops a column, and adds another of its name."""
        if len(free := self._free()) > 4:
            name = self.draw.choice(free).name
            self.sql(f"ALTER TABLE {self.name} DROP COLUMN {name}")
            self.sql(f"ALTER TABLE {self.name} ADD COLUMN {name} {self.draw.choice(ADDED)}")
