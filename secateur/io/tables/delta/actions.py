"""Read the files of a Delta log by columns: which data files are added and removed, and the table's metadata.

Source: Delta's protocol, "Actions", "Checkpoint Schema", "Sidecar Files".
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq

from secateur.arrays import present, truths
from secateur.errors import SecateurError, TableNotFound
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.redaction import trouble
from secateur.io.tables.delta.log_files import LOG_DIRECTORY, SIDECARS

BLOCK_BYTES = 4 << 20  # parsed at once by one thread; a line must fit into it
WHOLE_BYTES = 1 << 30  # of a checkpoint's columns that are read in one piece; Arrow's nested texts end at 2 GiB
PARSED = "parsed"  # column with a checkpoint's typed statistics
_VECTOR = {
    "storageType": pa.string(),
    "pathOrInlineDv": pa.string(),
    "offset": pa.int64(),
    "sizeInBytes": pa.int64(),
    "cardinality": pa.int64(),
}
_ADD = {"path": pa.string(), "size": pa.int64(), "modificationTime": pa.int64(), "stats": pa.string()}
_SINGLE = re.compile(rb'"(?:protocol|metaData|sidecar)"')
_ADDED = tuple(  # begin a line that has no other action, as an action is a line
    np.frombuffer(text, np.uint8) for text in (b'{"add":{', b'{"add": {')
)


Rows = TypeVar("Rows", pa.RecordBatch, pa.StructArray)


@dataclass(frozen=True)
class TableActions:
    """The actions in a part of a log that are about no data file: the newest protocol and metadata, and sidecars."""

    protocol: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    sidecars: tuple[str, ...] = ()

    def then(self, later: TableActions) -> TableActions:
        """Return what holds after a later part."""
        return TableActions(later.protocol or self.protocol, later.metadata or self.metadata)


@dataclass(frozen=True)
class LogReader:
    """Reads the files of one table's log."""

    filesystem: FileSystem
    root: str
    redacted: str

    def bytes_of(self, name: str) -> bytes:
        """Return a file's bytes. Raises TableNotFound, AccessDenied."""
        with self._opened(name) as file:
            return bytes(file.read())

    def parquet(self, name: str) -> CheckpointFile:
        """Open a checkpoint of Parquet, or a sidecar. Raises TableNotFound, AccessDenied."""
        with self._naming(name):
            file = self.filesystem.open_input_file(self._path(name))
            return CheckpointFile(self, name, pq.ParquetFile(file, pre_buffer=True))

    def json_changes(self, name: str, data: bytes, partition_columns: Sequence[str]) -> pa.Table:
        """Return the added and removed files in the lines of some files, in order. Raises TableNotFound."""
        with self._naming(name):
            return json_changes(data, partition_columns)

    def data_changes(self, name: str, data: bytes) -> np.ndarray:
        """Return which of these changes change the table's data. Raises TableNotFound."""
        with self._naming(name):
            return data_changes(data)

    def table_actions(self, name: str, data: bytes) -> TableActions:
        """Return the actions about the table in some lines. Raises TableNotFound."""
        with self._naming(name):
            return table_actions(data)

    def _path(self, name: str) -> str:
        return posixpath.join(self.root, LOG_DIRECTORY, name)

    @contextmanager
    def _opened(self, name: str) -> Iterator[pa.NativeFile]:
        with self._naming(name), self.filesystem.open_input_file(self._path(name)) as file:
            yield file

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Name the file that cannot be read in the error raised."""
        try:
            yield
        except SecateurError:
            raise
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise trouble(f"cannot read {self.redacted}/{LOG_DIRECTORY}/{name}", error, TableNotFound) from None


@dataclass(frozen=True, eq=False)
class CheckpointFile:
    """One open file of a checkpoint."""

    reader: LogReader
    name: str
    file: pq.ParquetFile

    @property
    def table_actions(self) -> TableActions:
        """The actions about the table."""
        with self.reader._naming(self.name):
            names = [name for name in ("protocol", "metaData", "sidecar") if name in self.file.schema_arrow.names]
            table = self.file.read(columns=names)
            rows = {name: table[name].drop_null().to_pylist() for name in names}
            sidecars = tuple(str(row["path"]) for row in rows.get("sidecar", ()))
            last = {name: values[-1] for name, values in rows.items() if values}
            metadata = last.get("metaData")
            if metadata is not None:
                metadata = {**metadata, "configuration": dict(metadata.get("configuration") or ())}
            return TableActions(last.get("protocol"), metadata, sidecars)

    def changes(self, partition_columns: Sequence[str]) -> pa.Table:
        """Return the added files. Files that a checkpoint lists as removed were removed before it."""
        with self.reader._naming(self.name):
            schema = self.file.schema_arrow
            if "add" not in schema.names:
                return changes_schema(partition_columns).empty_table()
            names = schema.field("add").type.names
            wanted = [name for name in (*_ADD, "partitionValues", "deletionVector") if name in names]
            batches = [_of_checkpoint(add, partition_columns) for add in self._added(wanted)]
            if not batches:
                return changes_schema(partition_columns).empty_table()
            table = pa.Table.from_batches(batches)
            if "stats_parsed" not in names or table["stats"].null_count < len(table):
                return table  # where there are both, they say the same
            parsed = [pc.struct_field(_present(add), "stats_parsed") for add in self._added(["path", "stats_parsed"])]
            return table.append_column(PARSED, pa.chunked_array(parsed))

    def _added(self, names: Sequence[str]) -> Iterator[pa.StructArray]:
        """Yield some fields of the column of added files."""
        columns = [f"add.{name}" for name in names]
        is_small = sum(group.total_byte_size for group in map(self.file.metadata.row_group, self._groups)) < WHOLE_BYTES
        rows = max(1, self.file.metadata.num_rows) if is_small else 65_536
        yield from (batch.column(0) for batch in self.file.iter_batches(rows, columns=columns))

    @property
    def _groups(self) -> range:
        return range(self.file.metadata.num_row_groups)


def sidecar_name(path: str) -> str:
    """Return a sidecar's name in the log. Raises TableNotFound if it lies elsewhere."""
    name = posixpath.basename(path)
    if path not in (name, f"{SIDECARS}/{name}"):
        raise TableNotFound(f"the sidecar {path} of a checkpoint is not in {LOG_DIRECTORY}/{SIDECARS}")
    return f"{SIDECARS}/{name}"


