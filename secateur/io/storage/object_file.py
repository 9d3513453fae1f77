"""Open files for reading: objects are opened without a request, and all reads are proven to be of one object.

pyarrow looks up every object when it is opened, and does not notice if another replaces it while it reads. Objects of
S3, Azure and Google's storage are read by requests whose responses identify the object
(:mod:`secateur.io.storage.object_client`). Other files, and objects without such a client, are read by pyarrow.
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
from secateur.io.storage.object_client import StoredObject, is_cut_off, reading_client
from secateur.io.storage.stored_object import stored_object

if TYPE_CHECKING:
    from obstore import ObjectMeta, SuffixRange

    from secateur.io.storage.object_client import Client

FOOTER_THREADS = 16  # for reading the footers of many files
END = 64 << 10  # bytes; enough for the footer of a Parquet file with some hundred column chunks
AFTER_FOOTER = 8  # bytes: the footer's length, then the magic

Accept = Callable[[int, int], None]  # of an object's size and modification time in nanoseconds; may raise


def open_file(
    filesystem: pafs.FileSystem, path: str, size: int | None = None, accept: Accept | None = None
) -> pa.NativeFile:
    """Open a file for reading; its size is given or looked up later.

    `accept` is called with every response of an object store, and raises if it is for another object. Raises OSError
    (FileNotFoundError if pyarrow looks the file up), as reading does.
    """
    target = stored_object(filesystem, path)
    if target is None or not _is_plain(target.key):
        return filesystem.open_input_file(path)
    return ObjectFile(_Object(target, size, accept), "r")


def _is_plain(key: str) -> bool:
    """Return whether obstore requests the key unchanged."""
    return all(part not in ("", ".", "..") for part in key.split("/")) and key.isprintable()


class ObjectFile(pa.PythonFile):  # type: ignore[misc]
    """An object as a pyarrow file, whose ranges many threads can read; opening makes no request.

    All reads are of one object: a read raises if a later response is for another object, or one not accepted.
    """

    def __init__(self, source: _Object, mode: str) -> None:
        super().__init__()
        self._source = source

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Read the bytes from an offset, fewer if the object ends. Raises OSError."""
        return self._source.read_at(nbytes, offset)

    def size(self) -> int:
        """Bytes of the object. Raises OSError."""
        return self._source.size

    def read_ahead(self, ranges: Sequence[Range]) -> None:
        """Read ranges in parallel, replacing those read ahead before, for readers that request one range at a time."""
        self._source.ahead = []
        contents = fetch_ranges(self, ranges, REMOTE_GAP)
        self._source.ahead = [(offset, data) for (offset, _), data in zip(ranges, contents, strict=True)]


@dataclass
class _Object:
    """The methods that pyarrow calls on a Python file, over an object with some cached bytes."""

    target: StoredObject
    known_size: int | None
    accept: Accept | None
    position: int = 0
    closed: bool = False
    tag: str | None = None  # of the object, once a response had it
    end: tuple[int, bytes] = (0, b"")  # offset and bytes of the object's end, where Parquet has its footer
    ahead: list[tuple[int, View]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def size(self) -> int:
        """Size from a suffix request, which also caches the footer bytes that the caller reads next."""
        if self.known_size is None and not self.target.answers_suffixes:
            self._answer(_look_up)
        if self.known_size is None:
            end = self._answer(lambda store, key: _get(store, key, {"suffix": END}))
            assert self.known_size is not None, "`_get` sets it"
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
        part = self._answer(lambda store, key: _get(store, key, (offset, offset + length)))
        self._keep_end(offset, part)
        return part

    def _keep_end(self, offset: int, part: bytes) -> None:
        """Keep bytes that end with the object, or, as a footer that pyarrow reads, with what follows them there."""
        assert self.known_size is not None, "`_answer` sets it"
        start, end = self.end if self.end[1] else (self.known_size, b"")
        stop = offset + len(part)
        if offset < start <= stop and stop >= self.known_size - AFTER_FOOTER:
            self.end = (offset, part + end[stop - start :])

    def _answer(self, ask: Callable[[Client, str], tuple[ObjectMeta, bytes]]) -> bytes:
        """Return the bytes of a response for this object. Raises OSError, and errors of `accept`."""
        from obstore.exceptions import BaseError

        if is_cut_off():
            raise OSError("it was opened before this process was forked")  # its client would wait forever
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

    # ---- called by pyarrow

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


def _look_up(store: Client, key: str) -> tuple[ObjectMeta, bytes]:
    import obstore

    return obstore.head(store, key), b""


def _get(store: Client, key: str, wanted: tuple[int, int] | SuffixRange) -> tuple[ObjectMeta, bytes]:
    import obstore  # not needed by tables on local disks

    answer = obstore.get(store, key, options={"range": wanted})
    return answer.meta, bytes(answer.bytes())


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
