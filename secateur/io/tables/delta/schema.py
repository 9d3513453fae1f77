"""A Delta table's metadata: its schema, its partition columns, how files name columns, and what a reader has to know.

Source: Delta's protocol, "Schema Serialization Format", "Column Mapping", "Table Features", "Type Widening".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from secateur.errors import UnsupportedTable
from secateur.index.naming import Path
from secateur.io.parquet.arrow_types import VARIANT
from secateur.io.tables.field_ids import MappedName, with_id
from secateur.values.kinds import COLLATED

_WIDENING = ("typeWidening", "typeWidening-preview")
KNOWN_FEATURES = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    *_WIDENING,
    *("variantType", "variantType-preview", "variantShredding", "variantShredding-preview"),
}
_LACKING = {  # why a known feature is not supported
    "catalogManaged": "only the catalog knows its latest commits",
    "catalogOwned-preview": "only the catalog knows its latest commits",
}
MODE = "delta.columnMapping.mode"
_ID, _PHYSICAL = "delta.columnMapping.id", "delta.columnMapping.physicalName"
_WIDER = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "long": (),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}  # before the point, in a decimal that holds the type
_DECIMAL = re.compile(r"decimal\((\d+), ?(-?\d+)\)")
_TYPES = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    "variant": VARIANT,
}


@dataclass(frozen=True)
class TableMetadata:
    """The metadata of a table at one version."""

    id: str
    schema: pa.Schema  # fields have ids if the table maps columns
    partition_fields: tuple[pa.Field, ...]
    partition_columns: tuple[str, ...]  # their physical names
    mode: str  # of column mapping: none, name or id
    physical: Mapping[Path, Path]  # the names in files and statistics, by those in the table
    mapping: Mapping[str, MappedName] | None  # ids by physical names; None if the table maps no columns
    configuration: Mapping[str, str] = field(default_factory=dict)
    is_widened: bool = False  # columns may have had narrower types, in which files and statistics remain

    @cached_property
    def data_schema(self) -> pa.Schema:
        """The columns that files hold."""
        outside = {field.name for field in self.partition_fields}
        return pa.schema([field for field in self.schema if field.name not in outside])

    @property
    def is_mapped(self) -> bool:
        """Whether the names of columns in files differ from those in the table, or may differ in the future."""
        return self.mode != "none"


def metadata_of(protocol: Mapping[str, Any], declared: Mapping[str, Any], redacted: str) -> TableMetadata:
    """Return the metadata of a table. Raises UnsupportedTable, naming what cannot be read here."""
    features = require_readable(protocol, redacted)
    provider = (declared.get("format") or {}).get("provider") or "parquet"
    if provider != "parquet":
        raise UnsupportedTable(f"{redacted} holds files of {provider}; only Parquet is read")
    configuration = dict(declared.get("configuration") or {})
    mode = configuration.get(MODE, "none") if "columnMapping" in features else "none"
    if mode not in ("none", "name", "id"):
        raise UnsupportedTable(f"{redacted} maps columns by {mode!r}, which is not known here")
    root = json.loads(declared["schemaString"])
    fields = [_field(field, mode != "none", redacted) for field in root["fields"]]
    by_name = {field.name.lower(): field for field in fields}
    names = [name.lower() for name in declared.get("partitionColumns") or ()]
    physical = dict(_physical(root["fields"], (), (), mode != "none"))
    partitions = tuple(by_name[name] for name in names)
    columns = tuple(physical[(field.name,)][0] for field in partitions)
    mapping = mapping_of(root["fields"]) if mode != "none" else None
    return TableMetadata(
        str(declared.get("id")),
        pa.schema(fields),
        partitions,
        columns,
        mode,
        physical,
        mapping,
        configuration,
        is_widened=not features.isdisjoint(_WIDENING),
    )


def require_readable(protocol: Mapping[str, Any], redacted: str) -> set[str]:
    """Return the table's reader features. Raises UnsupportedTable for one that is not known here, by name."""
    version = int(protocol["minReaderVersion"])
    if version > 3:
        raise UnsupportedTable(f"{redacted} needs a reader of version {version} of Delta's protocol; 3 is known here")
    if version < 3:
        return {"columnMapping"} if version == 2 else set()
    features = set(protocol.get("readerFeatures") or ())
    if unknown := sorted(features - KNOWN_FEATURES):
        reasons = "; ".join(f"{feature}: {_LACKING.get(feature, 'not known here')}" for feature in unknown)
        raise UnsupportedTable(f"{redacted} needs features of Delta that are missing here: {reasons}")
    return features


