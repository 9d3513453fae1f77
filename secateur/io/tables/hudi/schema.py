"""The schema of a Hudi table, which its commits have in Avro's JSON.

Source: Avro's specification, "Schema Declaration" and "Logical Types"; Hudi's ``HoodieRecord`` for the meta columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from secateur.errors import TableNotFound, UnsupportedTable
from secateur.io.tables.hudi.properties import TableProperties

META_COLUMNS = tuple(
    f"_hoodie_{name}" for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
)
_TYPES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_KEPT = {"time-millis", "time-micros", "uuid"}  # which Spark reads as the type below them


def schema_of(text: str, properties: TableProperties, redacted: str) -> pa.Schema:
    """Return the columns of a table, as Spark's Hudi reader has them. Raises TableNotFound, UnsupportedTable."""
    try:
        record = json.loads(text)
        columns = _fields(record, {}, redacted)
    except (ValueError, KeyError, TypeError) as error:
        raise TableNotFound(f"the schema in the commits of {redacted} is broken: {error!r}") from None
    known = {column.name for column in columns}
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS if properties.has_meta_columns and name not in known]
    return pa.schema([*meta, *columns, *_dropped(known, properties, redacted)])


def _dropped(known: set[str], properties: TableProperties, redacted: str) -> list[pa.Field]:
    """Return the partition columns that commits do not name because files lack them: as when the table was made."""
    missing = [name for name in properties.partition_columns if name not in known]
    if not missing or not properties.partitions_dropped:
        return []
    created = json.loads(properties.created_schema) if properties.created_schema else {"fields": []}
    types = {column.name: column for column in _fields(created, {}, redacted)}
    return [types.get(name, pa.field(name, pa.string())) for name in missing]


def _fields(record: Mapping[str, Any], named: dict[str, Any], redacted: str) -> list[pa.Field]:
    return [pa.field(field["name"], _type(field["type"], field["name"], named, redacted)) for field in record["fields"]]


def _type(declared: Any, column: str, named: dict[str, Any], redacted: str) -> pa.DataType:
    """Return the type of a column, or of a part of one. Raises UnsupportedTable."""

    def refused() -> UnsupportedTable:
        return UnsupportedTable(f"{redacted} has the column {column} of the type {declared}, which cannot be read here")

    match declared:
        case list():
            kinds = [kind for kind in declared if kind != "null"]
            if len(kinds) != 1:
                raise refused()
            return _type(kinds[0], column, named, redacted)
        case str():
            if declared in named:
                return _type(named[declared], column, {**named, declared: None}, redacted)
            if declared not in _TYPES:
                raise refused()
            return _TYPES[declared]
        case {"type": kind}:
            rest: Mapping[str, Any] = declared
            if isinstance(kind, Mapping | list):
                return _type(kind, column, named, redacted)
            if "name" in rest:  # a later field may refer to it
                named.update(dict.fromkeys(_names(rest), declared))
            match rest.get("logicalType"):
                case "decimal":
                    return pa.decimal128(int(rest["precision"]), int(rest.get("scale", 0)))
                case str(logical) if logical in _LOGICAL:
                    return _LOGICAL[logical]
                case str(logical) if logical not in _KEPT:
                    raise refused()
            if kind == "record":
                return pa.struct(_fields(declared, named, redacted))
            if kind == "array":
                return pa.list_(pa.field("element", _type(rest["items"], column, named, redacted)))
            if kind == "map":
                return pa.map_(pa.string(), _type(rest["values"], column, named, redacted))
            return _type(kind, column, named, redacted)
    raise refused()


def _names(declared: Mapping[str, Any]) -> set[str]:
    name, space = declared["name"], declared.get("namespace")
    return {name, f"{space}.{name}"} if space else {name}
