"""Find what came between two versions of a Delta table, by the commits in its log.

An action says whether it changes data. Compactions, and other rewrites of rows that the table has already, do not.
Source: Delta's protocol, "Add File and Remove File".
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import truths
from secateur.concurrency import at_once
from secateur.errors import MixedRewrite, TableChanged, UnknownSnapshot
from secateur.io.tables.delta.actions import LogReader, changes_schema
from secateur.io.tables.delta.live_files import reconciled
from secateur.io.tables.delta.log_files import LogFile, LogListing, commit_name, list_log
from secateur.io.tables.delta.log_state import LOG_THREADS, state_of
from secateur.io.tables.delta.snapshot import DeltaSnapshot
from secateur.io.tables.history import ALL, AppendedFiles, NewFiles
from secateur.io.tables.listing import Listing

_NEITHER, _OLD, _NEW, _BOTH = range(4)  # bits: a file has rows from before a version, rows from after it, or both


@dataclass(frozen=True)
class DeltaHistory:
    """The versions up to one of them; see :class:`secateur.io.tables.history.History`."""

    table: DeltaSnapshot

    def identity_at(self, snapshot: int | None) -> str:
        """Return the id that the table's metadata has."""
        return str(self.table.state.declared.get("id"))

    def newest(self) -> int | None:
        """Return the version that is read."""
        return self.table.id

    def snapshot_of(self, listing: Listing) -> int | None:
        """Return the snapshot itself: every listing belongs to one."""
        return self.table.id

    def new_files(self, since: int, listing: Listing) -> NewFiles:
        """Return the live files that were added after a version, by commits that changed data.

        A file that was live at that version is not new, even if it has got a deletion vector since. Files that other
        commits wrote hold no new rows if all files that these commits removed were there before, and only new rows if
        none of them was.
        """
        if since == self.table.id:
            return NewFiles(np.zeros(0, np.int64))
        commits = self._between(since, self.table.id)
        then = pa.array([], pa.string())
        if any(commit.moves_rows for commit in commits):  # else the changes are enough to know what was there
            then = state_of(self._reader, self._log.replay(since)).files["path"].combine_chunks()
        paths = pa.chunked_array([then, *(commit.paths for commit in commits)]).combine_chunks().dictionary_encode()
        code = paths.indices.to_numpy().astype(np.int64)
        sides = np.full(len(paths.dictionary), _NEITHER)
        sides[code[: len(then)]] = _OLD
        begin, mixing = len(then), []
        for commit in commits:
            end = begin + len(commit.paths)
            if _follow(sides, code[begin:end], commit):
                mixing.append(commit.version)
            begin = end
        at = pc.fill_null(pc.index_in(listing.paths, value_set=paths.dictionary), -1).to_numpy()
        side = np.append(sides, _OLD)[at]  # no commit since names the others
        if (side == _BOTH).any():
            version = mixing[0] - 1
            raise MixedRewrite(
                f"version {version + 1} of {self.table.location} rewrote rows from before and from after version "
                f"{since} into the same files: read up to the one before it, by "
                f"prune(open_table(..., version={version}), ..., since={since}), and go on with since={version + 1}"
            )
        return NewFiles(np.flatnonzero(side == _NEW))

    def appended(
        self, after: int | None, upto: int | None, zone: dt.tzinfo, *, skip_changes: bool, part: slice = ALL
    ) -> AppendedFiles:
        """Return the files of commits that removed no rows; without a first version, all files of the table."""
        assert upto is not None, "a Delta table has a version"
        if after is None:
            state = state_of(self._reader, self._log.replay(upto))
            at_last = self._with(state.files)
            return AppendedFiles(at_last, at_last.listing(zone)).take(part)
        parts = []
        for commit in self._between(after, upto):
            if not commit.removes_rows:
                parts.append(commit.appended)
            elif not skip_changes:
                raise TableChanged(
                    f"version {commit.version} of {self.table.location} removes or changes rows, and a stream cannot "
                    "say which ones. Set the option skip_changes to go on without the rows of such versions, or begin "
                    f"anew with another checkpoint and since={commit.version}"
                )
        columns = changes_schema(self._partition_columns)
        at_last = self._with(reconciled([columns.empty_table(), *parts], columns))
        listing = at_last.listing(zone)
        sizes = self.table.state.files["size"]
        return AppendedFiles(at_last, replace(listing, left_out=pc.sum(sizes).as_py() or 0)).take(part)

    def appended_sizes(self, after: int | None, upto: int | None, zone: dt.tzinfo, *, skip_changes: bool) -> np.ndarray:
        """Return the bytes of the appended files, in order."""
        return self.appended(after, upto, zone, skip_changes=skip_changes).listing.size

    @cached_property
    def _log(self) -> LogListing:
        return list_log(self.table.places.filesystem, self.table.places.root, self.table.location)

    @property
    def _reader(self) -> LogReader:
        return LogReader(self.table.places.filesystem, self.table.places.root, self.table.location)

    @property
    def _partition_columns(self) -> Sequence[str]:
        return self.table.state.metadata.partition_columns

    def _with(self, files: pa.Table) -> DeltaSnapshot:
        """Return the version that is read, with its files replaced."""
        return replace(self.table, state=replace(self.table.state, files=files))

    def _between(self, since: int, last: int) -> list[_Commit]:
        """Return the commits after one version up to another, oldest first. Raises UnknownSnapshot, TableNotFound."""
        if not 0 <= since <= last:
            raise UnknownSnapshot(
                f"{self.table.location} is read at version {last}, and has no version {since} up to it: "
                "the table was made anew, or an older version was asked for"
            )
        versions = range(since + 1, last + 1)
        files = {version: file for version, file in self._log.commits.items() if version in versions}
        if len(files) < len(versions):
            lacking = commit_name(min({*versions} - {*files}))
            raise UnknownSnapshot(
                f"what came after version {since} of {self.table.location} is not known any more: its log was cleaned "
                f"up, and {lacking} is gone; read the whole table, without since="
            )
        return at_once(lambda version: self._commit(version, files[version]), versions, LOG_THREADS)

    def _commit(self, version: int, file: LogFile) -> _Commit:
        reader = self._reader
        data = reader.bytes_of(file.name)
        changes = reader.json_changes(file.name, data, self._partition_columns)
        return _Commit(version, changes, reader.data_changes(file.name, data))


