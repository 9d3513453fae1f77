"""Indexes on disk with false numbers in their files, but correct checksums."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.fs as pafs

from secateur.index.container.checked_matrix import read_rows, signed_salt
from secateur.index.container.index_file import FILTERS, SEGMENT, SNAPSHOT, Place, Writer, read_contents
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.snapshot_files import open_snapshot, snapshot_numbers
from secateur.io.storage.index_store import FileStore
from tests.support.stores.index_files import Arrays, with_arrays

Change = Callable[[Arrays], Arrays]
_SALT = 10  # of the arrays of bloom matrices
_SIZE = 2  # of the arrays of segments


def array(position: int, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Changes one of the arrays of a chunk."""
    return lambda arrays: [*arrays[:position], change(arrays[position].copy()), *arrays[position + 1 :]]


def element(position: int, at: int, value: int) -> Change:
    """Changes one number of one of the arrays of a chunk."""

    def change(values: np.ndarray) -> np.ndarray:
        values[at] = value
        return values

    return array(position, change)


def snapshot_of(index: Path) -> Snapshot:
    """The current snapshot of the index in a directory."""
    store = FileStore(pafs.LocalFileSystem(), str(index))
    return open_snapshot(store, max(snapshot_numbers(store)))


def lie_in_snapshot(index: Path, chunk: str, change: Change) -> None:
    """Another content of a chunk of the current snapshot."""
    path = index / snapshot_of(index).name
    path.write_bytes(with_arrays(path.read_bytes(), SNAPSHOT, {chunk: change}).data)


def lie_in_segment(index: Path, chunk: str, change: Change, segment: int = 0) -> None:
    """Another content of a chunk of a segment; the snapshot says where it lies."""
    path = index / snapshot_of(index).segments.name[segment]
    encoded = with_arrays(path.read_bytes(), SEGMENT, {chunk: change})
    path.write_bytes(encoded.data)
    place: Place = encoded.places[chunk]
    for position, value in enumerate(place):
        lie_in_snapshot(index, f"where/{chunk}", element(position, segment, value))
    lie_in_snapshot(index, "segments", element(_SIZE, segment, len(encoded.data)))


def lie_in_filters(index: Path, f: int, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Other rows of every matrix in the files of a filter."""
    bloom_matrices = snapshot_of(index).bloom_matrices(f)
    assert bloom_matrices is not None
    for name in bloom_matrices.file_name:
        path = index / name
        data = path.read_bytes()

        def read(at: int, size: int, data: bytes = data) -> bytes:
            return data[at : at + size]

        contents = read_contents(name, FILTERS, len(data), read)
        writer = Writer(FILTERS, contents.meta)
        for key, matrix in contents.matrices.items():
            rows = read_rows(matrix, np.arange(matrix.rows), lambda ranges: [read(*r) for r in ranges], name)
            new = writer.add_rows(key, change(rows.copy()))
            assert new.at == matrix.at
            (part,) = np.flatnonzero(
                (bloom_matrices.at == matrix.at) & (bloom_matrices.file == list(bloom_matrices.file_name).index(name))
            )
            lie_in_snapshot(index, f"bloom-matrices/{f}", element(_SALT, int(part), signed_salt(new.salt)))
        path.write_bytes(writer.finish())
