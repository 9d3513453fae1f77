"""List the files of a Delta log, and choose those from which one version of the table is read.

Source: Delta's protocol, "Delta Log Entries", "Checkpoints", "Log Compaction Files", "Last Checkpoint File".
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.fs as pafs

from secateur.errors import TableNotFound, UnknownSnapshot
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.redaction import trouble

LOG_DIRECTORY = "_delta_log"
SIDECARS = "_sidecars"

_COMMIT = re.compile(r"(\d{20})\.json")
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")
_WHOLE = re.compile(r"(\d{20})\.checkpoint\.(?:parquet|[0-9a-fA-F-]{36}\.(?:json|parquet))")
_PART = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")


@dataclass(frozen=True)
class LogFile:
    """One file of the log. Its name, size and time identify its bytes, because writers never change a file."""

    name: str
    size: int
    modified: int  # nanoseconds since the epoch


@dataclass(frozen=True)
class Checkpoint:
    """One complete checkpoint: a file, or the parts of one, in order."""

    version: int
    files: tuple[LogFile, ...]


@dataclass(frozen=True)
class Replay:
    """The files from which one version is read: a checkpoint, then the commits after it, oldest first."""

    version: int
    checkpoint: Checkpoint | None
    commits: tuple[LogFile, ...]
    last: LogFile | None  # the commit of the version itself; None if the log has only a checkpoint of it


@dataclass(frozen=True)
class LogListing:
    """The files of a log, by version."""

    location: str  # of the table, redacted
    commits: Mapping[int, LogFile]
    compacted: Mapping[int, tuple[int, LogFile]]  # by first version: the last version, and the file
    checkpoints: Mapping[int, Checkpoint]  # the complete ones
    partial: Mapping[int, tuple[int, ...]]  # numbers of the parts that an incomplete checkpoint lacks

    @property
    def latest(self) -> int:
        """The newest version. Raises TableNotFound for an empty log."""
        known = [*self.commits, *self.checkpoints]
        if not known:
            raise TableNotFound(f"{self.location} has a {LOG_DIRECTORY} without a commit")
        return max(known)

    def replay(self, version: int) -> Replay:
        """Return the files from which a version is read. Raises UnknownSnapshot, TableNotFound if one is missing."""
        if not 0 <= version <= self.latest:
            raise UnknownSnapshot(f"{self.location} has no version {version}: its latest is {self.latest}")
        checkpoint = self.checkpoints.get(max((v for v in self.checkpoints if v <= version), default=-1))
        start = 0 if checkpoint is None else checkpoint.version + 1
        return Replay(version, checkpoint, tuple(self.between(start, version)), self.commits.get(version))

    def between(self, start: int, stop: int) -> list[LogFile]:
        """Return the files with the commits from `start` to `stop`, both included, oldest first.

        A compaction file replaces the commits that it covers. Raises UnknownSnapshot for versions that were cleaned up,
        TableNotFound for a gap.
        """
        files, version = [], start
        while version <= stop:
            last, file = self.compacted.get(version, (version, None))
            if file is None or last > stop:
                last, file = version, self.commits.get(version)
            if file is None:
                raise self._missing(version, stop)
            files.append(file)
            version = last + 1
        return files

    def _missing(self, version: int, wanted: int) -> UnknownSnapshot | TableNotFound:
        """Return the error for a commit that is not there."""
        lacking = [f"part {part} of the checkpoint {v}" for v, parts in self.partial.items() for part in parts]
        also = f"; {', '.join(lacking)} is missing too" if lacking else ""
        name = f"{version:020}.json"
        oldest = min(self.checkpoints, default=None)
        if not lacking and version == 0 and oldest is not None and wanted < oldest:
            return UnknownSnapshot(
                f"{self.location} has no version {wanted} any more: its log was cleaned up, and begins at {oldest}"
            )
        return TableNotFound(f"the log of {self.location} has a gap: {LOG_DIRECTORY}/{name} is missing{also}")


def list_log(filesystem: FileSystem, root: str, redacted: str) -> LogListing:
    """List the log of the table at `root`, `redacted` in messages. Raises TableNotFound, AccessDenied."""
    folder = posixpath.join(root, LOG_DIRECTORY)
    try:
        infos = filesystem.get_file_info(pafs.FileSelector(folder))
    except OSError as error:
        raise trouble(f"cannot list {redacted}/{LOG_DIRECTORY}", error, TableNotFound) from None
    files = (_file(info) for info in infos if info.type == pafs.FileType.File and info.size)
    return sorted_by_version(files, redacted)


def _file(info: pafs.FileInfo) -> LogFile:
    return LogFile(info.base_name, info.size, info.mtime_ns or 0)


def file_now(filesystem: FileSystem, root: str, names: Sequence[str], redacted: str) -> list[LogFile | None]:
    """Return some files of the log as they are now; None for one that is not there. Raises TableNotFound."""
    folder = posixpath.join(root, LOG_DIRECTORY)
    try:
        infos = filesystem.get_file_info([posixpath.join(folder, name) for name in names])
    except OSError as error:
        raise trouble(f"cannot look up {redacted}/{LOG_DIRECTORY}", error, TableNotFound) from None
    return [_file(info) if info.type == pafs.FileType.File and info.size else None for info in infos]


def commit_name(version: int) -> str:
    """Return the name of a version's commit."""
    return f"{version:020}.json"


def sorted_by_version(files: Iterable[LogFile], redacted: str) -> LogListing:
    """Sort the files of a log by kind and version; unknown names are ignored, as the protocol asks."""
    commits: dict[int, LogFile] = {}
    compacted: dict[int, tuple[int, LogFile]] = {}
    whole: dict[int, list[LogFile]] = {}
    parts: dict[tuple[int, int], dict[int, LogFile]] = {}  # by version and number of parts
    for file in files:
        if match := _COMMIT.fullmatch(file.name):
            commits[int(match[1])] = file
        elif match := _WHOLE.fullmatch(file.name):
            whole.setdefault(int(match[1]), []).append(file)
        elif match := _PART.fullmatch(file.name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = file
        elif match := _COMPACTED.fullmatch(file.name):
            first, last = int(match[1]), int(match[2])
            if first < last and last > compacted.get(first, (0, file))[0]:
                compacted[first] = last, file
    checkpoints = {version: Checkpoint(version, (min(candidates, key=_name),)) for version, candidates in whole.items()}
    partial: dict[int, tuple[int, ...]] = {}
    for (version, count), part_files in parts.items():
        lacking = tuple(number for number in range(1, count + 1) if number not in part_files)
        if lacking:
            partial[version] = lacking
        else:
            in_order = tuple(part_files[number] for number in range(1, count + 1))
            checkpoints.setdefault(version, Checkpoint(version, in_order))
    partial = {version: lacking for version, lacking in partial.items() if version not in checkpoints}
    return LogListing(redacted, commits, compacted, checkpoints, partial)


def _name(file: LogFile) -> str:
    return file.name