@dataclass(frozen=True)
class _Commit:
    """One commit: its version, and the files that it added and removed, in order."""

    version: int
    changes: pa.Table
    changes_data: np.ndarray

    @cached_property
    def is_add(self) -> np.ndarray:
        return truths(self.changes["is_add"].combine_chunks())

    @property
    def paths(self) -> pa.Array:
        return self.changes["path"].combine_chunks()

    @property
    def removes_rows(self) -> bool:
        """Whether it removes files, or rows of files, and is not just a rewrite of the same rows."""
        return bool((~self.is_add & self.changes_data).any())

    @property
    def moves_rows(self) -> bool:
        """Whether it adds files without new rows."""
        return bool((self.is_add & ~self.changes_data).any())

    @property
    def appended(self) -> pa.Table:
        """The files that it added with new rows."""
        return self.changes.take(pa.array(np.flatnonzero(self.is_add & self.changes_data)))


def _follow(sides: np.ndarray, code: np.ndarray, commit: _Commit) -> bool:
    """Note the sides of a commit's files: old, new or both; return whether some file is on both.

    A removed file was there before. A known file keeps its side: it got a deletion vector or statistics, or was
    restored. A file with moved rows gets the sides of the files that the commit removed; if there are none, its rows
    count as new.
    """
    sources, removed = code[~commit.is_add & ~commit.changes_data], code[~commit.is_add]
    sides[removed[sides[removed] == _NEITHER]] = _OLD
    moved = int(np.bitwise_or.reduce(sides[sources], initial=_NEITHER)) or _NEW
    unknown = commit.is_add & (sides[code] == _NEITHER)
    sides[code[unknown & ~commit.changes_data]] = moved
    sides[code[unknown & commit.changes_data]] = _NEW
    return moved == _BOTH and bool((unknown & ~commit.changes_data).any())
