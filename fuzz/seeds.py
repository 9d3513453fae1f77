"""The first inputs of every target: what builds write, from the golden index and small values."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyroaring import BitMap64

from fuzz.frame import chunks_of, packed
from fuzz.targets import DELETES, GOLDEN, MANIFEST, PARQUET, index_begin
from secateur.index.container import index_file
from secateur.index.container.array_codec import DTYPES, encode
from secateur.index.container.index_file import Contents, as_it_lies, encode_chunk, read_contents
from secateur.index.zones.page_locations import FileLocations, locations_array, of_file, table_arrays
from secateur.io.parquet.file_locations import file_locations
from secateur.io.parquet.footer import read_footer
from secateur.io.storage.disk_cache_entry import EntryName, write_entry
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.iceberg.manifest_arrays import FILES, ByField, Manifest
from secateur.io.tables.iceberg.manifest_cache import encode_manifests

STORE = FileStore(pafs.LocalFileSystem(), str(GOLDEN / "_secateur"))
MOST_BLOCKS = 4  # of a segment of the golden index


def seeds(name: str) -> list[bytes]:
    """The seeds of a target."""
    return list(_SEEDS[name]())


def as_they_lie(chunk: bytes) -> bytes:
    """A chunk whose arrays are not compressed, so that a changed byte changes one element."""
    return encode_chunk(index_file.decode_chunk(chunk, "seed"), as_it_lies)


def _opened(folder: str, kind: int) -> Iterator[tuple[str, Contents]]:
    for file in STORE.files(folder):
        yield file.name, read_contents(file.name, kind, file.size, partial(STORE.read, file.name))


def _golden_chunks() -> Iterator[tuple[str, bytes]]:
    for folder, kind in (("segments", index_file.SEGMENT), ("snapshots", index_file.SNAPSHOT)):
        for name, contents in _opened(folder, kind):
            yield from chunks_of(contents, STORE, name).items()


def _chunks() -> Iterator[bytes]:
    for dtype in DTYPES:
        yield encode_chunk([np.arange(5).astype(dtype), np.zeros(70, dtype), (np.arange(200) * 3).astype(dtype)])
    yield from (data for _, data in _golden_chunks())


def _files() -> Iterator[bytes]:
    for folder in ("segments", "snapshots", "filters"):
        yield from (STORE.read(file.name, 0, file.size) for file in STORE.files(folder))


def _contents() -> Iterator[bytes]:
    yield b'{"meta":{},"chunks":{"a":[16,8,0]},"matrices":{"b":[64,9,3,1]}}'


def _snapshots() -> Iterator[bytes]:
    for name, contents in _opened("snapshots", index_file.SNAPSHOT):
        chunks = chunks_of(contents, STORE, name)
        yield packed(contents.meta, chunks)
        yield packed(contents.meta, {name: as_they_lie(chunk) for name, chunk in chunks.items()})


def _segments() -> Iterator[bytes]:
    for name, contents in _opened("segments", index_file.SEGMENT):
        for n in (2, MOST_BLOCKS):
            for data in chunks_of(contents, STORE, name).values():
                yield from (struct.pack("<HH", n, 2) + form for form in (data, as_they_lie(data)))


def _bloom_matrices() -> Iterator[bytes]:
    for name, contents in _opened("snapshots", index_file.SNAPSHOT):
        for chunk, data in chunks_of(contents, STORE, name).items():
            if chunk.startswith("bloom-matrices/"):
                arrays = index_file.decode_chunk(data, chunk)[2:]
                yield from (struct.pack("<H", 2) + encode_chunk(arrays, how) for how in (encode, as_it_lies))


def _matrices() -> Iterator[bytes]:
    for name, contents in _opened("filters", index_file.FILTERS):
        for matrix in contents.matrices.values():
            wanted = [0, 1, matrix.rows - 1, 2, 3, 5, 7, 7]
            header = struct.pack("<QIIQ8H", 0, matrix.rows, matrix.width, matrix.salt, *wanted)
            yield header + STORE.read(name, matrix.at, matrix.nbytes)


def _postings() -> Iterator[bytes]:
    for n, (chunk, data) in ((n, golden) for n in (2, MOST_BLOCKS) for golden in _golden_chunks()):
        if chunk.startswith("posting/"):
            table = encode_chunk(index_file.decode_chunk(data, chunk)[1:4])
            yield struct.pack("<HQH", n, 1 << 60, len(table)) + table + bytes(range(256))


def _vectors() -> Iterator[bytes]:
    for rows in ([], [0], [1, 2, 3, 1 << 40], list(range(0, 5000, 3)), list(range(100_000))):
        yield BitMap64(rows).serialize()


def _manifests() -> Iterator[bytes]:
    row = {"content": 0, "path": "a/b.parquet", "format": "PARQUET", "record_count": 3, "size": 99, "spec": 0}
    files = pa.RecordBatch.from_pylist([row, {**row, "split_offsets": [4, 50]}], FILES)
    numbers = np.array([0, 1], np.int32)
    counts, bounds = (ByField(numbers, numbers, values) for values in (pa.array([1, 2]), pa.array([b"a", b"b"])))
    partition = {1000: pa.array([1, None], pa.int32()), 1001: pa.array(["x", "y"])}
    kept = {key: Manifest(files, partition, counts, counts, bounds, bounds) for key in (MANIFEST, DELETES)}
    data = encode_manifests(kept)
    contents = read_contents("f", index_file.MANIFESTS, len(data), lambda at, size: data[at : at + size])
    chunks = {name: data[at : at + size] for name, (at, size, _) in contents.chunks.items()}
    yield packed(contents.meta, chunks)
    yield packed(contents.meta, {name: as_they_lie(chunk) for name, chunk in chunks.items()})


def _footers() -> Iterator[bytes]:
    for part in ("part=0", "part=1"):
        data = (GOLDEN / part / "rows.parquet").read_bytes()
        yield data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def _pages() -> Iterator[bytes]:
    yield PARQUET.read_bytes()[4 : index_begin()]


def _parquets() -> Iterator[bytes]:
    yield PARQUET.read_bytes()
    for version, compression in (("1.0", "snappy"), ("2.0", "none")):
        table = pa.table({"a": [1, None, 3], "b": ["x", "x", None], "c": [[1], [], [2, 3]]})
        sink = pa.BufferOutputStream()
        pq.write_table(
            table, sink, data_page_version=version, compression=compression, write_page_index=True, max_rows_per_page=2
        )
        yield sink.getvalue().to_pybytes()


def _page_indexes() -> Iterator[bytes]:
    data = PARQUET.read_bytes()
    yield data[index_begin() : len(data) - 8 - int.from_bytes(data[-8:-4], "little")]


def _blooms() -> Iterator[bytes]:
    yield bytes.fromhex("1540" + "1c1c0000" * 3 + "00") + bytes(range(32))  # 32 bytes, block, XXH64, uncompressed


def _golden_locations() -> Iterator[tuple[int, FileLocations]]:
    for part in ("part=0", "part=1"):
        opened = pa.BufferReader((GOLDEN / part / "rows.parquet").read_bytes())
        yield opened.size(), file_locations(opened, read_footer(opened))


def _locations() -> Iterator[bytes]:
    for size, locations in _golden_locations():
        for data in locations.blocks:
            yield from (struct.pack("<I", size) + form for form in (data, as_they_lie(data)))


def _location_tables() -> Iterator[bytes]:
    for _, locations in _golden_locations():
        page_locations = of_file(locations)
        for how in (encode, as_it_lies):
            table = encode_chunk(table_arrays(page_locations, 0), how)
            yield (
                struct.pack("<HH", len(page_locations), len(table)) + table + locations_array(page_locations).tobytes()
            )


def _heads() -> Iterator[bytes]:
    yield from (locations.head for _, locations in _golden_locations())


def _page_walks() -> Iterator[bytes]:
    for version in ("1.0", "2.0"):
        for column in (pa.array([0] * 100), pa.array([[]] * 100, pa.list_(pa.int8()))):
            sink, table = io.BytesIO(), pa.table({"a": column})
            pq.write_table(table, sink, data_page_size=1, write_batch_size=10, data_page_version=version)
            stored = read_footer(pa.BufferReader(sink.getvalue())).chunks(0)[0].stored
            assert stored is not None
            yield sink.getvalue()[4 : 4 + stored.size]


def _cache_entries() -> Iterator[bytes]:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as root:
        name = EntryName.of(root, "key")
        write_entry(name, b"the bytes of an entry")
        yield Path(name.path).read_bytes()


_SEEDS = {
    "chunk": _chunks,
    "file": _files,
    "contents": _contents,
    "snapshot": _snapshots,
    "segment": _segments,
    "bloom_matrices": _bloom_matrices,
    "matrix": _matrices,
    "postings": _postings,
    "vector": _vectors,
    "manifests": _manifests,
    "thrift": _footers,
    "footer": _footers,
    "page_index": _page_indexes,
    "pages": _pages,
    "parquet": _parquets,
    "bloom": _blooms,
    "page_locations": _locations,
    "location_table": _location_tables,
    "head": _heads,
    "page_walk": _page_walks,
    "cache_entry": _cache_entries,
}
