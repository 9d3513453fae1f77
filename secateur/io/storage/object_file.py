"""Files opened for reading: of object stores without a request, and what is read is proven to be of one object.

pyarrow looks an object up before it reads, once for every file that is opened, and does not see that another takes its
place while it reads. Objects of S3 are read by requests whose answers tell what they are of
(:mod:`secateur.io.storage.s3_client`); other files, and where there is no such client, as pyarrow does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs

from secateur.io.storage.byte_ranges import REMOTE_GAP, Range, View, fetch_ranges
from secateur.io.storage.filesystem_settings import innermost
from secateur.io.storage.s3_client import S3Object, is_cut_off, reading_client, s3_object

if TYPE_CHECKING:
    from obstore import ObjectMeta, SuffixRange
    from obstore.store import S3Store

FOOTER_THREADS = 16  # to read the footers of many files at once
END = 64 << 10  # bytes; the footer of a Parquet file with some hundred column chunks fits

Accept = Callable[[int, int], None]  # of an object's size, and its time of modification in nanoseconds; may raise


def open_file(
    filesystem: pafs.FileSystem, path: str, size: int | None = None, accept: Accept | None = None
) -> pa.NativeFile:
    """A file for reading, of a size that is known or will be asked for.

    `accept` is asked of every answer of an object store: it raises where that is of another object than it should be.
    Raises OSError (FileNotFoundError where pyarrow looks the file up), as reading does.
    """
    target = s3_object(*innermost(filesystem, path))
    if target is None or not _is_plain(target.key):
        return filesystem.open_input_file(path)
    return ObjectFile(_Object(target, size, accept), "r")


def _is_plain(key: str) -> bool:
    """Whether obstore asks for the key as it stands."""
    return all(part not in ("", ".", "..") for part in key.split("/")) and key.isprintable()


class ObjectFile(pa.PythonFile):  # type: ignore[misc]
    """An object as a file of pyarrow, whose ranges many threads read at once; no request is made to open it.

    What a read tells is of one object: where a later answer is of another, or not of the one that is accepted, the
    read raises instead.
    """

    def __init__(self, source: _Object, mode: str) -> None:
        super().__init__()
        self._source = source

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """The bytes from an offset, fewer where the object ends. Raises OSError."""
        return self._source.read_at(nbytes, offset)

    def size(self) -> int:
        """Bytes of the object. Raises OSError."""
        return self._source.size

    def read_ahead(self, ranges: Sequence[Range]) -> None:
        """Read ranges at once, in the place of those that were read ahead before, for readers that ask one by one."""
        self._source.ahead = []
        found = fetch_ranges(self, ranges, REMOTE_GAP)
        self._source.ahead = [(offset, data) for (offset, _), data in zip(ranges, found, strict=True)]


@dataclass
class _Object:
    """What pyarrow asks of a file of Python, over an object of which some bytes are kept."""

    target: S3Object
    known_size: int | None
    accept: Accept | None
    position: int = 0
    closed: bool = False
    tag: str | None = None  # of the object, once an answer told it
    end: tuple[int, bytes] = (0, b"")  # offset and bytes of what was read up to the end, where Parquet has its footer
    ahead: list[tuple[int, View]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def size(self) -> int:
        """Bytes, told with the end of the object where nothing told it before: who asks goes on to read that."""
        if self.known_size is None:
            end = self._answer(lambda store, key: _get(store, key, {"suffix": END}))
            assert self.known_size is not None
            self.end = (self.known_size - len(end), end)
        return self.known_size

    def read_at(self, length: int, offset: int) -> bytes:
        if self.known_size is not None:
            length = min(length, self.known_size - offset)
        if length <= 0:
            return b""
        for start, data in (*self.ahead, self.end):
            if start <= offset and offset + length <= start + len(data):
                return bytes(data[offset - start : offset - start + length])
        found = self._answer(lambda store, key: _get(store, key, (offset, offset + length)))
        if offset + len(found) == self.known_size:
            self.end = (offset, found)
        return found

    def _answer(self, ask: Callable[[S3Store, str], tuple[ObjectMeta, bytes]]) -> bytes:
        """The bytes of an answer that is of the object. Raises OSError, and what `accept` does."""
        from obstore.exceptions import BaseError

        if is_cut_off():
            raise OSError("it was opened before this process was forked")  # whose client would wait for ever
        try:
            meta, data = ask(reading_client(self.target), self.target.key)
        except FileNotFoundError as error:
            raise FileNotFoundError(_first_line(error)) from None
        except (BaseError, ValueError) as error:
            raise OSError(_first_line(error)) from None
        size, tag = int(meta["size"]), meta["e_tag"]
        if self.accept is not None:
            self.accept(size, int(meta["last_modified"].timestamp()) * 10**9)
        with self._lock:
            if self.known_size not in (None, size) or self.tag not in (None, tag):
                raise OSError(f"{self.target.bucket}/{self.target.key} was replaced while it was read")
            self.known_size, self.tag = size, tag
        return data

    # ---- what pyarrow asks

    def read(self, size: int = -1) -> bytes:
        data = self.read_at(self.size - self.position if size < 0 else size, self.position)
        self.position += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.position}
        self.position = offset + (self.size if whence == os.SEEK_END else base[whence])
        return self.position

    def tell(self) -> int:
        return self.position

    def close(self) -> None:
        self.closed, self.ahead = True, []


def _get(store: S3Store, key: str, wanted: tuple[int, int] | SuffixRange) -> tuple[ObjectMeta, bytes]:
    import obstore  # which tables on local disks do without

    answer = obstore.get(store, key, options={"range": wanted})
    return answer.meta, bytes(answer.bytes())


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
