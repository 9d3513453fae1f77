"""A Hudi table, copied on write: base files of file groups, which the commits of a timeline name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from conformance.directory import NULL_PARTITION, escaped
from conformance.engine import HUDI, ROW_ID
from conformance.exam import Exam, NotApplicable
from conformance.files import write_file
from conformance.table import PastVersion, VersionedTable, decoded

FIRST_INSTANT = 20260101000000000  # its last three digits are milliseconds
_AVRO: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}


class HudiTable(VersionedTable):
    """A file of a case is a file group; a file that is written anew is its next base file."""

    format = HUDI

    def __init__(self, directory: Path, exam: Exam, partitioned_by: tuple[str, ...] = ()) -> None:
        super().__init__(directory, exam, partitioned_by)
        self._held: dict[str, pa.Table] = {}  # by file
        self._folders: dict[str, str] = {}
        self._groups: dict[str, str] = {}
        self._schema: pa.Schema | None = None
        self._instant = FIRST_INSTANT
        self._options: dict[str, Any] = {}
        (directory / ".hoodie").mkdir()
        properties = {
            "table.name": "t",
            "table.type": "COPY_ON_WRITE",
            "table.version": "6",
            "timeline.layout.version": "1",
            "populate.meta.fields": "false",
            "table.timeline.timezone": "UTC",
            "table.partition.fields": ",".join(partitioned_by),
            "datasource.write.hive_style_partitioning": "true",
        }
        lines = (f"hoodie.{name}={value}\n" for name, value in properties.items() if value)
        (directory / ".hoodie" / "hoodie.properties").write_text("".join(lines))

    @property
    def files(self) -> Mapping[str, pa.Table]:
        return self._held

    def write(self, files: Mapping[str, pa.Table], **options: Any) -> None:
        self.rewrite([], files, **options)

    def rewrite(self, old: Sequence[str], new: Mapping[str, pa.Table], **options: Any) -> None:
        self._options = options
        for rows in new.values():
            self._widen(rows.schema)
        self._instant += 1000
        replaced: dict[str, list[str]] = {}
        for name in old:
            if name not in new or self._folder(new[name]) != self._folders[name]:
                replaced.setdefault(self._folders[name], []).append(self._group(name))
            del self._held[name]
        stats: dict[str, list[dict[str, str]]] = {}
        for name, rows in new.items():
            self._held[name], self._folders[name] = decoded(rows), self._folder(rows)
            stats.setdefault(self._folders[name], []).append(self._base_file(name, rows, dict(options)))
        self._commit(stats, replaced)
        self.changed()

    def _widen(self, arrow: pa.Schema) -> None:
        """Adds the columns that the table lacks, and widens types to those of new files."""
        wanted = pa.schema([field.with_type(_stored(field.type)).with_nullable(True) for field in arrow])
        self._schema = (
            wanted if self._schema is None else pa.unify_schemas([self._schema, wanted], promote_options="permissive")
        )
        for field in self._schema:
            avro_of(field.type, field.name)

    def _folder(self, rows: pa.Table) -> str:
        """The path of a partition, whose values are those of the first row."""
        values = {column: rows[column][0].as_py() for column in self.partitioned_by}
        texts = {column: NULL_PARTITION if value is None else escaped(str(value)) for column, value in values.items()}
        return "/".join(f"{column}={text}" for column, text in texts.items())

    def _group(self, name: str) -> str:
        """The id of a file group: it has the characters of the file's name, but those that would end it."""
        kept = name.removesuffix(".parquet").replace("_", "-").replace("/", "-")
        return self._groups.setdefault(name, f"{len(self._groups)}-{kept}")

    def _base_file(self, name: str, rows: pa.Table, options: dict[str, Any]) -> dict[str, str]:
        """Writes a base file; what its commit says of it."""
        file = f"{self._group(name)}_1-0-1_{self._instant}.parquet"
        stored = pa.schema([field.with_type(_stored(field.type)) for field in rows.schema])
        folder = self.directory / self._folders[name]
        write_file(folder / file, rows.cast(stored), **options)
        (folder / ".hoodie_partition_metadata").touch()
        return {"fileId": self._group(name), "path": f"{self._folders[name]}/{file}".lstrip("/"), "prevCommit": "null"}

    def _commit(self, stats: Mapping[str, Any], replaced: Mapping[str, Any]) -> None:
        assert self._schema is not None
        fields = [{"name": field.name, "type": avro_of(field.type, field.name)} for field in self._schema]
        said = {
            "partitionToWriteStats": stats,
            "partitionToReplaceFileIds": replaced,
            "extraMetadata": {"schema": json.dumps({"type": "record", "name": "t", "fields": fields})},
            "operationType": "UPSERT",
        }
        action = "replacecommit" if replaced else "commit"
        (self.directory / ".hoodie" / f"{self._instant}.{action}").write_text(json.dumps(said))

    def archive(self, keep: int) -> None:
        """Takes all commits out of the timeline but the last."""
        for path in sorted((self.directory / ".hoodie").glob("*commit"))[:-keep]:
            path.unlink()

    def delete(self, *row_ids: int) -> None:
        """Writes the base files anew that hold the rows."""
        kept = {
            name: rows.filter(pc.invert(pc.is_in(rows[ROW_ID], pa.array(row_ids, pa.int64()))))
            for name, rows in self._held.items()
        }
        changed = {name: rows for name, rows in kept.items() if len(rows) < len(self._held[name])}
        self.rewrite(list(changed), changed, **self._options)

    def snapshot(self) -> PastVersion:
        return PastVersion(self._instant, self.rows)

    def _rows(self) -> pa.Table:
        assert self._schema is not None
        parts = [self._schema.empty_table(), *self._held.values()]
        whole = pa.concat_tables(parts, promote_options="permissive")
        return whole.select(self._schema.names).cast(self._schema).combine_chunks()


def avro_of(type_: pa.DataType, name: str) -> list[Any]:
    """A type with NULL, in Avro's JSON; `name` is that of records within. Raises NotApplicable."""
    return ["null", _avro_of(type_, name)]


def _avro_of(type_: pa.DataType, name: str) -> Any:
    if pa.types.is_decimal(type_):
        return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    if pa.types.is_struct(type_):
        fields = [{"name": field.name, "type": avro_of(field.type, f"{name}_{field.name}")} for field in type_]
        return {"type": "record", "name": name, "fields": fields}
    if pa.types.is_list(type_):
        return {"type": "array", "items": avro_of(type_.value_type, f"{name}_element")}
    if pa.types.is_map(type_) and type_.key_type == pa.string():
        return {"type": "map", "values": avro_of(type_.item_type, f"{name}_value")}
    if type_ not in _AVRO:
        raise NotApplicable(f"Avro has no {type_}")
    return _AVRO[type_]


def _stored(type_: pa.DataType) -> pa.DataType:
    """The nearest type that Hudi has."""
    if pa.types.is_dictionary(type_):
        return _stored(type_.value_type)
    if type_ in (pa.int8(), pa.int16()):
        return pa.int32()
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz and "UTC")
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_stored(field.type)) for field in type_])
    return type_
