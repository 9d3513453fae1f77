"""The store of index files: a directory of any pyarrow filesystem, with atomic publishing.

On a local disk a file appears under its name complete or not at all (temporary file, sync, link or rename), and a
snapshot's name can be taken only once. On S3 and stores with its interface an object is created by a put that the store
refuses if the name is taken (:mod:`secateur.io.storage.conditional_put`). On other filesystems pyarrow offers neither:
there :meth:`FileStore.create` looks before it writes, and two builders that publish at the same instant both succeed.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow.fs as pafs

from secateur.concurrency import at_once, in_turn
from secateur.errors import IndexConflict, IndexFault, IndexNotWritable, InvalidParquet
from secateur.index.model import StoredFile
from secateur.io.storage.byte_ranges import READ_THREADS, fetch_ranges, gap_of
from secateur.io.storage.conditional_put import create_object
from secateur.io.storage.greatest_name import greatest_name
from secateur.io.storage.list_files import infos_with_versions, is_missing
from secateur.io.storage.object_file import open_file
from secateur.io.storage.object_listing import objects_in
from secateur.io.storage.redaction import explained
from secateur.io.storage.transfer import received, sent


@dataclass(frozen=True)
class FileStore:
    """An index directory on a filesystem; see :class:`secateur.index.model.Store`."""

    filesystem: pafs.FileSystem
    root: str

    def __getstate__(self) -> dict[str, object]:
        return {"filesystem": sent(self.filesystem), "root": self.root}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, filesystem=received(state["filesystem"]))

    @property
    def location(self) -> str:
        return self.root if self.is_local else f"{self.filesystem.type_name}:{self.root}"

    def _path(self, name: str) -> str:
        return posixpath.join(self.root, name)

    @property
    def is_local(self) -> bool:
        """Whether this is a local disk."""
        return isinstance(self.filesystem, pafs.LocalFileSystem)

    def files(self, folder: str) -> list[StoredFile]:
        """Return the files of a folder by name; empty if there is none."""
        objects = None if self.is_local else objects_in(self.filesystem, self._path(folder))
        if objects is not None:
            return [StoredFile(f"{folder}/{o.name}", o.size, o.modified, o.tag) for o in objects]
        selector = pafs.FileSelector(self._path(folder), allow_not_found=True)
        try:
            infos, versions = infos_with_versions(self.filesystem, selector)
        except OSError as error:
            raise IndexFault(f"cannot list {self._path(folder)}: {explained(error)}") from None
        return [
            StoredFile(
                f"{folder}/{info.base_name}", info.size, (info.mtime_ns or 0) / 1e9, str(versions.get(info.path, ""))
            )
            for info in sorted(infos, key=lambda info: str(info.base_name))
            if info.type == pafs.FileType.File
        ]

    def last(self, folder: str, form: re.Pattern[str]) -> StoredFile | None:
        """Return the file of a folder whose name is the greatest of those that match; None if there is none.

        On a local disk only this one is looked up, so that a folder of many files costs little. Raises IndexFault.
        """
        if not self.is_local:
            matching = [file for file in self.files(folder) if form.fullmatch(file.name.rpartition("/")[2])]
            return matching[-1] if matching else None
        try:
            return self._last_local(folder, form)
        except OSError as error:
            raise IndexFault(f"cannot list {self._path(folder)}: {explained(error)}") from None

    def _last_local(self, folder: str, form: re.Pattern[str]) -> StoredFile | None:
        """Look up the file with the greatest name; if it is removed meanwhile, or is no file, list again without it."""
        others: set[str] = set()
        while True:
            try:
                name = greatest_name(self._path(folder), form, others)
            except (FileNotFoundError, NotADirectoryError):
                return None
            if name is None:
                return None
            status = _looked_up(self._path(f"{folder}/{name}"))
            if status is not None and stat.S_ISREG(status.st_mode):
                return StoredFile(f"{folder}/{name}", status.st_size, status.st_mtime_ns / 1e9)
            others.add(name)

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Read exactly `size` bytes. Raises IndexFault if the file is missing or too short."""
        return self.read_many(name, [(offset, size)])[0]

    def read_many(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read many (offset, size) ranges of one file, opened once. Raises as :meth:`read`."""
        try:
            parts = self._read_local(name, ranges) if self.is_local else self._read_remote(name, ranges)
        except OSError as error:
            raise IndexFault(f"cannot read {self._path(name)}: {explained(error)}") from None
        for data, (offset, size) in zip(parts, ranges, strict=True):
            if len(data) != size:
                end = f"{self._path(name)} ends at byte {offset + len(data)}"
                raise IndexFault(f"{end}, but {size} bytes from {offset} are needed")
        return parts

    def read_each(self, wanted: Sequence[tuple[str, int, int]]) -> list[bytes | IndexFault]:
        """Read (name, offset, size) ranges of many files; a failed range gives the fault that :meth:`read` raises."""
        if self.is_local:
            return in_turn(self._read_or_fault, wanted)
        return at_once(self._read_or_fault, wanted, READ_THREADS)

    def _read_or_fault(self, wanted: tuple[str, int, int]) -> bytes | IndexFault:
        try:
            return self.read(*wanted)
        except IndexFault as fault:
            return fault

    def _read_local(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        descriptor = os.open(
            self._path(name), os.O_RDONLY | os.O_NONBLOCK
        )  # non-blocking: a pipe would wait for a writer
        try:
            if len(ranges) > 1 and hasattr(os, "posix_fadvise"):  # lets the disk work on all of them at once
                for offset, size in ranges:
                    os.posix_fadvise(descriptor, offset, size, os.POSIX_FADV_WILLNEED)
            return [os.pread(descriptor, size, offset) for offset, size in ranges]
        finally:
            os.close(descriptor)

    def _read_remote(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with open_file(self.filesystem, self._path(name)) as file:
            try:
                return list(map(bytes, fetch_ranges(file, ranges, gap_of(self.filesystem))))
            except InvalidParquet as short:
                raise IndexFault(f"{self._path(name)}: {short}") from None

    def size(self, name: str) -> int:
        """Return the size in bytes. Raises IndexFault if the file is missing or cannot be looked up."""
        try:
            info = self.filesystem.get_file_info(self._path(name))
        except OSError as error:
            raise IndexFault(f"cannot look up {self._path(name)}: {explained(error)}") from None
        if info.type != pafs.FileType.File:
            raise IndexFault(f"{self._path(name)} is missing")
        return int(info.size)

    def put(self, name: str, data: bytes) -> None:
        """Write a file whose name only a retry of the same write uses. Raises IndexNotWritable."""
        self._write(name, data, self._put_local if self.is_local else self._stream)

    def put_aside(self, name: str, data: bytes) -> None:
        """Write a file that need not survive a crash, without sync. Raises as :meth:`put`."""
        self._write(name, data, self._stream)

    def _stream(self, name: str, data: bytes) -> None:
        with self.filesystem.open_output_stream(self._path(name)) as stream:
            stream.write(data)

    def _write(self, name: str, data: bytes, write: Callable[[str, bytes], None]) -> None:
        try:
            self.filesystem.create_dir(posixpath.dirname(self._path(name)), recursive=True)
        except OSError as error:
            raise self._refused(name, error) from None
        try:
            write(name, data)
        except FileExistsError:
            raise IndexConflict(f"{self._path(name)} exists already: another build published first") from None
        except OSError as error:
            if self.is_local and isinstance(error, FileNotFoundError):
                raise self._gone(name) from None
            raise self._refused(name, error) from None

    def _gone(self, name: str) -> IndexConflict:
        return IndexConflict(
            f"{self._path(name)} was removed while it was written: by a vacuum with a short grace period, or by a "
            "drop. Do it again"
        )

    def _refused(self, name: str, error: OSError) -> IndexNotWritable:
        return IndexNotWritable(f"cannot write the index file {self._path(name)}: {explained(error)}. {_advice(error)}")

    def create(self, name: str, data: bytes) -> None:
        """Publish a complete file atomically. Raises IndexConflict if the name exists, IndexNotWritable."""
        self._write(name, data, self._publish_local if self.is_local else self._publish_remote)

    def _publish_local(self, name: str, data: bytes) -> None:
        """Write a temporary file, sync, then link it: linking fails if the name exists, and shows the whole file or
        nothing.
        """
        with self._written_aside(name, data) as aside:
            os.link(aside, self._path(name))

    def _put_local(self, name: str, data: bytes) -> None:
        """Publish likewise, but replace the file, because a task may run again, or twice at once."""
        with self._written_aside(name, data) as aside:
            os.replace(aside, self._path(name))

    @contextmanager
    def _written_aside(self, name: str, data: bytes) -> Iterator[str]:
        """Yield a synced temporary file that no reader looks for; afterwards remove it and sync the folder."""
        folder = posixpath.dirname(self._path(name))
        aside = f"{folder}/.{uuid.uuid4().hex}.partial"
        try:
            with open(aside, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield aside
        finally:
            with suppress(FileNotFoundError):
                os.unlink(aside)
        _sync_folder(folder)

    def _publish_remote(self, name: str, data: bytes) -> None:
        """Publish by a conditional put; if the store does not support it, look before writing.

        An existing identical object was created by an attempt whose response was lost: what builds publish differs by
        the moment.
        """
        created = create_object(self.filesystem, self._path(name), data)
        if created is None:
            if self.filesystem.get_file_info(self._path(name)).type != pafs.FileType.NotFound:
                raise FileExistsError(name)
            self._stream(name, data)
        elif not created and not self._holds(name, data):
            raise FileExistsError(name)

    def _holds(self, name: str, data: bytes) -> bool:
        return self.size(name) == len(data) and self.read(name, 0, len(data)) == data

    def require_writable(self) -> None:
        """Raise IndexNotWritable unless files can be written here; called before expensive work."""
        probe = f"segments/{uuid.uuid4().hex}.probe"
        self.put(probe, b"")
        self.delete(probe)

    def delete(self, name: str) -> None:
        """Remove a file; one that is already gone is fine."""
        try:
            self.filesystem.delete_file(self._path(name))
        except OSError as error:
            if is_missing(error):
                return
            raise IndexNotWritable(f"cannot delete {self._path(name)}: {explained(error)}. {_advice(error)}") from None


def _sync_folder(folder: str) -> None:
    """Sync the names in a local folder to disk, on filesystems that support it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _advice(error: OSError) -> str:
    """Suggest a remedy for a file that cannot be written or removed."""
    elsewhere = "or keep the index elsewhere with index_location="
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return f"Make room (vacuum_index() removes index files that are not needed any more), {elsewhere}"
        case errno.EFBIG:
            return f"Allow larger files (ulimit -f), ask for smaller ones with segment_blocks=, {elsewhere}"
        case _:
            return f"Give the table's directory write permission, {elsewhere}"


def _looked_up(path: str) -> os.stat_result | None:
    """Return the status of the file at a path; None if there is none. Raises OSError."""
    try:
        return os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise
