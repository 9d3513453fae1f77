"""The active timeline of a Hudi table: which commits are complete, and which are on their way.

Source: "Timeline" and "Reader expectations" in Hudi's technical specification, ``HoodieInstant``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from secateur.errors import TableNotFound, UnknownSnapshot, UnsupportedTable
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.redaction import trouble
from secateur.io.tables.hudi.instants import number_of
from secateur.io.tables.hudi.properties import TableProperties

WRITES = {"commit", "deltacommit", "replacecommit"}  # complete ones; compactions and clusterings end as one of these
_PENDING_WRITES = WRITES | {"compaction", "logcompaction", "clustering"}
_OTHERS = {"clean", "rollback", "restore", "savepoint", "indexing", "schemacommit"}
_NAME = re.compile(r"(\d{14}|\d{17})(?:_(\d{14}|\d{17}))?(?:\.([a-z]+))?(?:\.(requested|inflight))?")


@dataclass(frozen=True)
class InstantFile:
    """The file of a complete commit. Its name, size and time identify its bytes, because it is written once."""

    name: str
    size: int
    modified: int  # nanoseconds since the epoch
    action: str
    completed: int | None  # when it was complete; None if its name does not tell


@dataclass(frozen=True)
class Timeline:
    """The active timeline at one moment; instants are numbers."""

    location: str  # of the table, redacted
    directory: str  # below the table
    commits: Mapping[int, InstantFile]  # complete, ascending
    pending: frozenset[int]
    savepoints: frozenset[int]
    rollbacks: tuple[str, ...]  # names of the files of complete rollbacks and restores

    @cached_property
    def instants(self) -> np.ndarray:
        """The instants of complete commits, ascending."""
        return np.array(list(self.commits), np.int64)

    @cached_property
    def start(self) -> int:
        """The first instant that was surely not archived: what is not in the timeline and older was, and is complete.

        Commits with a savepoint stay when younger ones are archived.
        """
        later = [instant for instant in self.commits if instant not in self.savepoints]
        return min(later or self.commits, default=0)

    @property
    def last(self) -> int:
        """The newest instant of a complete commit; 0 if there is none."""
        return int(self.instants[-1]) if len(self.instants) else 0

    def is_archived(self, instants: np.ndarray) -> np.ndarray:
        """Return which instants belong to commits that were complete, and are not in the timeline any more."""
        away = np.array([*self.pending, *self.commits], np.int64)
        return (instants < self.start) & ~np.isin(instants, away)

    def is_pending(self, instants: np.ndarray) -> np.ndarray:
        """Return which instants belong to commits that are not complete."""
        return np.isin(instants, np.array(list(self.pending), np.int64))

    def is_complete(self, instants: np.ndarray) -> np.ndarray:
        """Return which instants belong to complete commits in the timeline."""
        return np.isin(instants, self.instants)

    def is_known(self, instants: np.ndarray) -> np.ndarray:
        """Return which instants the timeline accounts for: complete, archived or on their way."""
        return self.is_complete(instants) | self.is_archived(instants) | self.is_pending(instants)

    def require(self, instant: int) -> int:
        """Return the instant. Raises UnknownSnapshot unless it is one of a complete commit."""
        if instant not in self.commits:
            known = f"{self.start} to {self.last}" if self.commits else "none"
            raise UnknownSnapshot(f"{self.location} has no complete commit at {instant}; its timeline has {known}")
        return instant

    def at(self, moment: int) -> int:
        """Return the newest instant up to `moment`. Raises UnknownSnapshot if that is not in the active timeline."""
        if not self.commits or moment < self.start:
            raise UnknownSnapshot(
                f"what {self.location} was at {moment} is not known: its active timeline begins at {self.start}, "
                "and what was archived is not read"
            )
        return int(self.instants[np.searchsorted(self.instants, moment, "right") - 1])


def list_timeline(filesystem: FileSystem, root: str, properties: TableProperties, redacted: str) -> Timeline:
    """List the active timeline. Raises TableNotFound if that fails, UnsupportedTable for an action not known here."""
    place = posixpath.join(root, properties.timeline)
    try:
        entries = filesystem.get_file_info(pafs.FileSelector(place))
    except (OSError, pa.ArrowException) as error:
        raise trouble(f"cannot list the timeline {redacted}/{properties.timeline}", error, TableNotFound) from None
    commits: dict[int, InstantFile] = {}
    pending, savepoints, rollbacks = set(), set(), []
    for entry in entries:
        match = _NAME.fullmatch(entry.base_name)
        if entry.type != pafs.FileType.File or not entry.base_name[:1].isdigit():
            continue
        instant, completed, action, state = match.groups() if match is not None else (None,) * 4
        if action == "inflight" and state is None:  # a commit's file has no name of its action in between
            action, state = "commit", "inflight"
        if instant is None or action is None or action not in _PENDING_WRITES | _OTHERS:
            raise UnsupportedTable(f"{redacted}/{properties.timeline} has {entry.base_name}, which is not known here")
        number = number_of(instant)
        if action == "savepoint" and state is None:
            savepoints.add(number)
        elif action in ("rollback", "restore") and state is None:
            rollbacks.append(entry.base_name)
        elif action in _PENDING_WRITES and state is not None:
            pending.add(number)
        elif action in WRITES:
            done = None if completed is None else number_of(completed)
            commits[number] = InstantFile(entry.base_name, entry.size, entry.mtime_ns or 0, action, done)
    ordered = {instant: commits[instant] for instant in sorted(commits)}
    waiting = frozenset(pending - commits.keys())
    undone = tuple(sorted(rollbacks))
    return Timeline(redacted, properties.timeline, ordered, waiting, frozenset(savepoints), undone)