def table_actions(data: bytes) -> TableActions:
    """Return the last protocol and metadata, and all sidecars, of lines of JSON."""
    actions = TableActions()
    for line in _other_lines(data):
        if not _SINGLE.search(line):
            continue
        action = json.loads(line)
        sidecar = action.get("sidecar")
        own_sidecars = (str(sidecar["path"]),) if sidecar else ()
        protocol, metadata = (action.get(name) or before for name, before in _before(actions))
        actions = TableActions(protocol, metadata, (*actions.sidecars, *own_sidecars))
    return actions


def _other_lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines that do not add a file; these are nearly all of a long log."""
    array = np.frombuffer(data, np.uint8)
    ends = np.append(np.flatnonzero(array == ord("\n")), len(array))
    starts = np.append(0, ends[:-1] + 1)
    is_other = np.ones(len(starts), bool)
    for beginning in _ADDED:
        known = np.flatnonzero(is_other & (ends - starts > len(beginning)))
        begins = array[starts[known][:, np.newaxis] + np.arange(len(beginning))]
        is_other[known[(begins == beginning).all(axis=1)]] = False
    yield from (data[starts[i] : ends[i]] for i in np.flatnonzero(is_other).tolist())


def _before(actions: TableActions) -> tuple[tuple[str, Any], tuple[str, Any]]:
    return ("protocol", actions.protocol), ("metaData", actions.metadata)


# ---- added and removed files -----------------------------------------------------------------------------------------


def changes_schema(partition_columns: Sequence[str]) -> pa.Schema:
    """Return the columns of changes: whether a file was added, the file, its partition values as text, its vector."""
    return pa.schema(
        [
            ("is_add", pa.bool_()),
            ("path", pa.string()),
            ("size", pa.int64()),
            ("modified", pa.int64()),  # milliseconds since the epoch
            ("stats", pa.large_string()),
            ("partition", _partition_type(partition_columns)),
            ("vector", pa.struct(_VECTOR)),
        ]
    )


def _partition_type(columns: Sequence[str]) -> pa.StructType:
    return pa.struct([(name, pa.string()) for name in columns])


def json_changes(data: bytes, partition_columns: Sequence[str]) -> pa.Table:
    """Return the files that lines of JSON add and remove, in order. Raises ArrowInvalid, ValueError."""
    schema = changes_schema(partition_columns)
    if _is_blank(data):
        return schema.empty_table()
    vector = pa.struct(_VECTOR)
    add = pa.struct([*_ADD.items(), ("deletionVector", vector), *_if_any(partition_columns)])
    remove = pa.struct([("path", pa.string()), ("deletionVector", vector)])
    table = _parsed(data, pa.schema([("add", add), ("remove", remove)]))
    batches = [_of_lines(batch, schema) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, schema)


def data_changes(data: bytes) -> np.ndarray:
    """Return which of the changes of :func:`json_changes` change the table's data: bool of shape (n_changes,).

    The others only rewrite rows that the table has already. An action without the flag counts as changing data.
    """
    if _is_blank(data):
        return np.zeros(0, bool)
    action = pa.struct([("path", pa.string()), ("dataChange", pa.bool_())])
    table = _parsed(data, pa.schema([("add", action), ("remove", action)]))
    parts = []
    for batch in table.to_batches():
        add, remove = batch.column("add"), batch.column("remove")
        stated = pc.coalesce(*(pc.struct_field(action_column, "dataChange") for action_column in (add, remove)))
        parts.append(truths(pc.fill_null(stated, True))[present(add) | present(remove)])
    return np.concatenate([np.zeros(0, bool), *parts])


def _is_blank(data: bytes) -> bool:
    return not data or data.isspace()


def _parsed(data: bytes, schema: pa.Schema) -> pa.Table:
    """Parse lines of JSON. Raises ArrowInvalid."""
    parsing = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    block_size = min(len(data), max(BLOCK_BYTES, _longest_line(data))) + 1
    reading = pj.ReadOptions(use_threads=len(data) >= block_size, block_size=block_size)  # a block is a thread's work
    return pj.read_json(pa.BufferReader(data), read_options=reading, parse_options=parsing)


def _longest_line(data: bytes) -> int:
    """Return a bound on the bytes of a line: that of a block where every half of a block has the end of a line."""
    half = BLOCK_BYTES // 2
    if all(data.find(b"\n", start, start + half) >= 0 for start in range(0, len(data) - half, half)):
        return BLOCK_BYTES
    return max(len(line) for line in data.split(b"\n"))


def _if_any(partition_columns: Sequence[str]) -> list[tuple[str, pa.DataType]]:
    return [("partitionValues", _partition_type(partition_columns))] if partition_columns else []


def _of_lines(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the changes among some lines."""
    batch = _where(batch, pc.or_(pc.is_valid(batch.column("add")), pc.is_valid(batch.column("remove"))))
    add, remove = batch.column("add"), batch.column("remove")
    is_add = pc.is_valid(add)
    path = pc.if_else(is_add, pc.struct_field(add, "path"), pc.struct_field(remove, "path"))
    added_vector, removed_vector = (pc.struct_field(action_column, "deletionVector") for action_column in (add, remove))
    values = pa.nulls(len(add), schema.field("partition").type)
    if add.type.get_field_index("partitionValues") >= 0:
        values = pc.struct_field(add, "partitionValues")
    return _changes(
        is_add,
        path,
        pc.struct_field(add, "size"),
        pc.struct_field(add, "modificationTime"),
        pc.struct_field(add, "stats"),
        values,
        pc.if_else(is_add, added_vector, removed_vector),
    )


