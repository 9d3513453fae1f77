"""Whether a file is still the one that was listed: by its size, when it was modified, and its witness."""

from __future__ import annotations

import datetime as dt
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from secateur.errors import InvalidParquet, StalePlan
from secateur.io.storage.filesystem_settings import innermost
from secateur.io.storage.object_file import ObjectFile
from secateur.io.storage.redaction import trouble
from secateur.io.storage.witness import fsspec_of, version_of

_LAST_MODIFIED = b"Last-Modified"  # of an object, as the answer to the request that opened it tells
_SECOND = 10**9  # nanoseconds: what such an answer is exact to


@dataclass(frozen=True)
class ListedFile:
    """A file as it was listed; `modified` in nanoseconds since the epoch, 0 where that is not known.

    `witness` is None of files that are never written twice, for which nothing but size and time is looked up.
    """

    filesystem: pafs.FileSystem
    path: str
    shown: str
    size: int
    modified: int
    witness: int | None = None  # see :mod:`secateur.io.storage.witness`

    @property
    def is_local(self) -> bool:
        """Whether asking again costs nothing."""
        return isinstance(innermost(self.filesystem, self.path)[0], pafs.LocalFileSystem)

    def require(self, file: pa.NativeFile | None = None) -> None:
        """Raises StalePlan where the file is gone, or another one is in its place.

        Asked after opening it: what is open then is what was listed, whatever comes later to its place. An object that
        is open tells its time itself, so that no request is made for it.
        """
        if isinstance(file, ObjectFile):
            return  # every answer to it is held against this file
        if file is not None and not isinstance(self.filesystem, pafs.LocalFileSystem):
            modified = _modified(file) if self.modified else None
            self.accept(file.size(), modified or self.modified)
            if modified is not None or (not self.modified and self._fsspec is None):
                return
        try:
            size, modified, witness = self._now()
        except (FileNotFoundError, NotADirectoryError):
            raise vanished(self.shown) from None
        except OSError as error:
            raise trouble(f"cannot look up {self.shown}", error, InvalidParquet) from None
        self._compare(size, modified)
        if None not in (witness, self.witness) and witness != self.witness:
            raise self._changed("it was changed since, or linked or copied to its place")

    @property
    def _fsspec(self) -> Any | None:
        return None if self.witness is None else fsspec_of(innermost(self.filesystem, self.path)[0])

    def _now(self) -> tuple[int, int, int | None]:
        """The size, time of modification and witness of what is there now; None: nothing tells. Raises OSError."""
        if self.is_local:
            status = os.stat(innermost(self.filesystem, self.path)[1])
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(self.shown)
            return status.st_size, status.st_mtime_ns, status.st_ctime_ns
        version = None
        if (fsspec := self._fsspec) is not None:
            path = innermost(self.filesystem, self.path)[1]
            fsspec.invalidate_cache(path)
            version = version_of(fsspec.info(path))
        info = self.filesystem.get_file_info(self.path)
        if info.type != pafs.FileType.File:
            raise FileNotFoundError(self.shown)
        return info.size, info.mtime_ns or 0, version

    def accept(self, size: int, modified: int) -> None:
        """Raises StalePlan where an answer of an object store, whose times are exact to the second, is of another."""
        self._compare(size, 0)
        if self.modified and abs(modified - self.modified) >= _SECOND:
            raise self._changed("it was modified since")

    def _compare(self, size: int, modified: int) -> None:
        if size != self.size:
            raise self._changed(f"it had {self.size} bytes, and has {size}")
        if self.modified and modified and modified != self.modified:
            raise self._changed("it was modified since")

    def _changed(self, how: str) -> StalePlan:
        return StalePlan(f"the plan is stale: {self.shown} has changed since the plan was made ({how}): plan again")


def vanished(shown: str) -> StalePlan:
    """The error that a file is gone."""
    return StalePlan(f"the plan is stale: {shown} has vanished since the table was listed: plan again")


def _modified(file: pa.NativeFile) -> int | None:
    """When an open object was modified, in nanoseconds; None where its store does not say."""
    try:
        told = file.metadata().get(_LAST_MODIFIED)
        moment = None if told is None else dt.datetime.fromisoformat(told.decode())
    except (AttributeError, ValueError, OSError, pa.ArrowException):
        return None
    if moment is None:
        return None
    return int(moment.replace(tzinfo=moment.tzinfo or dt.UTC).timestamp()) * _SECOND


def still_listed(batches: Iterator[pa.RecordBatch], listed: ListedFile) -> Iterator[pa.RecordBatch]:
    """The batches of a file that was listed. Raises StalePlan where it changed while it was read.

    On a local disk that is seen also where nothing failed: a file may be overwritten where it lies.
    """
    try:
        yield from batches
    except InvalidParquet:
        listed.require()
        raise
    if listed.is_local:
        listed.require()
