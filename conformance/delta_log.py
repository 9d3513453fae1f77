"""A Delta log, written as Delta's protocol describes it, in all of its forms.

Source: PROTOCOL.md of Delta Lake.
"""

from __future__ import annotations

import base64
import json
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

Action = dict[str, Any]

_MAGIC = (1681511377).to_bytes(4, "little")
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TYPES = {
    pa.string(): "string",
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.int16(): "short",
    pa.int8(): "byte",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}
_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_ADD = [
    ("path", pa.string()),
    ("partitionValues", _TEXTS),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("stats", pa.string()),
    ("deletionVector", _VECTOR),
]
_METADATA = [
    ("id", pa.string()),
    ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
    ("schemaString", pa.string()),
    ("partitionColumns", pa.list_(pa.string())),
    ("configuration", _TEXTS),
]
_PROTOCOL = [
    ("minReaderVersion", pa.int32()),
    ("minWriterVersion", pa.int32()),
    ("readerFeatures", pa.list_(pa.string())),
    ("writerFeatures", pa.list_(pa.string())),
]
_REMOVE = [("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]
_SIDECAR = [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]


def schema_text(schema: pa.Schema, numbers: Mapping[str, int] | None = None) -> str:
    """The schema as the log has it; with `numbers`, the ids of columns, which are also in their physical names."""
    return json.dumps(_struct(schema, numbers, ""))


def _struct(fields: Iterable[pa.Field], numbers: Mapping[str, int] | None, prefix: str) -> Action:
    return {"type": "struct", "fields": [_field(field, numbers, prefix) for field in fields]}


def _field(field: pa.Field, numbers: Mapping[str, int] | None, prefix: str) -> Action:
    path, metadata = prefix + field.name, {}
    if numbers is not None:
        number = numbers[path]
        metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {"name": field.name, "type": type_of(field.type, numbers, path), "nullable": True, "metadata": metadata}


def type_of(type_: pa.DataType, numbers: Mapping[str, int] | None = None, path: str = "") -> Any:
    """A type as the log has it."""
    if pa.types.is_struct(type_):
        return _struct(type_, numbers, path + ".")
    if pa.types.is_list(type_):
        return {"type": "array", "elementType": type_of(type_.value_type), "containsNull": True}
    if pa.types.is_map(type_):
        key, value = type_of(type_.key_type), type_of(type_.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    return _TYPES[type_]


def protocol(*features: str) -> Action:
    """A protocol with some reader features; none: that of the first version."""
    if not features:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    listed = list(features)
    versions = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": listed, "writerFeatures": listed}
    return {"protocol": versions}


def metadata(schema: str, partitioned_by: Sequence[str] = (), **configuration: str) -> Action:
    """A table's metadata; dots in the names of properties are written as underscores."""
    description = {
        "id": "00000000-0000-0000-0000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(partitioned_by),
        "configuration": {name.replace("_", "."): value for name, value in configuration.items()},
    }
    return {"metaData": description}


class DeltaLog:
    """The log of one table, which it writes commit by commit."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.folder = directory / "_delta_log"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.version = -1
        self.commits: list[list[Action]] = []

    def path(self, version: int) -> Path:
        """The file of a commit."""
        return self.folder / f"{version:020}.json"

    def commit(self, *actions: Action) -> int:
        """Writes the next version, and returns its number."""
        self.version += 1
        self.commits.append([{"commitInfo": {"operation": "WRITE", "timestamp": self.version}}, *actions])
        self._write_lines(self.path(self.version), self.commits[-1])
        return self.version

    def _write_lines(self, path: Path, actions: Iterable[Action]) -> None:
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))

    def state(self, version: int | None = None) -> tuple[Action, Action, dict[tuple[str, str], Action]]:
        """Protocol, metadata and live files, by path and vector, after a version."""
        stop = self.version if version is None else version
        return _replayed([action for commit in self.commits[: stop + 1] for action in commit])

    @property
    def adds(self) -> list[Action]:
        """The live files."""
        return [action["add"] for action in self.state()[2].values()]

    # ---- compacted commits and checkpoints

    def compact(self, first: int, last: int) -> Path:
        """Writes a compacted commit: the net effect of some commits."""
        actions = [action for commit in self.commits[first : last + 1] for action in commit]
        latest: dict[Any, Action] = {}
        for action in actions:
            key = _key(action)
            if key is not None:
                latest[key] = action
        path = self.folder / f"{first:020}.{last:020}.compacted.json"
        self._write_lines(path, latest.values())
        return path

    def checkpoint(self, kind: str = "classic", version: int | None = None, parts: int = 2) -> list[Path]:
        """A checkpoint: ``classic``, in ``parts``, or of version 2 in ``json``, ``parquet`` or ``inline``."""
        version = self.version if version is None else version
        protocol_action, metadata_action, files = self.state(version)
        adds = list(files.values())
        gone = {"remove": {"path": "long-gone.parquet", "deletionTimestamp": 0, "dataChange": True}}
        name = f"{version:020}.checkpoint"
        if kind == "classic":
            actions = [protocol_action, metadata_action, gone, *adds]
            return [_write_parquet(self.folder / f"{name}.parquet", actions)]
        if kind == "parts":
            cut = [adds[i::parts] for i in range(parts)]
            cut[0] = [protocol_action, metadata_action, gone, *cut[0]]
            names = [f"{name}.{i + 1:010}.{parts:010}.parquet" for i in range(parts)]
            return [_write_parquet(self.folder / part, actions) for part, actions in zip(names, cut, strict=True)]
        first: list[Action] = [{"checkpointMetadata": {"version": version}}, protocol_action, metadata_action]
        sidecars = []
        if kind == "inline":
            first += adds
        else:
            (self.folder / "_sidecars").mkdir(exist_ok=True)
            sidecars = [self._sidecar(adds[i::parts]) for i in range(parts)]
            first += [
                {"sidecar": {"path": sidecar.name, "sizeInBytes": sidecar.stat().st_size}} for sidecar in sidecars
            ]
        whole = self.folder / f"{name}.{uuid.uuid4()}.{'parquet' if kind == 'parquet' else 'json'}"
        if kind == "parquet":
            _write_parquet(whole, first)
        else:
            self._write_lines(whole, first)
        return [whole, *sidecars]

    def _sidecar(self, adds: Sequence[Action]) -> Path:
        return _write_parquet(self.folder / "_sidecars" / f"{uuid.uuid4()}.parquet", adds)


def _replayed(actions: Iterable[Action]) -> tuple[Action, Action, dict[tuple[str, str], Action]]:
    protocol_action: Action = {}
    metadata_action: Action = {}
    files: dict[tuple[str, str], Action] = {}
    for action in actions:
        if "protocol" in action:
            protocol_action = action
        elif "metaData" in action:
            metadata_action = action
        elif "add" in action:
            files[_file_key(action["add"])] = action
        elif "remove" in action:
            files.pop(_file_key(action["remove"]), None)
    return protocol_action, metadata_action, files


def _key(action: Action) -> Any:
    for name in ("add", "remove"):
        if name in action:
            return _file_key(action[name])
    return next((name for name in ("protocol", "metaData") if name in action), None)


def _file_key(file: Action) -> tuple[str, str]:
    vector = file.get("deletionVector")
    return file["path"], "" if not vector else f"{vector['pathOrInlineDv']}@{vector.get('offset')}"


def _write_parquet(path: Path, actions: Sequence[Action]) -> Path:
    kinds = {"add": _ADD, "remove": _REMOVE, "metaData": _METADATA, "protocol": _PROTOCOL, "sidecar": _SIDECAR}
    columns = {
        name: pa.array([_row(action.get(name), fields) for action in actions], pa.struct(fields))
        for name, fields in kinds.items()
    }
    pq.write_table(pa.table(columns), path, row_group_size=100)
    return path


def _row(content: Action | None, fields: Sequence[tuple[str, pa.DataType]]) -> Action | None:
    if content is None:
        return None
    return {name: _entries(content.get(name), type_) for name, type_ in fields}


def _entries(value: Any, type_: pa.DataType) -> Any:
    if pa.types.is_map(type_):
        return list((value or {}).items())
    if pa.types.is_struct(type_) and value is not None:
        return {field.name: _entries(value.get(field.name), field.type) for field in type_}
    return value


# ---- deletion vectors ------------------------------------------------------------------------------------------------


def bitmap(positions: Sequence[int]) -> bytes:
    """A vector: a magic number, and a 64-bit Roaring bitmap."""
    high: dict[int, list[int]] = {}
    for position in positions:
        high.setdefault(position >> 32, []).append(position & 0xFFFFFFFF)
    parts = [key.to_bytes(4, "little") + BitMap(low).serialize() for key, low in sorted(high.items())]
    return _MAGIC + len(parts).to_bytes(8, "little") + b"".join(parts)


def z85(data: bytes) -> str:
    """Text of ZeroMQ's Base85; zeros fill up the last four bytes."""
    return base64.b85encode(data + bytes(-len(data) % 4)).translate(bytes.maketrans(_B85, _Z85)).decode()


def inline_vector(positions: Sequence[int]) -> Action:
    """A vector that the log itself holds."""
    data = bitmap(positions)
    descriptor = {"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data)}
    return {**descriptor, "cardinality": len(positions)}


def stored_vectors(
    directory: Path, vectors: Sequence[Sequence[int]], prefix: str = "", *, absolute: bool = False
) -> list[Action]:
    """Some vectors in one file, whose name is relative to the table, with a random prefix, or absolute."""
    number = uuid.uuid4()
    path = directory / prefix / f"deletion_vector_{number}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    data, descriptors = b"\x01", []
    for positions in vectors:
        body = bitmap(positions)
        where = (
            {"storageType": "p", "pathOrInlineDv": path.as_uri()}
            if absolute
            else {"storageType": "u", "pathOrInlineDv": prefix + z85(number.bytes)}
        )
        descriptors.append({**where, "offset": len(data), "sizeInBytes": len(body), "cardinality": len(positions)})
        data += len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    path.write_bytes(data)
    return descriptors
