"""The state of a Delta table at one version: its protocol, its metadata, and its live files by columns.

Source: Delta's protocol, "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags
from secateur.errors import TableNotFound
from secateur.io.tables.delta.actions import (
    PARSED,
    CheckpointFile,
    LogReader,
    TableActions,
    changes_schema,
    sidecar_name,
    vector_ids,
)
from secateur.io.tables.delta.log_files import LogFile, Replay
from secateur.io.tables.delta.schema import TableMetadata, metadata_of

LOG_THREADS = 16


@dataclass(frozen=True)
class LogState:
    """A table at one version."""

    version: int
    mark: LogFile | None  # the commit of the version
    protocol: Mapping[str, Any]
    declared: Mapping[str, Any]  # the metadata as the log has it
    metadata: TableMetadata
    files: pa.Table  # the live files; columns as in `changes_schema`

    @cached_property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return int(self.files.nbytes)


def state_of(reader: LogReader, replay: Replay) -> LogState:
    """Read the state from a checkpoint and the commits after it.

    Raises TableNotFound if a file of the log is missing or malformed, UnsupportedTable.
    """
    checkpoint = None if replay.checkpoint is None else _Opened.of(reader, replay.checkpoint.files)
    tail = _tail(reader, replay.commits)
    actions = (TableActions() if checkpoint is None else checkpoint.actions).then(tail.actions)
    metadata = _metadata(reader, replay.version, actions)
    columns = metadata.partition_columns
    parts = [] if checkpoint is None else checkpoint.changes(columns)
    return _state(replay, actions, metadata, [*parts, tail.changes(columns)])


def advanced(reader: LogReader, before: LogState, commits: Sequence[LogFile], replay: Replay) -> LogState | None:
    """Return the state after some more commits; None if they change the partitioning. Raises as :func:`state_of`."""
    tail = _tail(reader, commits)
    actions = TableActions(before.protocol, before.declared).then(tail.actions)
    metadata = before.metadata if tail.actions == TableActions() else _metadata(reader, replay.version, actions)
    if metadata.partition_columns != before.metadata.partition_columns:
        return None
    return _state(replay, actions, metadata, [before.files, tail.changes(metadata.partition_columns)])


def _metadata(reader: LogReader, version: int, actions: TableActions) -> TableMetadata:
    if actions.protocol is None or actions.metadata is None:
        lacking = "protocol" if actions.protocol is None else "metadata"
        raise TableNotFound(f"the log of {reader.redacted} has no {lacking} up to version {version}")
    return metadata_of(actions.protocol, actions.metadata, reader.redacted)


def _state(replay: Replay, actions: TableActions, metadata: TableMetadata, parts: Sequence[pa.Table]) -> LogState:
    assert actions.protocol is not None and actions.metadata is not None, "the caller has checked that the log has both"
    files = reconciled(parts, changes_schema(metadata.partition_columns))
    return LogState(replay.version, replay.last, actions.protocol, actions.metadata, metadata, files)


def reconciled(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Return the live files after some changes, the oldest first.

    If several changes concern one path and deletion vector, the last one counts.
    """
    types = [part.schema.field(PARSED).type for part in parts if PARSED in part.column_names]
    if types:
        parts = [_with_parsed(part, types[0]) for part in parts]
        schema = schema.append(pa.field(PARSED, types[0]))
    table = pa.concat_tables([part.cast(schema) if part.schema != schema else part for part in parts])
    if not len(table):
        return table
    is_add = table["is_add"].combine_chunks().to_numpy(zero_copy_only=False)
    if are_ascending(table["path"]):  # no two changes concern one file
        return table if is_add.all() else table.filter(flags(is_add))
    keys = table["path"]
    if table["vector"].null_count < len(table):
        keys = pc.binary_join_element_wise(keys, _vector_ids(table["vector"]), "\0")
    codes = pc.dictionary_encode(keys.combine_chunks() if keys.nbytes < 2**31 else keys.cast(pa.large_string()))
    code = _codes(codes)
    places = np.arange(len(code))
    last = np.empty(int(code.max()) + 1, np.int64)
    last[code] = places  # the last assignment wins
    live = np.flatnonzero((last[code] == places) & is_add)
    return table if len(live) == len(table) else table.take(pa.array(live))


