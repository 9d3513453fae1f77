"""Expressions of Spark's optimizer that this package writes otherwise: paths into VARIANT, and fields of JSON text."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from secateur.io.spark.planner.catalyst import Catalyst, node_of
from secateur.io.spark.planner.matches import EXTRACTED, common_schema
from secateur.pruning.predicate.nodes import Column, Literal

PAYLOAD, PATH = Column(("payload",)), Literal("$.a[0]", "string")
VARIANT = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])


@pytest.mark.parametrize(
    ("type_", "path", "values", "children", "written"),
    [
        ("int", "$.user", (b"true",), [PAYLOAD], "variant_get(`payload`, '$.user', 'INT')"),
        ("bigint", "$.a[0]", (b"false",), [PAYLOAD, PATH], "try_variant_get(`payload`, '$.a[0]', 'BIGINT')"),
        ("decimal(5,2)", "$", (b"false",), [PAYLOAD], "try_variant_get(`payload`, '$', 'DECIMAL(5, 2)')"),
        ("variant", "$.user", (b"true",), [PAYLOAD], "variant_get(`payload`, '$.user')"),
        ("array<int>", "$.user", (b"true",), [PAYLOAD], None),
        ("int", "", (), [PAYLOAD, PAYLOAD], None),  # a path that is no constant
        ("int", "$.user", (b"true",), [PATH], None),
    ],
)
def test_values_at_paths(
    type_: str, path: str, values: tuple[bytes, ...], children: list[Any], written: str | None
) -> None:
    node = node_of(Catalyst("VariantGet", type_, path, values), children)
    assert (None if node is None else str(node)) == written


def test_fields_of_json_text() -> None:
    user = {"name": "User", "type": {"type": "struct", "fields": [{"name": "id", "type": "long"}]}}
    schema = json.dumps({"type": "struct", "fields": [user, {"name": "n", "type": "string"}]})
    text = node_of(Catalyst("JsonToStructs", "struct<...>", schema, ()), [PAYLOAD])
    struct = node_of(Catalyst("GetStructField", "struct<...>", "User", ()), [text])
    leaf = node_of(Catalyst("GetStructField", "bigint", "id", ()), [struct])
    assert str(leaf) == "from_json(`payload`, '`User` STRUCT<`id` BIGINT>').`User`.`id`"
    assert node_of(Catalyst("JsonToStructs", "struct<...>", "", ()), [PAYLOAD]) is None  # with options


@pytest.mark.parametrize(("metadata", "common"), [({EXTRACTED: {"path": "$.user"}}, ["payload"]), ({}, [])])
def test_a_variant_is_one_of_which_spark_extracts_values(metadata: dict[str, Any], common: list[str]) -> None:
    """Another struct is none, whatever its fields are named."""
    fields = [{"name": "0", "type": "integer", "nullable": True, "metadata": metadata}]
    payload = {"name": "payload", "type": {"type": "struct", "fields": fields}, "nullable": True, "metadata": {}}
    relation = StructType.fromJson({"type": "struct", "fields": [payload]})
    assert common_schema(relation, pa.schema([("payload", VARIANT)])).names == common
