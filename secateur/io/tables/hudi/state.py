"""What a Hudi table is at an instant: its schema and its live files, read from the timeline and a listing."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import TableNotFound, UnsupportedTable
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.redaction import trouble
from secateur.io.tables.hudi.commits import Commit, CommitReader
from secateur.io.tables.hudi.found_files import FilesBelow, NamedFiles, find_files
from secateur.io.tables.hudi.instants import time_of
from secateur.io.tables.hudi.live_files import InstantView, groups_with_logs
from secateur.io.tables.hudi.properties import TableProperties
from secateur.io.tables.hudi.schema import schema_of
from secateur.io.tables.hudi.timeline import InstantFile, Timeline, list_timeline

_MILLISECOND = 1_000_000  # nanoseconds
_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # directory of rows whose value is NULL
Commits = Mapping[tuple[int, InstantFile], Commit]


@dataclass(frozen=True, eq=False)
class HudiState:
    """A table at an instant."""

    properties: TableProperties
    timeline: Timeline
    commits: Commits
    instant: int  # of the last commit that counts; 0 if there is none
    schema: pa.Schema
    files: NamedFiles  # the live base files, by path
    size: np.ndarray

    @property
    def partition_fields(self) -> tuple[pa.Field, ...]:
        """The columns that files lack, because paths have their values."""
        return tuple(self.schema.field(name) for name in self._dropped)

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns that files hold."""
        return pa.schema([field for field in self.schema if field.name not in self._dropped])

    @property
    def _dropped(self) -> tuple[str, ...]:
        return self.properties.partition_columns if self.properties.partitions_dropped else ()

    @cached_property
    def stamp(self) -> np.ndarray:
        """When the commit of every file began, in nanoseconds since the epoch."""
        instants, at = np.unique(self.files.instant, return_inverse=True)
        times = [time_of(instant, is_utc=True).timestamp() for instant in instants.tolist()]
        stamps: np.ndarray = (np.round(np.array(times, float) * 1000).astype(np.int64) * _MILLISECOND)[at]
        return stamps

    def partition_texts(self) -> pa.StructArray:
        """Return the values of the columns that files lack, from the names of directories.

        Raises UnsupportedTable if a path has fewer or more parts than there are columns.
        """
        names = self._dropped
        directories = pc.replace_substring_regex(self.files.paths, "/?[^/]*$", "").dictionary_encode()
        rows = [_values(directory, names) for directory in directories.dictionary.to_pylist()]
        columns = [pa.array([row[i] for row in rows], pa.string()).take(directories.indices) for i in range(len(names))]
        return pa.StructArray.from_arrays(columns, names=list(names))


def _values(directory: str, names: tuple[str, ...]) -> list[str | None]:
    parts = directory.split("/")
    if len(parts) != len(names):
        raise UnsupportedTable(f"the partition {directory} does not tell the values of {', '.join(names)}")
    values = [unquote(part.removeprefix(f"{name}=")) for part, name in zip(parts, names, strict=True)]
    return [None if value == _DEFAULT_PARTITION else value for value in values]


@dataclass(frozen=True)
class StateReader:
    """Reads the state of one table."""

    filesystem: FileSystem
    root: str
    redacted: str
    properties: TableProperties
    read_optimized: bool

    def timeline(self) -> Timeline:
        """List the active timeline now. Raises TableNotFound, UnsupportedTable."""
        return list_timeline(self.filesystem, self.root, self.properties, self.redacted)

    def state(self, timeline: Timeline, instant: int, known: Commits) -> HudiState:
        """Read the state at an instant of the timeline. Commits that are `known` are not read again.

        Raises TableNotFound if something is missing or broken, UnknownSnapshot if files of the instant have been
        cleaned, UnsupportedTable if rows are in log files.
        """
        reader = CommitReader(self.filesystem, self.root, timeline)
        commits = reader.commits(known)
        below = self._files_below()
        view = InstantView(timeline, tuple(commits.values()), below.base_files, instant, reader.rolled_back)
        live = view.live()
        if not self.read_optimized:
            self._require_no_logs(view, live, below)
        order = pc.sort_indices(live.paths)
        live = live.take(order.to_numpy().astype(np.int64))
        at = pc.index_in(live.paths, value_set=below.listed.paths).to_numpy()
        schema = self._schema(view)
        return HudiState(self.properties, timeline, commits, instant, schema, live, below.listed.size[at])

    def _files_below(self) -> FilesBelow:
        try:
            return find_files(self.filesystem, self.root)
        except (OSError, UnicodeError, pa.ArrowException) as error:
            raise trouble(f"cannot list {self.redacted}", error, TableNotFound) from None

    def _require_no_logs(self, view: InstantView, live: NamedFiles, below: FilesBelow) -> None:
        logs = below.log_files
        groups = groups_with_logs(view, live, logs, log_names_base=self.properties.log_names_base)
        if len(groups):
            raise UnsupportedTable(
                f"{self.redacted} is merged on read: {len(groups):,} of its file groups have log files, whose rows "
                f"are not in base files ({posixpath.join(self.redacted, groups[0].as_py())} for one). Compact it, or "
                "open it with read_optimized=True for the rows as of the last compactions"
            )

    def _schema(self, view: InstantView) -> pa.Schema:
        """Return the columns by the last commit that tells them."""
        schemas = [commit.schema for commit in view.commits if commit.schema and commit.instant <= view.instant]
        text = schemas[-1] if schemas else self.properties.created_schema
        if text is None:
            raise TableNotFound(f"no commit of {self.redacted} tells its schema, and neither do its properties")
        return schema_of(text, self.properties, self.redacted)
