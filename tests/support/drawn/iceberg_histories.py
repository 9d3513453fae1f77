"""Random histories of Iceberg tables, written by Spark and Iceberg's Java API."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from tests.support.formats.iceberg_spark import add_equality_deletes, data_files, java_table

WORDS = ["", "a", "ab", "abc", "b c", "50%", "x+y", "a/b=c", "äöü", "🦊", "zzzz", "a" * 40]
UUIDS = [f"0000000{i}-0000-0000-0000-00000000000{i}" for i in range(4)]
DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
UUID = "code"  # the column of UUIDs, which Spark takes for text
COLUMNS = (
    "rid BIGINT, k INT, s STRING, f FLOAT, d DOUBLE, amount DECIMAL(9, 2), ts TIMESTAMP, local TIMESTAMP_NTZ, "
    "day DATE, data BINARY, nested STRUCT<x: INT, y: STRING>, tags ARRAY<STRING>, marks MAP<STRING, INT>"
)
TRANSFORMS = {
    "int": ["{}", "bucket(3, {})", "truncate(5, {})"],
    "bigint": ["{}", "bucket(3, {})", "truncate(5, {})"],
    "string": ["{}", "bucket(4, {})", "truncate(2, {})"],
    "decimal(9,2)": ["{}", "bucket(2, {})", "truncate(500, {})"],
    "decimal(18,2)": ["{}", "bucket(2, {})", "truncate(500, {})"],
    "timestamp": ["years({})", "days({})", "hours({})"],
    "timestamp_ntz": ["months({})", "days({})"],
    "date": ["{}", "months({})", "bucket(2, {})"],
    "binary": ["bucket(2, {})", "truncate(1, {})"],
}
WIDER = {"int": "BIGINT", "float": "DOUBLE", "decimal(9,2)": "DECIMAL(18, 2)", "decimal(5,1)": "DECIMAL(20, 1)"}
ADDED = ["INT", "STRING", "FLOAT", "DECIMAL(5, 1)", "DATE"]
DEFAULTS: dict[str, Any] = {"INT": 7, "STRING": "as ever", "FLOAT": None, "DECIMAL(5, 1)": None, "DATE": None}
KEYS = (t.IntegerType, t.LongType, t.StringType, t.DateType)  # that equality deletes are by
SMALL_ROW_GROUPS = {
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    "write.parquet.row-group-size-bytes": "1024",
    "write.parquet.row-group-check-min-record-count": "8",
    "write.parquet.row-group-check-max-record-count": "8",
}


def a_value(type_: t.DataType, draw: random.Random, name: str = "") -> Any:
    """A value of a type, from a few, so that values meet again; NULL now and then."""
    if draw.random() < 0.15:
        return None
    match type_:
        case t.IntegerType():
            return draw.choice([-(2**31), -7, -1, 0, 1, 2, 3, 4, 5, 10, 2**31 - 1])
        case t.LongType():
            return draw.choice([-(2**40), -1, 0, 1, 2, 3, 4, 5, 2**31, 2**40])
        case t.StringType():
            return draw.choice(UUIDS if name == UUID else WORDS)
        case t.FloatType() | t.DoubleType():
            return draw.choice([float("nan"), -0.0, 0.0, 1.5, -2.5, 0.1, float("inf"), float("-inf")])
        case t.DecimalType():
            return Decimal(draw.randrange(-(10**4), 10**4)).scaleb(-type_.scale)
        case t.TimestampType():
            return dt.datetime(1969, 12, 30, 23, 30, tzinfo=dt.UTC) + dt.timedelta(hours=draw.randrange(0, 100))
        case t.TimestampNTZType():
            return dt.datetime(1969, 11, 30) + dt.timedelta(days=draw.randrange(0, 90), microseconds=1)
        case t.DateType():
            return draw.choice(DAYS)
        case t.BinaryType():
            return draw.choice([b"", b"\x00", b"\xff\xff", b"abc"])
    return _nested(type_, draw)


def _nested(type_: t.DataType, draw: random.Random) -> Any:
    match type_:
        case t.StructType():
            return tuple(a_value(field.dataType, draw) for field in type_.fields)
        case t.ArrayType():
            return [a_value(type_.elementType, draw) for _ in range(draw.randrange(0, 3))]
        case t.MapType():
            return {key: a_value(type_.valueType, draw) for key in draw.sample(WORDS, draw.randrange(0, 3))}
    raise AssertionError(type_)


def create(spark: SparkSession, name: str, columns: str, version: int, partitioned: str = "", **more: str) -> None:
    """A table with small row groups; merge-on-read where its version has that."""
    properties = {"format-version": str(version), **SMALL_ROW_GROUPS, **more}
    if version > 1:
        properties |= {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update", "merge")} | more
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    by = f"PARTITIONED BY ({partitioned})" if partitioned else ""
    spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {by} TBLPROPERTIES ({listed})")


def add_by_java(spark: SparkSession, name: str, column: str, type_: str, default: Any = None) -> None:
    """A column of a type or with an initial default, neither of which Spark's SQL can say."""
    iceberg = spark._jvm.org.apache.iceberg
    types = {"UUID": "UUIDType", "INT": "IntegerType", "STRING": "StringType"}
    iceberg_type = getattr(iceberg.types.Types, types[type_]).get()
    initial = () if default is None else (None, iceberg.expressions.Literal.of(default))
    java_table(spark, name).updateSchema().addColumn(column, iceberg_type, *initial).commit()
    spark.sql(f"REFRESH TABLE {name}")


