"""What a relation of Spark and the index have in common, and what is answered where something is amiss."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from secateur.io.spark.planner.enabled import Enabled, RequestKind, as_opened_here
from secateur.io.spark.planner.matches import common_schema
from secateur.io.spark.planner.protocol import UNREGISTERED

Columns = list[tuple[str, Any]]  # name, and type or the fields of a struct
INDEXED = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "plain": pa.timestamp("us"),
        "price": pa.decimal128(10, 2),
        "s": pa.struct({"y": pa.int64(), "z": pa.struct({"w": pa.string()})}),
        "l": pa.list_(pa.int32()),
        "a": pa.int32(),
        "A": pa.int32(),
        "nanos": pa.timestamp("ns"),
    }
)


@pytest.mark.parametrize(
    ("columns", "common"),
    [
        ([("id", "long"), ("name", "string")], ["id", "name"]),
        ([("name", "string"), ("id", "long"), ("other", "integer")], ["id", "name"]),
        ([("ID", "long"), ("Name", "string")], []),
        ([("id", "integer"), ("name", "binary"), ("price", "decimal(10,3)")], []),
        ([("at", "timestamp"), ("plain", "timestamp_ntz"), ("price", "decimal(10,2)")], ["at", "plain", "price"]),
        ([("at", "timestamp_ntz"), ("plain", "timestamp")], []),
        ([("s", [("y", "long")])], ["s"]),
        ([("s", [("z", [("w", "string")])])], ["s"]),
        ([("s", [("z", [("w", "long")])])], []),
        ([("s", [("y", "long"), ("x", "integer")])], []),
        ([("id", [("y", "integer")])], []),
        ([("a", "integer")], []),
        ([("nanos", "timestamp")], []),
    ],
)
def test_columns_that_mean_the_same(columns: Columns, common: list[str]) -> None:
    schema = common_schema(struct_of(columns), INDEXED)
    assert schema.names == common
    assert all(INDEXED.field(name).type == schema.field(name).type for name in common)


def struct_of(columns: Columns) -> StructType:
    """A schema made here: Spark's parser of schemas is in Java."""
    return StructType.fromJson(_json(columns))


def _json(columns: Columns) -> dict[str, Any]:
    fields = [
        {"name": name, "type": type_ if isinstance(type_, str) else _json(type_), "nullable": True, "metadata": {}}
        for name, type_ in columns
    ]
    return {"type": "struct", "fields": fields}


def test_places_of_s3_have_one_name() -> None:
    assert as_opened_here("s3a://bucket/a/") == as_opened_here("s3://bucket/a") == "s3://bucket/a"
    assert as_opened_here("/lake/s3a:") == "/lake/s3a:"


def test_no_index_and_no_files(tmp_path: Path) -> None:
    enabled = Enabled(lambda: True)
    for location in (str(tmp_path), str(tmp_path / "none"), "nothing://x/y"):
        asked = struct.pack(">bi", RequestKind.LOOK, len(location.encode())) + location.encode()
        assert enabled.apply(asked) == struct.pack(">i", -1)
    question = struct.pack(">qi", 0, 3) + b"UTC" + struct.pack(">ii", 0, 0)
    answer = enabled.apply(struct.pack(">bi", RequestKind.QUESTION, 4) + b"none" + question)
    assert struct.unpack(">q", answer[4:]) == (UNREGISTERED,)