def _of_checkpoint(add: pa.StructArray, partition_columns: Sequence[str]) -> pa.RecordBatch:
    """Return the files among the rows of a checkpoint."""
    names = {field.name for field in add.type}

    def column(name: str, type_: pa.DataType) -> pa.Array:
        return pc.struct_field(add, name).cast(type_) if name in names else pa.nulls(len(add), type_)

    add = _present(add)
    n = len(add)
    values: pa.Array = pa.nulls(n, _partition_type(partition_columns))
    if partition_columns and "partitionValues" in names:
        texts = pc.struct_field(add, "partitionValues")
        partition_values = [
            pc.map_lookup(texts, pa.scalar(name), "first").cast(pa.string()) for name in partition_columns
        ]
        values = pa.StructArray.from_arrays(partition_values, names=list(partition_columns))
    vectors: pa.Array = pa.nulls(n, pa.struct(_VECTOR))
    if "deletionVector" in names:
        logged = pc.struct_field(add, "deletionVector")
        logged_names = {field.name for field in logged.type}
        parts = [
            pc.struct_field(logged, name).cast(type_) if name in logged_names else pa.nulls(n, type_)
            for name, type_ in _VECTOR.items()
        ]
        vectors = pa.StructArray.from_arrays(parts, names=list(_VECTOR), mask=pc.is_null(logged))
    return _changes(
        pa.repeat(True, n),
        column("path", pa.string()),
        column("size", pa.int64()),
        column("modificationTime", pa.int64()),
        column("stats", pa.string()),
        values,
        vectors,
    )


