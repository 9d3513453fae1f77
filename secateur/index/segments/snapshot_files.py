"""Snapshot files in a store: their names and numbers, and how one is opened."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index.container.index_file import SNAPSHOT, ReadRange, read_contents
from secateur.index.model import BuildOptions, Store, StoredFile
from secateur.index.segments.base_file import KeepBase, read_anew
from secateur.index.segments.segment_table import Segments, summarised
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.snapshot_writer import encode_snapshot

FOLDER = "snapshots"
_NAME = re.compile(r"(\d{10})\.snapshot")
READ_AT_ONCE = 1 << 20  # bytes read from the end of a snapshot on an object store; takes less time than two requests


def snapshot_name(number: int) -> str:
    """Return the name of the snapshot file with this number."""
    return f"{FOLDER}/{number:010d}.snapshot"


def snapshot_files(store: Store) -> dict[int, StoredFile]:
    """Return the snapshot files of a store by number, ascending."""
    files = {}
    for file in store.files(FOLDER):
        match = _NAME.fullmatch(file.name.rsplit("/", 1)[-1])
        if match:
            files[int(match.group(1))] = file
    return dict(sorted(files.items()))


def last_snapshot_file(store: Store) -> tuple[int, StoredFile] | None:
    """Return the snapshot file with the highest number, and the number; None if a store has none."""
    file = store.last(FOLDER, _NAME)  # all numbers have ten digits, so names order as numbers do
    return None if file is None else (int(file.name[-len("0000000000.snapshot") : -len(".snapshot")]), file)


def snapshot_numbers(store: Store) -> list[int]:
    """Return the numbers of all snapshots in a store, ascending."""
    return list(snapshot_files(store))


def open_snapshot(store: Store, number: int, size: int | None = None, keep: KeepBase = read_anew) -> Snapshot:
    """Open the snapshot with this number; a given `size` in bytes saves a look-up. Raises IndexFault.

    `keep` may return a base that was read before.
    """
    name = snapshot_name(number)
    size = store.size(name) if size is None else size

    def read_exactly(offset: int, count: int) -> bytes:
        return store.read(name, offset, count)

    read = read_exactly if store.is_local or size <= 0 else _with_end(read_exactly, size)
    snapshot = Snapshot(read_contents(name, SNAPSHOT, size, read), read, size, store, keep)
    if snapshot.number != number:
        raise IndexFault(f"{name} says that it is number {snapshot.number}")
    return snapshot


def snapshot_in_memory(segments: Segments, options: BuildOptions, schema: pa.Schema) -> Snapshot:
    """Return a snapshot of segments that is in no store."""
    alone = replace(segments, files=segments.files.without_base())
    data = encode_snapshot(0, 0.0, alone, options, schema)

    def read(offset: int, count: int) -> bytes:
        return data[offset : offset + count]

    return Snapshot(read_contents("memory", SNAPSHOT, len(data), read), read, len(data), None, read_anew)


@cache
def no_segments() -> Snapshot:
    """Return a snapshot without segments: a table without an index is read with it."""
    return snapshot_in_memory(summarised([], [], [], {}), BuildOptions(), pa.schema([]))


def _with_end(read: ReadRange, size: int) -> ReadRange:
    """Read the end of a file of `size` bytes at once and serve it from memory; a short file is read whole."""
    start = max(0, size - READ_AT_ONCE)
    end = read(start, size - start)

    def read_rest(offset: int, count: int) -> bytes:
        return end[offset - start : offset - start + count] if offset >= start else read(offset, count)

    return read_rest
