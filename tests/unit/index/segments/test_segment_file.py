"""Segments and snapshots: read as they were written, or an IndexFault, whatever happened to the bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest

from secateur.errors import IndexFault
from secateur.index.container import index_file
from secateur.index.container.index_file import ALIGNMENT, HEADER, SEGMENT, SNAPSHOT
from secateur.index.segments.segment_file import COLUMN_KINDS, FILTER_KINDS
from secateur.index.segments.snapshot_files import open_snapshot
from secateur.index.segments.snapshot_writer import encode_snapshot
from secateur.index.zones import segment_tree
from secateur.index.zones.zonemap import merge
from tests.support.profiles import by_profile, sweep
from tests.support.stores.index_files import (
    COLUMNS,
    FIELDS,
    FILES,
    FILTER_NAME,
    FILTERS,
    NAME,
    ONLY,
    OPTIONS,
    ROWS,
    SCHEMA,
    SNAPSHOT_NAME,
    Memory,
    everything_of_filters,
    everything_of_segment,
    everything_of_snapshot,
    opened,
    plain,
    segment_data,
    sound_store,
    zone_maps,
)


@pytest.fixture
def store() -> Memory:
    return sound_store()


READERS: list[tuple[str, int, Callable[[Memory], list[Any]]]] = [
    (NAME, SEGMENT, everything_of_segment),
    (FILTER_NAME, index_file.FILTERS, everything_of_filters),
    (SNAPSHOT_NAME, SNAPSHOT, everything_of_snapshot),
]
readers = pytest.mark.parametrize(("name", "kind", "read_all"), READERS, ids=["segment", "filters", "snapshot"])


# ---- there and back --------------------------------------------------------------------------------------------------


def test_a_segment_is_read_as_it_was_written(store: Memory) -> None:
    written = segment_data()
    blocks, *rest, size_classes, postings, ordered, answers, rows = everything_of_segment(store)
    assert blocks == plain(written.blocks)
    assert rest[0::3] == [plain(z.zones(ROWS)) for z in written.zone_maps]
    assert rest[1::3] == [plain(replace(written.pages[0], places=None)), None, None]
    assert rest[2::3] == [plain(written.pages[0].places), None, None]
    assert size_classes == [1051, 1025, 1087, -1]
    assert postings["table"] == plain(written.postings[1].table)
    assert ordered["table"] == plain(written.ordered[2].table)
    assert answers == [[0, 2, 3], [0, 1], [0, 1]]
    assert rows == [{"offsets": [0, 1, 1, 1, 1], "start": [0], "stop": [1]}]


def test_a_snapshot_is_read_as_it_was_written(store: Memory) -> None:
    snapshot = open_snapshot(store, 1)
    assert (snapshot.number, snapshot.created) == (1, 1.5)
    assert (snapshot.columns, snapshot.filters, snapshot.options) == (COLUMNS, FILTERS, OPTIONS)
    assert snapshot.schema == SCHEMA
    size = store.size(NAME)
    assert plain(snapshot.segments) == {
        "name": [NAME],
        "size": [size],
        "block_count": [4],
        "row_count": [18],
        "file_count": [2],
    }
    assert list(map(astuple, snapshot.files.identities())) == list(map(astuple, FILES))
    counts = (snapshot.files.block_count, snapshot.files.row_count, snapshot.files.byte_count, snapshot.files.segment)
    assert [c.tolist() for c in counts] == [[2, 2], [10, 8], [100, 80], [0, 0]]
    assert snapshot.segments.file_begin.tolist() == [0, 2]
    tree = segment_tree.tree_over(np.array([18]), 16)
    merged = [merge(z, ROWS, ONLY) for z in zone_maps()]
    assert plain(snapshot.tree) == plain(tree)
    assert [plain(snapshot.tree_zones(field)) for field in FIELDS] == [plain(z) for z in merged]
    assert snapshot.verify() == []


def test_a_snapshot_says_where_every_chunk_of_a_segment_lies(store: Memory) -> None:
    """The same places as the segment's own table of contents, which only verification reads."""
    contents, snapshot = store.contents(NAME, SEGMENT), opened(store)
    places = {}
    for field in (None, *FIELDS):
        for kind in ("blocks",) if field is None else COLUMN_KINDS:
            directory = snapshot.directory(kind, field)
            if directory is not None and directory.size[0]:
                c = "" if field is None else f"/{snapshot.number_of(field)}"
                places[kind + c] = tuple(int(array[0]) for array in (directory.at, directory.size, directory.crc))
    for f in range(len(FILTERS)):
        for kind in FILTER_KINDS:
            directory = snapshot.filter_directory(kind, f)
            if directory is not None:
                places[f"{kind}/{f}"] = tuple(int(array[0]) for array in (directory.at, directory.size, directory.crc))
    assert places == {name: tuple(place) for name, place in contents.chunks.items()}


