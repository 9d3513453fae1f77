"""Read exact byte ranges of an open file: near ranges in one request, long ones in several, in parallel on object
stores.

The maximum gap between ranges that are read together is the cost of a request in bytes: its latency times the
bandwidth. Sources: ``CacheOptions::MakeFromNetworkMetrics`` of Arrow, ``OBJECT_STORE_COALESCE_DEFAULT`` of arrow-rs'
object_store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeAlias

import pyarrow as pa
import pyarrow.fs as pafs

from secateur.errors import InvalidParquet

Range: TypeAlias = tuple[int, int]  # offset and length, bytes
View: TypeAlias = "bytes | memoryview"

LOCAL_GAP = 64 << 10  # bytes; a disk's read-ahead
REMOTE_GAP = 1 << 20  # bytes; 10 ms to the first byte, at 100 MB/s
LONGEST = 8 << 20  # bytes per request to an object store: two parallel requests beat a longer one
ENDLESS = 1 << 63
LOCAL_FILES_AT_ONCE, REMOTE_FILES_AT_ONCE = min(8, os.cpu_count() or 1), 8
READ_THREADS = 24  # parallel requests of one call; pyarrow's S3 client keeps 25 connections
# pyarrow's S3 client retries a failed request, except if the error response is longer than the requested range. Then it
# raises an error with this text.
_NOT_TRIED_AGAIN = "Failed to flush response stream"
PAUSES = (0.1, 0.2, 0.4, 0.8)  # seconds before such a range is requested again


def is_local(filesystem: pafs.FileSystem) -> bool:
    """Return whether files are on a local disk, so that a read waits for no request."""
    return isinstance(filesystem, pafs.LocalFileSystem)


def gap_of(filesystem: pafs.FileSystem) -> int:
    """Return the maximum gap in bytes between ranges of a filesystem's file that are read together."""
    return LOCAL_GAP if is_local(filesystem) else REMOTE_GAP


def files_at_once(filesystem: pafs.FileSystem) -> int:
    """Return how many files of a filesystem it pays to read at the same time: one per core, and more where one waits.

    Twice as many threads as cores take 15 % more time in all on a local disk: they wait for Python's lock.
    """
    return LOCAL_FILES_AT_ONCE if is_local(filesystem) else REMOTE_FILES_AT_ONCE


def read_ranges(file: pa.NativeFile, ranges: Sequence[Range], gap: int = LOCAL_GAP) -> list[View]:
    """Read the bytes of every (offset, length), in the given order; ranges may repeat, overlap, and be empty.

    Ranges at most 64 KiB apart are read together. With a larger `gap`, as :func:`gap_of` returns for object stores, up
    to 24 requests of at most 8 MiB run in parallel; if there would be more, ranges at most the gap apart are read
    together. Bytes between ranges are freed as soon as they are read: besides the requested bytes, memory is needed for
    24 requests.

    Raises InvalidParquet for a range outside the file, before anything is read, and if fewer bytes arrive than were
    requested; OSError if the file cannot be read.
    """
    _require_inside(file.size(), ranges)
    return fetch_ranges(file, ranges, gap)


def fetch_ranges(file: pa.NativeFile, ranges: Sequence[Range], gap: int) -> list[View]:
    """Read as :func:`read_ranges`, without looking up the file's size: ranges beyond its end fail when read."""
    is_remote = gap > LOCAL_GAP
    longest = LONGEST if is_remote else ENDLESS
    parts_of = [_split(*range_, longest) for range_ in ranges]
    wanted = sorted({part for parts in parts_of for part in parts if part[1]})
    runs = list(_runs(wanted, min(gap, LOCAL_GAP), longest))
    if is_remote and len(runs) > READ_THREADS:
        runs = list(_runs(wanted, gap, longest))
    read: dict[Range, View] = {}
    if is_remote and len(runs) > 1:
        with ThreadPoolExecutor(min(READ_THREADS, len(runs))) as threads:
            for data_of_run in threads.map(lambda run: _read_run(file, run), runs):
                read |= data_of_run
    else:
        for run in runs:
            read |= _read_run(file, run)
    return [_joined(parts, read) for parts in parts_of]


def _require_inside(size: int, ranges: Sequence[Range]) -> None:
    for offset, length in ranges:
        if offset < 0 or length < 0 or offset + length > size:
            raise InvalidParquet(f"{length} bytes at {offset} do not lie in the file, which ends at byte {size}")


def _split(offset: int, length: int, longest: int) -> list[Range]:
    """Split a range into ranges of at most `longest` bytes."""
    ends = [*range(offset, offset + length, longest), offset + length]
    return [(start, stop - start) for start, stop in pairwise(ends)]


def _runs(ranges: Sequence[Range], gap: int, longest: int) -> Iterator[list[Range]]:
    """Group ascending ranges that are read together."""
    run: list[Range] = []
    start = stop = 0
    for offset, length in ranges:
        if run and (offset - stop > gap or max(stop, offset + length) - start > longest):
            yield run
            run = []
        start, stop = (start, max(stop, offset + length)) if run else (offset, offset + length)
        run.append((offset, length))
    if run:
        yield run


def _read_run(file: pa.NativeFile, run: Sequence[Range]) -> dict[Range, View]:
    """Read every range of a run; copies if there are others between, so that these are freed."""
    start, stop = run[0][0], max(offset + length for offset, length in run)
    data = _read(file, start, stop - start)
    if len(run) == 1:
        return {run[0]: data}
    view = memoryview(data)
    views = {(offset, length): view[offset - start : offset - start + length] for offset, length in run}
    if sum(length for _, length in run) >= len(data):
        return dict(views)
    return {range_: bytes(part) for range_, part in views.items()}


def _joined(parts: Sequence[Range], read: Mapping[Range, View]) -> View:
    match parts:
        case [part]:
            return read.get(part, b"")
        case _:
            return b"".join(read[part] for part in parts)


def _read(file: pa.NativeFile, offset: int, length: int) -> bytes:
    data = _tried_again(file, offset, length)
    if len(data) != length:
        raise InvalidParquet(f"truncated: {len(data)} bytes at {offset} instead of {length}")
    return data


def _tried_again(file: pa.NativeFile, offset: int, length: int) -> bytes:
    for pause in PAUSES:
        try:
            return bytes(file.read_at(length, offset))
        except OSError as error:
            if _NOT_TRIED_AGAIN not in str(error):
                raise
        time.sleep(pause)
    return bytes(file.read_at(length, offset))
