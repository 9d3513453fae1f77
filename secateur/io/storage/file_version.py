"""Whether a file is still the one that was listed: by its size, and by when it was modified, where that is known."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs

from secateur.errors import InvalidParquet, StalePlan
from secateur.io.storage.object_file import ObjectFile

_LAST_MODIFIED = b"Last-Modified"  # of an object, as the answer to the request that opened it tells
_SECOND = 10**9  # nanoseconds: what such an answer is exact to


@dataclass(frozen=True)
class ListedFile:
    """A file as it was listed; `modified` in nanoseconds since the epoch, 0 where only the size tells."""

    filesystem: pafs.FileSystem
    path: str
    shown: str
    size: int
    modified: int

    @property
    def is_local(self) -> bool:
        """Whether asking again costs nothing."""
        return isinstance(self.filesystem, pafs.LocalFileSystem)

    def require(self, file: pa.NativeFile | None = None) -> None:
        """Raises StalePlan where the file is gone, or another one is in its place.

        Asked after opening it: what is open then is what was listed, whatever comes later to its place. An object that
        is open tells its time itself, so that no request is made for it.
        """
        if isinstance(file, ObjectFile):
            return  # every answer to it is held against this file
        if file is not None and not self.is_local:
            modified = _modified(file) if self.modified else None
            self.accept(file.size(), modified or self.modified)
            if modified is not None or not self.modified:
                return
        try:
            info = self.filesystem.get_file_info(self.path)
        except OSError as error:
            raise InvalidParquet(f"cannot look up {self.shown}: {error}") from None
        if info.type != pafs.FileType.File:
            raise vanished(self.shown)
        self._compare(info.size, info.mtime_ns or 0)

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
