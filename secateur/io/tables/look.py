"""Look at a location for the metadata by which formats are recognised, in one round of requests."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from secateur.concurrency import at_once
from secateur.errors import TableNotFound, UnsupportedTable
from secateur.io.storage.list_files import FileSystem, is_missing
from secateur.io.storage.redaction import trouble
from secateur.io.storage.time_limit import in_time

DELTA_LOG, HUDI, ICEBERG = "_delta_log", ".hoodie", "metadata"  # directories of formats with metadata


@dataclass(frozen=True)
class TableLook:
    """What there is at a location."""

    kind: pafs.FileType
    has_delta_log: bool  # a directory for one, perhaps empty
    has_commits: bool
    is_hudi: bool
    is_iceberg: bool

    def require_directory(self, redacted: str) -> None:
        """Raise TableNotFound if there is no directory, UnsupportedTable for formats whose files are not all live."""
        if self.kind == pafs.FileType.NotFound:
            raise TableNotFound(f"no such table: {redacted} does not exist")
        if self.kind != pafs.FileType.Directory:
            raise TableNotFound(f"{redacted} is a file; open the directory that holds the table's Parquet files")
        if self.has_commits:
            raise UnsupportedTable(f"{redacted} is a Delta table: not all of its files are live")
        if self.has_delta_log:
            raise TableNotFound(f"{redacted} has a {DELTA_LOG} without a commit")
        if self.is_hudi:
            raise UnsupportedTable(f"{redacted} is a Hudi table: not all of its files are live")
        if self.is_iceberg:
            raise UnsupportedTable(f"{redacted} is an Iceberg table: not all of its files are live")


def look_at(filesystem: FileSystem, root: str, redacted: str) -> TableLook:
    """Look at a location. Raises TableNotFound, AccessDenied if something cannot be looked up."""
    asks: list[Callable[[], Any]] = [
        partial(_looked_up, filesystem, root, redacted),
        partial(_looked_up, filesystem, posixpath.join(root, HUDI), redacted),
        partial(_entries, filesystem, posixpath.join(root, DELTA_LOG), redacted),
        partial(_entries, filesystem, posixpath.join(root, ICEBERG), posixpath.join(root, ICEBERG)),
    ]
    info, hudi, log, metadata = at_once(lambda ask: ask(), asks, len(asks))
    return TableLook(
        info.type,
        has_delta_log=log is not None,
        has_commits=bool(log),
        is_hudi=hudi.type == pafs.FileType.Directory,
        is_iceberg=any(".metadata.json" in entry.base_name for entry in metadata or ()),
    )


def _entries(filesystem: FileSystem, directory: str, redacted: str) -> list[pafs.FileInfo] | None:
    """Return the entries of a directory; None if there is none."""
    try:
        entries: list[pafs.FileInfo] = _looked_up(filesystem, pafs.FileSelector(directory), redacted)
    except FileNotFoundError:
        return None
    return entries


def _looked_up(filesystem: FileSystem, asked: str | pafs.FileSelector, redacted: str) -> Any:
    """Return information on a path, or the entries of a directory, which has to exist."""
    try:
        return in_time(partial(filesystem.get_file_info, asked), filesystem, redacted)
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and is_missing(error):
            raise FileNotFoundError(redacted) from None
        raise trouble(f"cannot look up {redacted}", error, TableNotFound) from None
