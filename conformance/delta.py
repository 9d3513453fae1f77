"""A Delta table: files that its log names, with statistics there, and deletion vectors."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from conformance.delta_log import Action, DeltaLog, metadata, protocol, schema_text, stored_vectors
from conformance.engine import DELTA, ROW_ID
from conformance.exam import Exam, NotApplicable
from conformance.files import write_file
from conformance.table import PastVersion, VersionedTable, decoded

FEATURES = ("deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint")
MOST_CHARACTERS = 32  # of a bound of text
_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]


class DeltaTable(VersionedTable):
    """Files that a log names. Each commit gives its files names of their own."""

    format = DELTA

    def __init__(self, directory: Path, exam: Exam, partitioned_by: tuple[str, ...] = ()) -> None:
        super().__init__(directory, exam, partitioned_by)
        self.log = DeltaLog(directory)
        self._schema: pa.Schema | None = None
        self._held: dict[str, tuple[str, pa.Table]] = {}  # by path in the log: the name of a file, and its rows
        self._gone: dict[str, set[int]] = {}  # positions of deleted rows, by path
        self._numbers = itertools.count()
        self._columns: dict[str, int] | None = None  # ids of columns by their names; None: files have the table's names

    # ---- files

    def write(self, files: Mapping[str, pa.Table], **options: Any) -> None:
        self.rewrite([], files, **options)

    def rewrite(self, old: Sequence[str], new: Mapping[str, pa.Table], **options: Any) -> None:
        """Options besides those of pyarrow: `stats`, False for files without statistics in the log."""
        has_statistics = options.pop("stats", True)
        removed = [path for path, (name, _) in self._held.items() if name in old]
        mapped = () if self._columns is None else ("columnMapping",)
        head = [protocol(*FEATURES, *mapped)] if self._schema is None else []
        for rows in new.values():
            self._widen(rows.schema)
        gone = [self._remove(path) for path in removed]
        added = [self._add(name, rows, has_statistics, dict(options)) for name, rows in new.items()]
        self.log.commit(*head, self._metadata(), *gone, *added)
        for path in removed:
            del self._held[path]
        self.changed()

    def _widen(self, arrow: pa.Schema) -> None:
        """Adds the columns that the table lacks, and widens types to those of new files."""
        wanted = pa.schema([field.with_type(_stored(field.type)) for field in arrow])
        known = {} if self._schema is None else {field.name: field for field in self._schema}
        fields = [_wider(field, wanted) for field in known.values()]
        self._schema = pa.schema([*fields, *(field for field in wanted if field.name not in known)])
        for field in self._schema:
            self._number(field.name)

    def _add(self, name: str, rows: pa.Table, has_statistics: bool, options: dict[str, Any]) -> Action:
        assert self._schema is not None
        file = f"{next(self._numbers)}-{name}"
        path = quote(file)  # the log has URIs
        data = rows.drop_columns(list(self.partitioned_by))
        stored = pa.schema([field.with_type(_in_file(field.type)) for field in data.schema])
        data = self._stored_names(data.cast(stored))
        write_file(self.directory / file, data, **options)
        values = {column: _text(rows[column][0]) for column in self.partitioned_by} if len(rows) else {}
        size = (self.directory / file).stat().st_size
        entry = {"path": path, "partitionValues": values, "size": size, "modificationTime": 1, "dataChange": True}
        if has_statistics:
            entry["stats"] = json.dumps(statistics(decoded(data)))
        self._held[path] = name, self._stored_names(decoded(rows))
        return {"add": entry}

    def _remove(self, path: str) -> Action:
        entry = {"path": path, "deletionTimestamp": 0, "dataChange": True}
        vector = self._added(path).get("deletionVector")
        return {"remove": entry if vector is None else {**entry, "deletionVector": vector}}

    def _added(self, path: str) -> Action:
        return next(add for add in self.log.adds if add["path"] == path)

    # ---- columns by ids, which stay when names change

    def map_columns(self) -> None:
        """Gives columns ids, and files names of their own for them; before the first file."""
        self._columns = {}

    def rename(self, old: str, new: str) -> None:
        assert self._schema is not None and self._columns is not None
        self._columns[new] = self._columns.pop(old)
        self._evolve([field.with_name(new) if field.name == old else field for field in self._schema])

    def drop(self, name: str) -> None:
        assert self._schema is not None and self._columns is not None
        del self._columns[name]
        self._evolve([field for field in self._schema if field.name != name])

    def add(self, name: str, type_: pa.DataType) -> None:
        assert self._schema is not None
        self._number(name)
        self._evolve([*self._schema, pa.field(name, type_)])

    def _evolve(self, fields: Sequence[pa.Field]) -> None:
        self._schema = pa.schema(fields)
        self.log.commit(self._metadata())
        self.changed()

    def _number(self, name: str) -> None:
        if self._columns is not None and name not in self._columns:
            self._columns[name] = next(self._numbers)

    def _metadata(self) -> Action:
        assert self._schema is not None
        mode = {} if self._columns is None else {"delta_columnMapping_mode": "name"}
        return metadata(schema_text(self._schema, self._columns), self.partitioned_by, **mode)

    def _stored_names(self, rows: pa.Table) -> pa.Table:
        """The rows with the names that columns have in files."""
        if self._columns is None:
            return rows
        return rows.rename_columns([f"col-{self._columns[name]}" for name in rows.column_names])

    def _table_names(self, rows: pa.Table) -> pa.Table:
        """The rows of a file with the names of the table, without columns that it no longer has."""
        if self._columns is None:
            return rows
        names = {f"col-{number}": name for name, number in self._columns.items()}
        kept = [name for name in rows.column_names if name in names]
        return rows.select(kept).rename_columns([names[name] for name in kept])

    # ---- rows

    @property
    def files(self) -> Mapping[str, pa.Table]:
        return {name: self._live(path) for path, (name, _) in self._held.items()}

    def _live(self, path: str) -> pa.Table:
        held, gone = self._table_names(self._held[path][1]), self._gone.get(path, set())
        return held.take(pa.array([i for i in range(len(held)) if i not in gone], pa.int64()))

    def _rows(self) -> pa.Table:
        assert self._schema is not None
        parts = [self._live(path) for path in self._held]
        whole = pa.concat_tables([self._schema.empty_table(), *parts], promote_options="permissive")
        return whole.select(self._schema.names).cast(self._schema).combine_chunks()

    # ---- deletes

    def delete(self, *row_ids: int) -> None:
        self.delete_by_vectors(*row_ids)

    def delete_by_vectors(self, *row_ids: int) -> None:
        """Deletes by vectors, each of which covers all rows of its file that are deleted by now."""
        actions = []
        for path, (_, held) in self._held.items():
            positions = {i for i, row_id in enumerate(self._table_names(held)[ROW_ID].to_pylist()) if row_id in row_ids}
            if positions:
                whole = self._gone[path] = self._gone.get(path, set()) | positions
                (vector,) = stored_vectors(self.directory, [sorted(whole)])
                actions += [self._remove(path), {"add": {**self._added(path), "deletionVector": vector}}]
                stats = actions[-1]["add"].get("stats")
                if stats is not None:
                    actions[-1]["add"]["stats"] = json.dumps({**json.loads(stats), "tightBounds": False})
        self.log.commit(*actions)
        self.changed()

    # ---- versions

    def snapshot(self) -> PastVersion:
        return PastVersion(self.log.version, self.rows)


def statistics(rows: pa.Table) -> Action:
    """What the log says of a file: times cut to milliseconds, texts to some characters, NaN left out."""
    lower, upper, nulls = {}, {}, {}
    for name in rows.column_names:
        column = rows[name].combine_chunks()
        bounds = _bounds(column)
        nulls[name] = column.null_count
        if bounds is not None:
            lower[name], upper[name] = bounds
    return {"numRecords": len(rows), "minValues": lower, "maxValues": upper, "nullCount": nulls}


def _bounds(column: pa.Array) -> tuple[Any, Any] | None:
    if pa.types.is_floating(column.type):
        column = column.filter(pc.fill_null(pc.invert(pc.is_nan(column)), False))
    known = pa.types.is_primitive(column.type) or pa.types.is_string(column.type) or pa.types.is_decimal(column.type)
    if not known or pa.types.is_boolean(column.type) or column.null_count == len(column):
        return None
    extremes = pc.min_max(column)
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    if isinstance(low, str):
        breaker = "\x7f" if high[MOST_CHARACTERS : MOST_CHARACTERS + 1] < "\x7f" else "\U0010ffff"
        return low[:MOST_CHARACTERS], high if len(high) <= MOST_CHARACTERS else high[:MOST_CHARACTERS] + breaker
    return _plain(low), _plain(high)


def _plain(value: Any) -> Any:
    match value:
        case dt.datetime():
            text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
            return text if value.tzinfo is None else text + "Z"
        case dt.date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
    return value


def _text(value: pa.Scalar) -> str | None:
    """A partition value as the log has it."""
    plain = value.as_py()
    match plain:
        case None:
            return None
        case bool():
            return str(plain).lower()
        case dt.datetime():
            return plain.isoformat(sep=" ") if plain.tzinfo is None else plain.isoformat().replace("+00:00", "Z")
    return str(plain)


def _stored(type_: pa.DataType) -> pa.DataType:
    """The nearest type that Delta has. Raises NotApplicable."""
    if pa.types.is_dictionary(type_):
        return _stored(type_.value_type)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_stored(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(pa.field("element", _stored(type_.value_type)))
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz and "UTC")
    if pa.types.is_unsigned_integer(type_) or pa.types.is_time(type_):
        raise NotApplicable(f"Delta has no {type_}")
    return type_


def _in_file(type_: pa.DataType) -> pa.DataType:
    return type_ if pa.types.is_dictionary(type_) else _stored(type_)


def _wider(field: pa.Field, wanted: pa.Schema) -> pa.Field:
    """The column with the wider of its type and the type in new files. Raises NotApplicable."""
    if field.name not in wanted.names:
        return field
    return field.with_type(_widest(field.type, wanted.field(field.name).type))


def _widest(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if a == b:
        return a
    if a in _INTEGERS and b in _INTEGERS:
        return max(a, b, key=_INTEGERS.index)
    if pa.types.is_floating(a) and pa.types.is_floating(b):
        return pa.float64()
    if pa.types.is_decimal(a) and pa.types.is_decimal(b):
        scale = max(a.scale, b.scale)
        return pa.decimal128(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        schema, other = pa.schema(list(a)), pa.schema(list(b))
        added = [field for field in other if field.name not in schema.names]
        return pa.struct([*(_wider(field, other) for field in schema), *added])
    raise NotApplicable(f"Delta does not widen {a} and {b} to one type")
