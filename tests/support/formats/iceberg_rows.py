"""Rows of a small Iceberg table, and the ids that a query returns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

import secateur as sec

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]})


def ids(table: Any, predicate: str = "true", **options: Any) -> list[int]:
    return sorted(sec.prune(table, predicate, strict=True, **options).to_arrow()["id"].to_pylist())