@dataclass
class SparkHistory:
    """A table that random commits change; every row has its own `rid`, which no commit changes."""

    spark: SparkSession
    name: str
    version: int
    draw: random.Random
    rid: int = 0
    count: int = 0  # of names given
    sources: set[str] = field(default_factory=set)  # that a partition spec ever named, by the names of now
    parts: dict[str, str] = field(default_factory=dict)  # current partition fields: their source's first name
    log: list[str] = field(default_factory=list)

    @staticmethod
    def begin(spark: SparkSession, name: str, version: int, seed: int) -> SparkHistory:
        """A table that is unpartitioned, or partitioned by some column, with some rows."""
        draw = random.Random(seed * 10 + version)
        create(spark, name, COLUMNS, version)
        add_by_java(spark, name, UUID, "UUID")
        history = SparkHistory(spark, name, version, draw)
        if draw.random() < 0.6:
            history.partition()
        history.insert(40)
        return history

    def step(self) -> None:
        """One of the commits that the table's version has."""
        chosen = self.draw.choice(self._steps)
        self.log.append(chosen.__name__)
        chosen()

    @property
    def _steps(self) -> list[Callable[[], None]]:
        rows = [self.insert, self.insert, self.insert, self.delete, self.update, self.merge]
        schema = [self.add, self.add, self.rename, self.drop, self.readd, self.reorder, self.promote, self.nest]
        specs = [self.partition, self.partition, self.unpartition, self.repartition]
        refs = [self.branch, self.tag, self.rollback]
        upkeep = [self.rewrite_files, self.rewrite_manifests]
        deletes = [self.equality, self.equality, self.equality, self.rewrite_deletes, self.switch_mode]
        return [*rows, *rows, *schema, *specs, *refs, *upkeep, *(deletes if self.version > 1 else [])]

    def sql(self, text: str) -> Any:
        """Runs a command, and notes it."""
        self.log.append(text)
        return self.spark.sql(text)

    # ---- rows

    @property
    def schema(self) -> t.StructType:
        return self.spark.table(self.name).schema

    def insert(self, n: int = 0, into: str = "") -> None:
        n, schema = n or self.draw.choice([1, 5, 20, 40]), self.schema
        rows = []
        for rid in range(self.rid, self.rid + n):
            values = {field.name: a_value(field.dataType, self.draw, field.name) for field in schema}
            rows.append(tuple({**values, "rid": rid}.values()))
        self.log.append(f"insert rid {self.rid} to {self.rid + n}")
        self.rid += n
        self.spark.createDataFrame(rows, schema).coalesce(1).writeTo(into or self.name).append()

    def _some(self) -> str:
        """A condition on row ids that holds for some rows of several files."""
        n = self.draw.choice([2, 3, 5, 7])
        within = self.draw.randrange(0, max(self.rid, 1))
        return self.draw.choice([f"rid % {n} = 0", f"rid BETWEEN {within} AND {within + 8}"])

    def delete(self) -> None:
        self.sql(f"DELETE FROM {self.name} WHERE {self._some()}")

    def _new_value(self) -> tuple[str, str]:
        """A column and an expression that it can be set to."""
        types = {field.name: field.dataType.simpleString() for field in self.schema if field.name != "rid"}
        column = self.draw.choice([name for name, type_ in types.items() if name != UUID and "<" not in type_])
        if types[column] in ("int", "string"):
            return column, self.draw.choice(["NULL", f"CAST(rid % 5 AS {types[column]})"])
        return column, "NULL"

    def update(self) -> None:
        column, value = self._new_value()
        self.sql(f"UPDATE {self.name} SET {column} = {value} WHERE {self._some()}")

    def merge(self) -> None:
        column, value = self._new_value()
        start = self.draw.randrange(0, self.rid + 1)
        self.sql(
            f"MERGE INTO {self.name} t USING (SELECT id AS r FROM range({start}, {start + 30})) u ON t.rid = u.r "
            f"WHEN MATCHED AND u.r % 3 = 0 THEN DELETE "
            f"WHEN MATCHED AND u.r % 3 = 1 THEN UPDATE SET {column} = {value.replace('rid', 't.rid')} "
        )

    def switch_mode(self) -> None:
        mode = self.draw.choice(["merge-on-read", "copy-on-write"])
        listed = ", ".join(f"'write.{command}.mode' = '{mode}'" for command in ("delete", "update", "merge"))
        self.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ({listed})")

    def equality(self) -> None:
        """Deletes by some key, in all partitions or in one, and inserts rows anew, many with the same key."""
        columns = [f for f in self.schema if isinstance(f.dataType, KEYS) and f.name not in (UUID, "rid")]
        files = data_files(self.spark, self.name)
        if not columns or not files:
            return
        chosen = self.draw.choice(columns)
        keys = [a_value(chosen.dataType, self.draw, chosen.name) for _ in range(self.draw.choice([1, 2]))]
        types = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string(), "date": pa.date32()}
        rows = pa.table({chosen.name: pa.array(keys, types[chosen.dataType.simpleString()])})
        whole = [spec.specId() for spec in java_table(self.spark, self.name).specs().values() if spec.isUnpartitioned()]
        if whole and self.draw.random() < 0.5:
            self.log.append(f"equality deletes of {chosen.name} = {keys} everywhere")
            add_equality_deletes(self.spark, self.name, rows, spec_id=whole[0])
        else:
            beside = self.draw.choice(files)
            self.log.append(f"equality deletes of {chosen.name} = {keys} beside {beside.location()}")
            add_equality_deletes(self.spark, self.name, rows, beside=beside)
        self.insert(10)

    # ---- schema

    def _free(self) -> list[t.StructField]:
        """The columns that no partition spec names."""
        kept = {"rid", UUID, *self.sources}
        return [field for field in self.schema if field.name not in kept]

    def _new_name(self) -> str:
        self.count += 1
        return f"c{self.count}"

    def _add(self, name: str) -> None:
        type_ = self.draw.choice(ADDED)
        if self.version > 2 and DEFAULTS[type_] is not None:
            self.log.append(f"add {name} {type_} DEFAULT {DEFAULTS[type_]!r}")
            add_by_java(self.spark, self.name, name, type_, DEFAULTS[type_])
        else:
            self.sql(f"ALTER TABLE {self.name} ADD COLUMN {name} {type_}")

    def add(self) -> None:
        self._add(self._new_name())

    def readd(self) -> None:
        """Drops a column, and adds another of its name."""
        if len(free := self._free()) > 4:
            name = self.draw.choice(free).name
            self.sql(f"ALTER TABLE {self.name} DROP COLUMN {name}")
            self._add(name)

    def drop(self) -> None:
        if len(free := self._free()) > 4:
            self.sql(f"ALTER TABLE {self.name} DROP COLUMN {self.draw.choice(free).name}")

    def rename(self) -> None:
        if free := self._free():
            self.sql(f"ALTER TABLE {self.name} RENAME COLUMN {self.draw.choice(free).name} TO {self._new_name()}")

    def reorder(self) -> None:
        self.sql(f"ALTER TABLE {self.name} ALTER COLUMN {self.draw.choice(self.schema.names)} FIRST")

    def promote(self) -> None:
        for column in self.draw.sample(list(self.schema), len(self.schema)):
            if (wider := WIDER.get(column.dataType.simpleString())) is not None:
                self.sql(f"ALTER TABLE {self.name} ALTER COLUMN {column.name} TYPE {wider}")
                return

    def nest(self) -> None:
        """A field of a struct is added, renamed, or replaced by another of its name."""
        structs = [struct for struct in self.schema if isinstance(struct.dataType, t.StructType)]
        for struct in structs[:1]:
            inner = f"{struct.name}.{self.draw.choice(struct.dataType.names)}"
            match self.draw.randrange(3):
                case 0:
                    self.sql(f"ALTER TABLE {self.name} ADD COLUMN {struct.name}.{self._new_name()} INT")
                case 1:
                    self.sql(f"ALTER TABLE {self.name} RENAME COLUMN {inner} TO {self._new_name()}")
                case _ if len(struct.dataType.names) > 1:
                    self.sql(f"ALTER TABLE {self.name} DROP COLUMN {inner}")
                    self.sql(f"ALTER TABLE {self.name} ADD COLUMN {inner} STRING")

    # ---- partitions

    def _a_transform(self) -> tuple[str, str] | None:
        """A column that no current partition field is of, and a transform of it."""
        taken = {"rid", UUID, *self.parts.values()}
        free = [(c.name, TRANSFORMS.get(c.dataType.simpleString(), [])) for c in self.schema]
        offered = [(name, text.format(name)) for name, texts in free if name not in taken for text in texts]
        return self.draw.choice(offered) if offered else None

    def partition(self) -> None:
        if len(self.parts) < 2 and (transform := self._a_transform()) is not None:
            name = f"p_{self._new_name()}"
            self.sql(f"ALTER TABLE {self.name} ADD PARTITION FIELD {transform[1]} AS {name}")
            self.parts[name] = transform[0]
            self.sources.add(transform[0])

    def unpartition(self) -> None:
        if self.parts:
            name = self.draw.choice(list(self.parts))
            self.sql(f"ALTER TABLE {self.name} DROP PARTITION FIELD {name}")
            del self.parts[name]

    def repartition(self) -> None:
        if self.parts and (transform := self._a_transform()) is not None:
            old, new = self.draw.choice(list(self.parts)), f"p_{self._new_name()}"
            self.sql(f"ALTER TABLE {self.name} REPLACE PARTITION FIELD {old} WITH {transform[1]} AS {new}")
            del self.parts[old]
            self.parts[new] = transform[0]
            self.sources.add(transform[0])

    # ---- snapshots

    @property
    def _in_catalog(self) -> str:
        return self.name.removeprefix("lake.")

    def call(self, procedure: str, *more: str) -> None:
        self.sql(f"CALL lake.system.{procedure}({', '.join([f'table => {self._in_catalog!r}', *more])})")

    def branch(self) -> None:
        """A branch with commits of its own, to which the table may be moved forward."""
        name = self._new_name()
        self.sql(f"ALTER TABLE {self.name} CREATE BRANCH {name}")
        self.insert(into=f"{self.name}.branch_{name}")
        self.sql(f"DELETE FROM {self.name}.branch_{name} WHERE {self._some()}")
        if self.draw.random() < 0.5:
            self.call("fast_forward", "branch => 'main'", f"to => '{name}'")

    def tag(self) -> None:
        self.sql(f"ALTER TABLE {self.name} CREATE TAG {self._new_name()}")

    def rollback(self) -> None:
        ancestors = self.spark.sql(f"SELECT snapshot_id FROM {self.name}.history WHERE is_current_ancestor").collect()
        if len(ancestors) > 3:
            self.call("rollback_to_snapshot", f"snapshot_id => {self.draw.choice(ancestors[-3:])[0]}")

    def expire(self) -> None:
        self.log.append("expire")
        self.call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01'", "retain_last => 2")

    def rewrite_files(self) -> None:
        self.call("rewrite_data_files", "options => map('rewrite-all', 'true')")

    def rewrite_deletes(self) -> None:
        self.call("rewrite_position_delete_files", "options => map('rewrite-all', 'true')")

    def rewrite_manifests(self) -> None:
        self.call("rewrite_manifests")
