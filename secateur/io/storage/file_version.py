"""Check that a file is still the listed one: by size, modification time and witness."""

from __future__ import annotations

import datetime as dt
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from secateur.errors import InvalidParquet, StalePlan
from secateur.io.storage.filesystem_settings import innermost
from secateur.io.storage.object_file import ObjectFile
from secateur.io.storage.redaction import trouble
from secateur.io.storage.witness import fsspec_of, version_of

_LAST_MODIFIED = b"Last-Modified"  # of an object, from the response that opened it
_SECOND = 10**9  # nanoseconds: the resolution of such a response


@dataclass(frozen=True)
class ListedFile:
    """A file as listed; `modified` in nanoseconds since the epoch, 0 if unknown.

    `witness` is None for files that are never written twice, for which only size and time are looked up.
    """

    filesystem: pafs.FileSystem
    path: str
    redacted: str
    size: int
    modified: int
    witness: int | None = None  # see :mod:`secateur.io.storage.witness`

    @property
    def is_local(self) -> bool:
        """Whether looking it up again costs nothing."""
        return self._local_path is not None

    @cached_property
    def _local_path(self) -> str | None:
        """Where a file of the local disk is; None for others."""
        filesystem, path = innermost(self.filesystem, self.path)
        return path if isinstance(filesystem, pafs.LocalFileSystem) else None

    def require(self, file: pa.NativeFile | None = None) -> None:
        """Raise StalePlan if the file is gone, or another one is in its place.

        Call it after opening the file: then the open file is the listed one, whatever replaces it later. An open object
        already has its time, so no request is made for it.
        """
        if isinstance(file, ObjectFile):
            return  # every response is checked against this file
        if file is not None and not isinstance(self.filesystem, pafs.LocalFileSystem):
            modified = _modified(file) if self.modified else None
            self.accept(file.size(), modified or self.modified)
            if modified is not None or (not self.modified and self._fsspec is None):
                return
        try:
            size, modified, witness = self._now()
        except (FileNotFoundError, NotADirectoryError):
            raise vanished(self.redacted) from None
        except OSError as error:
            raise trouble(f"cannot look up {self.redacted}", error, InvalidParquet) from None
        self._compare(size, modified)
        if None not in (witness, self.witness) and witness != self.witness:
            raise self._changed("it was changed since, or linked or copied to its place")

    @property
    def _fsspec(self) -> Any | None:
        return None if self.witness is None else fsspec_of(innermost(self.filesystem, self.path)[0])

    def _now(self) -> tuple[int, int, int | None]:
        """Return the current size, modification time and witness (None: unknown). Raises OSError."""
        if self._local_path is not None:
            status = os.stat(self._local_path)
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(self.redacted)
            return status.st_size, status.st_mtime_ns, status.st_ctime_ns
        version = None
        if (fsspec := self._fsspec) is not None:
            path = innermost(self.filesystem, self.path)[1]
            fsspec.invalidate_cache(path)
            version = version_of(fsspec.info(path))
        info = self.filesystem.get_file_info(self.path)
        if info.type != pafs.FileType.File:
            raise FileNotFoundError(self.redacted)
        return info.size, info.mtime_ns or 0, version

    def accept(self, size: int, modified: int) -> None:
        """Raise StalePlan if an object store's response, with times in whole seconds, is for another file."""
        self._compare(size, 0)
        if self.modified and abs(modified - self.modified) >= _SECOND:
            raise self._changed("it was modified since")

    def _compare(self, size: int, modified: int) -> None:
        if size != self.size:
            raise self._changed(f"it had {self.size} bytes, and has {size}")
        if self.modified and modified and modified != self.modified:
            raise self._changed("it was modified since")

    def _changed(self, how: str) -> StalePlan:
        return StalePlan(f"the plan is stale: {self.redacted} has changed since the plan was made ({how}): plan again")


def vanished(redacted: str) -> StalePlan:
    """Return the error for a file that is gone."""
    return StalePlan(f"the plan is stale: {redacted} has vanished since the table was listed: plan again")


def _modified(file: pa.NativeFile) -> int | None:
    """Return when an open object was modified, in nanoseconds; None if its store does not say."""
    try:
        stamp = file.metadata().get(_LAST_MODIFIED)
        moment = None if stamp is None else dt.datetime.fromisoformat(stamp.decode())
    except (AttributeError, ValueError, OSError, pa.ArrowException):
        return None
    if moment is None:
        return None
    return int(moment.replace(tzinfo=moment.tzinfo or dt.UTC).timestamp()) * _SECOND


def still_listed(batches: Iterator[pa.RecordBatch], listed: ListedFile) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a listed file. Raises StalePlan if it changed while it was read.

    On a local disk this is also detected if nothing failed: a file may be overwritten in place.
    """
    try:
        yield from batches
    except InvalidParquet:
        listed.require()
        raise
    if listed.is_local:
        listed.require()