def test_a_snapshot_says_where_every_filter_lies(store: Memory) -> None:
    """The same places as the filter file's own table of contents."""
    bloom_matrices = opened(store).bloom_matrices(0)
    assert bloom_matrices is not None
    assert (bloom_matrices.file_name, bloom_matrices.file_size.tolist()) == ([FILTER_NAME], [store.size(FILTER_NAME)])
    parts = store.contents(FILTER_NAME, index_file.FILTERS).matrices
    assert [bloom_matrices.part(i) for i in range(len(bloom_matrices.at))] == list(parts.values())
    assert opened(store).bloom_matrices(1) is None


def test_a_snapshot_of_no_segments(store: Memory) -> None:
    """As of a table whose files are all gone at a refresh."""
    nothing = opened(store).as_segments().take(np.zeros(0, np.int64))
    store.data[SNAPSHOT_NAME] = encode_snapshot(1, 1.5, nothing, OPTIONS, SCHEMA)
    snapshot = open_snapshot(store, 1)
    assert (len(snapshot.segments), len(snapshot.files.path), snapshot.segments.file_begin.tolist()) == (0, 0, [0])
    assert [snapshot.tree_zones(field) for field in FIELDS] == [None] * 3
    assert plain(list(vars(snapshot.as_segments()).values())) == plain(list(vars(nothing).values()))
    assert snapshot.verify() == []


# ---- harm ------------------------------------------------------------------------------------------------------------


def uncovered(store: Memory, name: str, kind: int) -> set[int]:
    """The bytes that no reader looks at: the first 16, and padding."""
    contents = store.contents(name, kind)
    ends = [place.at + place.size for place in contents.chunks.values()]
    ends += [m.at + m.nbytes for m in contents.matrices.values()]
    return {*range(HEADER.size), *(at for end in ends for at in range(end, end + -end % ALIGNMENT))}


def verified(store: Memory, name: str, kind: int) -> list[str]:
    try:
        return store.contents(name, kind).verify(store.reader(name))
    except IndexFault as fault:
        return [str(fault)]


@readers
@pytest.mark.parametrize("flip", [0x01, 0xFF])
def test_every_byte_may_be_flipped(
    store: Memory, name: str, kind: int, read_all: Callable[[Memory], list[Any]], flip: int
) -> None:
    """The same arrays, or an IndexFault; in chunks always a fault. Verification finds each."""
    data, whole, idle = store.data[name], read_all(store), uncovered(store, name, kind)
    chunks = {b for p in store.contents(name, kind).chunks.values() for b in range(p.at, p.at + p.size)}
    for at in range(0, len(data), by_profile(quick=5, full=1, nightly=1, fast=50)):
        store.data[name] = data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
        try:
            assert read_all(store) == whole, at
            assert at not in chunks, at
            # Of segments and filters rows that are not probed, and the table of contents.
            assert at in idle or name != SNAPSHOT_NAME, at
        except IndexFault:
            assert at not in idle, at
        assert bool(verified(store, name, kind)) == (at not in idle), at


@readers
def test_every_length_may_be_cut_off(
    store: Memory, name: str, kind: int, read_all: Callable[[Memory], list[Any]]
) -> None:
    """Before the end of what is read it is a fault; what a query does not read it does not miss, but verification."""
    data, whole = store.data[name], read_all(store)
    contents = store.contents(name, kind)
    end = max([place.at + place.size for place in contents.chunks.values()], default=0)
    for length in sweep(range(len(data)), 20):
        store.data[name] = data[:length]
        try:
            assert read_all(store) == whole
            assert name != SNAPSHOT_NAME and length >= end, length
        except IndexFault:
            pass
        assert verified(store, name, kind), length
    store.data[name] = data + b"\0"
    assert verified(store, name, kind)
    if name == SNAPSHOT_NAME:
        with pytest.raises(IndexFault):
            read_all(store)


@readers
def test_verification_reads_every_row_and_every_chunk(
    store: Memory, name: str, kind: int, read_all: Callable[[Memory], list[Any]]
) -> None:
    """Also of filters whose rows no query probes."""
    data, contents = store.data[name], store.contents(name, kind)
    spans = {chunk: (place.at, place.size) for chunk, place in contents.chunks.items()}
    spans |= {f"rows of {matrix}": (m.at, m.nbytes) for matrix, m in contents.matrices.items()}
    for span, (first, size) in spans.items():
        at = first + size // 2
        store.data[name] = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
        assert len(verified(store, name, kind)) == 1, span