def are_ascending(paths: pa.ChunkedArray) -> bool:
    """Return whether every path is greater than the one before it."""
    whole = paths.combine_chunks()
    return bool(pc.all(pc.less(whole[:-1], whole[1:])).as_py())


def _with_parsed(part: pa.Table, type_: pa.DataType) -> pa.Table:
    if PARSED in part.column_names and part.schema.field(PARSED).type == type_:
        return part
    kept = part.drop_columns(PARSED) if PARSED in part.column_names else part
    return kept.append_column(PARSED, pa.nulls(len(part), type_))


def _vector_ids(vectors: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([vector_ids(chunk) for chunk in vectors.chunks], pa.string())


def _codes(encoded: pa.DictionaryArray | pa.ChunkedArray) -> np.ndarray:
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    codes: np.ndarray = encoded.indices.to_numpy().astype(np.int64)
    return codes


@dataclass(frozen=True)
class _Tail:
    """Commits, oldest first: their names and bytes."""

    reader: LogReader
    commits: tuple[tuple[str, bytes], ...]

    @cached_property
    def actions(self) -> TableActions:
        actions = TableActions()
        for name, data in self.commits:
            actions = actions.then(self.reader.table_actions(name, data))
        return actions

    def changes(self, partition_columns: Sequence[str]) -> pa.Table:
        """Return the changes of all commits, which are parsed at once."""
        try:
            contents = [data for _, data in self.commits]
            joined = contents[0] if len(contents) == 1 else b"\n".join(contents)
            return self.reader.json_changes("", joined, partition_columns)
        except TableNotFound:
            for name, data in self.commits:  # which one it is
                self.reader.json_changes(name, data, partition_columns)
            raise


def _tail(reader: LogReader, commits: Sequence[LogFile]) -> _Tail:
    with ThreadPoolExecutor(LOG_THREADS) as threads:
        contents = threads.map(reader.bytes_of, [file.name for file in commits])
        return _Tail(reader, tuple((file.name, data) for file, data in zip(commits, contents, strict=True)))


@dataclass(frozen=True)
class _Opened:
    """A checkpoint: its files, which are Parquet or one of JSON, and their sidecars."""

    reader: LogReader
    json: tuple[str, bytes] | None
    parts: tuple[CheckpointFile, ...]
    actions: TableActions

    @staticmethod
    def of(reader: LogReader, files: Sequence[LogFile]) -> _Opened:
        first = files[0].name
        if first.endswith(".json"):
            data = reader.bytes_of(first)
            actions, json, parts = reader.table_actions(first, data), (first, data), ()
            return _Opened(reader, json, parts, actions)
        with ThreadPoolExecutor(LOG_THREADS) as threads:
            opened = tuple(threads.map(lambda file: reader.parquet(file.name), files))
            in_parts = list(threads.map(lambda part: part.table_actions, opened))
        actions = TableActions()
        for part in in_parts:
            actions = TableActions(
                part.protocol or actions.protocol,
                part.metadata or actions.metadata,
                (*actions.sidecars, *part.sidecars),
            )
        return _Opened(reader, None, opened, actions)

    def changes(self, partition_columns: Sequence[str]) -> list[pa.Table]:
        """Return the files of the checkpoint and of its sidecars, which are read in parallel."""
        json_changes = [] if self.json is None else [self.reader.json_changes(*self.json, partition_columns)]
        names = [sidecar_name(path) for path in self.actions.sidecars]
        with ThreadPoolExecutor(LOG_THREADS) as threads:
            sidecars = list(threads.map(self.reader.parquet, names))
            return [*json_changes, *threads.map(lambda part: part.changes(partition_columns), (*self.parts, *sidecars))]