def _field(declared: Mapping[str, Any], is_mapped: bool, redacted: str) -> pa.Field:
    metadata = declared.get("metadata") or {}
    _require_widenings(declared, metadata, redacted)
    name = declared["name"]
    field = pa.field(name, _type(declared["type"], name, is_mapped, redacted, "__COLLATIONS" in metadata))
    if not is_mapped:
        return field
    if _ID not in metadata:
        raise UnsupportedTable(f"{redacted} maps columns, and gives {name} no id")
    return with_id(field, int(metadata[_ID]))


def _type(declared: Any, name: str, is_mapped: bool, redacted: str, is_collated: bool) -> pa.DataType:
    if isinstance(declared, Mapping):
        match declared["type"]:
            case "struct":
                return pa.struct([_field(field, is_mapped, redacted) for field in declared["fields"]])
            case "array":
                element = _type(declared["elementType"], name, is_mapped, redacted, is_collated)
                return pa.list_(pa.field("element", element))
            case "map":
                parts = (
                    _type(declared[part], name, is_mapped, redacted, is_collated) for part in ("keyType", "valueType")
                )
                return pa.map_(*parts)
    if isinstance(declared, str):
        if declared == "string" and is_collated:
            return COLLATED
        if declared in _TYPES:
            return _TYPES[declared]
        if decimal := _DECIMAL.fullmatch(declared):
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
    raise UnsupportedTable(f"{redacted} has the column {name} of the type {declared}, which cannot be read here")


def _require_widenings(declared: Mapping[str, Any], metadata: Mapping[str, Any], redacted: str) -> None:
    """Raise UnsupportedTable if a column had a type that cannot be read as its current type."""
    for change in metadata.get("delta.typeChanges") or ():
        before, after = change["fromType"], change["toType"]
        if not is_widening(before, after):
            raise UnsupportedTable(
                f"{redacted} changed {declared['name']} from {before} to {after}, which is not known here"
            )


def is_widening(before: object, after: object) -> bool:
    """Return whether values of a type, as Delta writes it, are read as another."""
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    if after in _WIDER.get(before, ()):
        return True
    into, out_of = _DECIMAL.fullmatch(after), _DECIMAL.fullmatch(before)
    if into is None:
        return False
    scale, whole = int(into[2]), int(into[1]) - int(into[2])
    if out_of is not None:
        return scale >= int(out_of[2]) and whole >= int(out_of[1]) - int(out_of[2])
    return before in _DIGITS and whole >= _DIGITS[before]


def _physical(
    fields: list[Mapping[str, Any]], path: Path, stored_parent: Path, is_mapped: bool
) -> Iterator[tuple[Path, Path]]:
    """Yield the path of every column, and of those nested in structs, in the table and in files."""
    for entry in fields:
        declared_path = (*path, entry["name"])
        name = (entry.get("metadata") or {}).get(_PHYSICAL) if is_mapped else None
        stored_path = (*stored_parent, name or entry["name"])
        yield declared_path, stored_path
        if isinstance(entry["type"], Mapping) and entry["type"]["type"] == "struct":
            yield from _physical(entry["type"]["fields"], declared_path, stored_path, is_mapped)


def mapping_of(fields: list[Mapping[str, Any]]) -> dict[str, MappedName]:
    """Return the ids of columns by their physical names, nested ones too."""
    return {field["metadata"][_PHYSICAL]: _mapped(field) for field in fields}


def _mapped(declared: Mapping[str, Any]) -> MappedName:
    return MappedName(int(declared["metadata"][_ID]), _within(declared["type"]))


def _within(type_: Any) -> dict[str, MappedName]:
    if not isinstance(type_, Mapping):
        return {}
    match type_["type"]:
        case "struct":
            return mapping_of(type_["fields"])
        case "array":
            return {"element": MappedName(None, _within(type_["elementType"]))}
        case _:
            parts = {"key": type_["keyType"], "value": type_["valueType"]}
            return {name: MappedName(None, _within(part)) for name, part in parts.items()}