def _present(add: pa.StructArray) -> pa.StructArray:
    """Return the rows of a checkpoint that add a file."""
    return _where(add, pc.is_valid(pc.struct_field(add, "path")))


def _where(rows: Rows, mask: pa.BooleanArray) -> Rows:
    """Return the rows that a mask chooses, without copying them where they lie one after the other."""
    chosen = np.flatnonzero(truths(mask))
    if len(chosen) and chosen[-1] - chosen[0] + 1 == len(chosen):
        return rows.slice(chosen[0], len(chosen))
    return rows.filter(mask)


def _changes(
    is_add: pa.Array,
    path: pa.Array,
    size: pa.Array,
    modified: pa.Array,
    stats: pa.Array,
    partition: pa.Array,
    vector: pa.Array,
) -> pa.RecordBatch:
    """Return changes as a batch. Raises ValueError if one has no path, or an added file no size."""
    if path.null_count or pc.any(pc.and_(is_add, pc.is_null(size))).as_py():
        raise ValueError("a file is added or removed without a path, or added without a size")
    columns = {
        "is_add": is_add,
        "path": decoded_paths(path),
        "size": size,
        "modified": pc.fill_null(modified, 0),
        "stats": stats.cast(pa.large_string()),
        "partition": partition,
        "vector": vector,
    }
    return pa.RecordBatch.from_pydict(columns)


def decoded_paths(paths: pa.Array) -> pa.Array:
    """Return the paths of a log, which are parts of URIs, without their escapes."""
    if not pc.any(pc.match_substring(paths, "%")).as_py():
        return paths
    folders = pc.replace_substring_regex(paths, "[^/]*$", "").dictionary_encode()
    plain = pa.array([unquote(text) for text in folders.dictionary.to_pylist()], pa.string())
    names = pc.replace_substring_regex(paths, "^(.*/)?", "")
    if pc.any(pc.match_substring(names, "%")).as_py():
        names = pa.array([unquote(text) for text in names.to_pylist()], pa.string())
    return pc.binary_join_element_wise(plain.take(folders.indices), names, "")


def vector_ids(vectors: pa.Array) -> pa.Array:
    """Return the unique id of every deletion vector; empty for a file without one."""
    kind, path, offset = (pc.struct_field(vectors, name) for name in ("storageType", "pathOrInlineDv", "offset"))
    at = pc.binary_join_element_wise("@", offset.cast(pa.string()), "")
    ids = pc.binary_join_element_wise(kind, path, pc.fill_null(at, ""), "")
    return pc.fill_null(ids, "")
