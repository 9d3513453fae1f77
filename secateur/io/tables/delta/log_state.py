"""The state of a Delta table at one version: its protocol, its metadata, and its live files by columns.

Source: Delta's protocol, "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from secateur.concurrency import at_once
from secateur.errors import TableNotFound
from secateur.io.tables.delta.actions import CheckpointFile, LogReader, TableActions, changes_schema, sidecar_name
from secateur.io.tables.delta.live_files import merged, reconciled
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
    files: pa.Table  # the live files, ordered by path; columns as in `changes_schema`

    @cached_property
    def paths(self) -> pa.Array:
        """The paths of the live files."""
        return self.files["path"].combine_chunks()

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
    files = reconciled([*parts, tail.changes(columns)], changes_schema(columns))
    return _state(replay, actions, metadata, files)


def advanced(reader: LogReader, before: LogState, commits: Sequence[LogFile], replay: Replay) -> LogState | None:
    """Return the state after some more commits; None if they change the partitioning. Raises as :func:`state_of`."""
    tail = _tail(reader, commits)
    actions = TableActions(before.protocol, before.declared).then(tail.actions)
    metadata = before.metadata if tail.actions == TableActions() else _metadata(reader, replay.version, actions)
    if metadata.partition_columns != before.metadata.partition_columns:
        return None
    files = merged(before.files, before.paths, tail.changes(metadata.partition_columns))
    return _state(replay, actions, metadata, files)


def _metadata(reader: LogReader, version: int, actions: TableActions) -> TableMetadata:
    if actions.protocol is None or actions.metadata is None:
        lacking = "protocol" if actions.protocol is None else "metadata"
        raise TableNotFound(f"the log of {reader.redacted} has no {lacking} up to version {version}")
    return metadata_of(actions.protocol, actions.metadata, reader.redacted)


def _state(replay: Replay, actions: TableActions, metadata: TableMetadata, files: pa.Table) -> LogState:
    assert actions.protocol is not None and actions.metadata is not None, "the caller has checked that the log has both"
    return LogState(replay.version, replay.last, actions.protocol, actions.metadata, metadata, files)


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
    contents = at_once(reader.bytes_of, [file.name for file in commits], LOG_THREADS)
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
        opened = tuple(at_once(lambda file: reader.parquet(file.name), files, LOG_THREADS))
        in_parts = at_once(lambda part: part.table_actions, opened, LOG_THREADS)
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
        files = (*self.parts, *at_once(self.reader.parquet, names, LOG_THREADS))
        return [*json_changes, *at_once(lambda part: part.changes(partition_columns), files, LOG_THREADS)]
