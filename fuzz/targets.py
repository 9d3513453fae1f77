"""Readers of untrusted bytes, one function each: it returns, or raises the error that it promises.

Another exception, a crash, a hang, and memory out of proportion are bugs.
"""

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from fuzz.frame import file_of, unpacked
from secateur.errors import IndexFault, InvalidParquet
from secateur.index.container import index_file
from secateur.index.container.checked_matrix import Matrix, read_rows
from secateur.index.container.index_file import decode_chunk, read_contents
from secateur.index.filters.bloom_matrix import bloom_matrices_of
from secateur.index.filters.postings import blocks_with, posting_table_of
from secateur.index.segments.segment_file import (
    COLUMN_KINDS,
    FILTER_KINDS,
    blocks_of,
    pages_of,
    places_of,
    size_classes_of,
    zone_map_of,
)
from secateur.index.segments.segment_file import postings_of as stored_postings_of
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.snapshot_files import open_snapshot, snapshot_name
from secateur.index.zones.page_locations import location_table_of
from secateur.io.parquet.bloom_filter import native_filters, read_filter
from secateur.io.parquet.chunk_locations import ChunkLocations
from secateur.io.parquet.column_chunk import StoredChunk
from secateur.io.parquet.file_locations import read_locations
from secateur.io.parquet.file_metadata import FileMetadata
from secateur.io.parquet.footer import chunk_bounds, read_footer, read_page_index
from secateur.io.parquet.location_codec import decode_locations, encode_locations
from secateur.io.parquet.page_reader import PageReader
from secateur.io.parquet.page_walk import walked
from secateur.io.parquet.row_selection import chosen_rows
from secateur.io.parquet.schema import SchemaColumn
from secateur.io.parquet.thrift import MalformedThrift, decode_leading
from secateur.io.storage.byte_ranges import LOCAL_GAP, REMOTE_GAP
from secateur.io.storage.disk_cache_entry import EntryName, read_entry
from secateur.io.tables.iceberg.manifest_cache import ManifestKey, decode_manifests
from secateur.pruning.predicate.bound import Field
from secateur.values.kinds import Kind
from tests.support.stores.memory_store import MemoryStore

Target = Callable[[bytes], None]
GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "v1"
PARQUET = GOLDEN / "part=0" / "rows.parquet"
MANIFEST = ManifestKey("m", 1, 1, False)
DELETES = ManifestKey("d", 1, 1, True)


def chunk(data: bytes) -> None:
    """The arrays of a chunk."""
    for array in decode_chunk(data, "chunk"):
        array[:1].tolist()


def file(data: bytes) -> None:
    """Any index file, its checksums as they are."""
    read = partial(MemoryStore({"f": data}).read, "f")
    for kind in (index_file.SNAPSHOT, index_file.SEGMENT, index_file.FILTERS, index_file.MANIFESTS):
        attempt(partial(_verified, kind, len(data), read))


def _verified(kind: int, size: int, read: index_file.ReadRange) -> list[str]:
    return read_contents("f", kind, size, read).verify(read)


def contents(data: bytes) -> None:
    """A table of contents in JSON, behind some bytes that its places may point to."""
    packed = pa.compress(data, codec="zstd", asbytes=True)
    crc, body = zlib.crc32(packed), bytes(4096)
    trailer = index_file.TRAILER.pack(
        4096, len(packed), len(data), crc, index_file.VERSION, index_file.SEGMENT, index_file.MAGIC
    )
    whole = MemoryStore({"f": body + packed + trailer})
    decoded = read_contents("f", index_file.SEGMENT, whole.size("f"), lambda at, size: whole.read("f", at, size))
    decoded.verify(lambda at, size: whole.read("f", at, size))


def snapshot(data: bytes) -> None:
    """Every part of a snapshot."""
    text, chunks = unpacked(data)
    name = snapshot_name(1)
    opened = open_snapshot(MemoryStore({name: file_of(index_file.SNAPSHOT, text, chunks)}), 1)
    calls: list[Callable[[], object]] = [lambda: opened.segments.block_begin, lambda: opened.files, lambda: opened.live]
    calls += [lambda: opened.tree, partial(opened.directory, "blocks", None), opened.as_segments]
    for column in opened.columns[:20]:
        field = Field(column.path, column.type)
        calls += [partial(_tree_zones, opened, field)]
        calls += [partial(opened.directory, kind, field) for kind in COLUMN_KINDS]
    for f in range(len(opened.filters[:20])):
        calls += [
            partial(opened.bloom_matrices, f),
            *(partial(opened.filter_directory, kind, f) for kind in FILTER_KINDS),
        ]
    for call in calls:
        attempt(call)


def _tree_zones(opened: Snapshot, field: Field) -> None:
    """The zone maps of the tree, for a column that has an order: no one reads those of others."""
    if opened.number_of(field) is not None:
        opened.tree_zones(field)


def attempt(ask: Callable[[], object]) -> None:
    """Read one part, and pass over an index fault in it."""
    try:
        ask()
    except IndexFault:
        return


_COUNTS = struct.Struct("<HH")  # blocks, files of a segment


def segment(data: bytes) -> None:
    """Arrays of every kind of chunk of a segment of n blocks, of whatever chunk they come from."""
    n, files = _COUNTS.unpack_from(data.ljust(_COUNTS.size, b"\0"))
    arrays = decode_chunk(data[_COUNTS.size :], "chunk")
    rows = np.full(n, 1000)
    readers: list[Callable[[], object]] = [
        partial(blocks_of, arrays, n, files, "blocks"),
        partial(places_of, arrays, n, "places"),
        partial(size_classes_of, arrays, n, "codes"),
        partial(stored_postings_of, arrays, n, 1 << 20, "postings"),
    ]
    for kind in (Kind.WORD, Kind.WIDE, Kind.BYTES):
        readers += [partial(zone_map_of, arrays, kind, n, "zones"), partial(pages_of, arrays, kind, rows, "pages")]
    for read in readers:
        attempt(read)


def bloom_matrices(data: bytes) -> None:
    """The bloom matrices of a filter over segments of a hundred blocks each."""
    (segments,) = struct.unpack_from("<H", data.ljust(2, b"\0"))
    arrays = decode_chunk(data[2:], "chunk")
    names = [f"f{i}" for i in range(len(arrays[0]) if arrays and len(arrays[0]) < 1000 else 0)]
    bloom_matrices_of(names, arrays, np.full(segments, 100), "bloom matrices")


_MATRIX = struct.Struct("<QIIQ8H")


def matrix(data: bytes) -> None:
    """Some rows of a matrix, and the bytes of its file."""
    at, rows, width, salt, *wanted = _MATRIX.unpack_from(data.ljust(_MATRIX.size, b"\0"))
    store = MemoryStore({"f": data[_MATRIX.size :]})
    shape = Matrix(at, rows, width, salt)
    if at + shape.nbytes > store.size("f") or not width:  # readers of matrices check that first
        return
    read_rows(shape, np.array(wanted, np.int64), lambda ranges: store.read_many("f", ranges), "matrix")


def postings(data: bytes) -> None:
    """The postings of n blocks, looked up, their rows whatever follows."""
    n, hashes, size = struct.unpack_from("<HQH", data.ljust(12, b"\0"))
    table = posting_table_of(decode_chunk(data[12 : 12 + size], "chunk"), n, "postings")
    rows = np.frombuffer(data[12 + size :], np.uint8)

    def read(chosen: np.ndarray) -> np.ndarray:
        if len(chosen) * table.width > 1 << 20:
            raise IndexFault("more than the file has")
        return (
            np.resize(rows, (len(chosen), table.width)) if len(rows) else np.zeros((len(chosen), table.width), np.uint8)
        )

    blocks_with(table, np.array([hashes, 0, 2**64 - 1], np.uint64), read, "postings")


def vector(data: bytes) -> None:
    """A deletion vector whose frame is right."""
    from secateur.io.tables.iceberg.delete_files import decoded_vector

    body = bytes.fromhex("d1d33964") + data
    decoded_vector(len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big"), "vector")


def manifests(data: bytes) -> None:
    """The manifests of a table as an index keeps them."""
    text, chunks = unpacked(data)
    store = MemoryStore({"f": file_of(index_file.MANIFESTS, text, chunks)})
    decode_manifests("f", store.size("f"), lambda at, size: store.read("f", at, size), [MANIFEST, DELETES])


def thrift(data: bytes) -> None:
    """A structure of Thrift's compact protocol."""
    decode_leading(data)


def footer(data: bytes) -> None:
    """The footer of a Parquet file, its bounds and its page index."""
    body = b"PAR1" + bytes(4096)
    whole = body + data + len(data).to_bytes(4, "little") + b"PAR1"
    _read_all(pa.BufferReader(whole))


def _read_all(opened: pa.NativeFile) -> None:
    parsed = read_footer(opened)
    for leaf in parsed.leaves[:50]:
        chunk_bounds(parsed, leaf)
        native_filters(opened, parsed, leaf, 0.01)
    read_page_index(opened, parsed, parsed.leaves[:50])


def page_index(data: bytes) -> None:
    """The page index of a Parquet file, whose footer says where it lies."""
    whole = bytearray(PARQUET.read_bytes())
    end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    begin = index_begin()
    whole[begin:end] = data[: end - begin].ljust(end - begin, b"\0")
    _read_all(pa.BufferReader(bytes(whole)))


@cache
def index_begin() -> int:
    """Where the page index of the golden file begins."""
    opened = pa.BufferReader(PARQUET.read_bytes())
    parsed = read_footer(opened)
    chunks = [chunk for group in parsed._chunks for chunk in group]
    places = [place for chunk in chunks for place in (chunk.column_index, chunk.offset_index)]
    return min(place[0] for place in places if place is not None)


def pages(data: bytes) -> None:
    """The pages of a Parquet file, whose footer and page index are as they were."""
    whole = bytearray(PARQUET.read_bytes())
    end = index_begin()
    whole[4:end] = data[: end - 4].ljust(end - 4, b"\0")
    _read_pages(bytes(whole))


def _read_pages(data: bytes) -> None:
    """Some rows of every row group by their pages, where these are known."""
    opened = pa.BufferReader(data)
    parsed = read_footer(opened)
    for row_group, n in enumerate(parsed.row_count[:5].tolist()):
        leaves = range(len(parsed.head.columns))
        locations = read_locations(opened, parsed, row_group, leaves).of(leaves)
        if n and locations is not None and locations.has_pages:
            reader = PageReader("it", opened, parsed.head, partial(_same, locations))
            rows = chosen_rows(np.unique([0, n // 2, n - 1]))
            for table in reader.read(row_group, parsed.head.schema.names, rows):
                if len(table) != len(rows):
                    raise AssertionError(f"{len(table)} rows instead of {len(rows)}")


def _same(locations: ChunkLocations, row_group: int, leaves: Sequence[int]) -> ChunkLocations:
    return locations


def parquet(data: bytes) -> None:
    """A Parquet file, read by its pages."""
    _read_pages(data)


def bloom(data: bytes) -> None:
    """A bloom filter of a Parquet file."""
    for length in (None, len(data)):
        try:
            read_filter(pa.BufferReader(b"PAR1" + data), 4, length)
        except InvalidParquet:
            continue


def locations(data: bytes) -> None:
    """Page locations in a file of some bytes, and what is made of some of its leaves."""
    (size,) = struct.unpack_from("<I", data.ljust(4, b"\0"))
    decoded = decode_locations(data[4:], size, "page locations")
    if len(decoded.chunks) < 100:
        again = decode_locations(encode_locations(decoded), size, "page locations", range(3))
        assert [*again.chunks] == [leaf for leaf in decoded.chunks if leaf < 3]


def location_table(data: bytes) -> None:
    """The table of the page locations of n blocks, and the page locations in the bytes that follow it."""
    n, size = struct.unpack_from("<HH", data.ljust(4, b"\0"))
    body = data[4 + size :]
    table = location_table_of(decode_chunk(data[4 : 4 + size], "table"), n, len(data), "table")
    table.page_locations(body[: table.range[1]], "table").take(np.arange(n)[::2])


def head(data: bytes) -> None:
    """The head of a file, and the schema that pyarrow reads in it."""
    try:
        metadata = FileMetadata(data)
        metadata.leaves(["a"])
        metadata.footer(0, {})
    except KeyError:
        return


def page_walk(data: bytes) -> None:
    """The headers of the pages of a chunk, of a flat column and a repeated one."""
    opened = pa.BufferReader(b"PAR1" + data)
    stored = StoredChunk(4, 0, len(data), 1 << 20, 0, 100, -1, -1)
    for repetition in (0, 1):
        for gap in (LOCAL_GAP, REMOTE_GAP):
            walked(opened, stored, replace(_column(), repetition=repetition), 100, gap)


@cache
def _column() -> SchemaColumn:
    """A flat column."""
    return read_footer(pa.BufferReader((GOLDEN / "part=0" / "rows.parquet").read_bytes())).head.columns[0]


def cache_entry(data: bytes) -> None:
    """A file of the cache on local disk; its header is that of the key where it is long enough."""
    with tempfile.TemporaryDirectory() as root:
        name = EntryName.of(root, "key")
        Path(name.path).parent.mkdir()
        Path(name.path).write_bytes(data)
        read_entry(name)


# The errors by which a target may refuse its input.
TARGETS: dict[str, tuple[Target, tuple[type[Exception], ...]]] = {
    "chunk": (chunk, (IndexFault,)),
    "file": (file, ()),
    "contents": (contents, (IndexFault,)),
    "snapshot": (snapshot, (IndexFault,)),
    "segment": (segment, (IndexFault,)),
    "bloom_matrices": (bloom_matrices, (IndexFault,)),
    "matrix": (matrix, (IndexFault,)),
    "postings": (postings, (IndexFault,)),
    "vector": (vector, (InvalidParquet,)),
    "manifests": (manifests, (IndexFault,)),
    "thrift": (thrift, (MalformedThrift,)),
    "footer": (footer, (InvalidParquet,)),
    "page_index": (page_index, (InvalidParquet,)),
    "pages": (pages, (InvalidParquet,)),
    "parquet": (parquet, (InvalidParquet,)),
    "bloom": (bloom, ()),
    "page_locations": (locations, (IndexFault,)),
    "location_table": (location_table, (IndexFault,)),
    "head": (head, (InvalidParquet, MalformedThrift)),
    "page_walk": (page_walk, ()),
    "cache_entry": (cache_entry, (OSError,)),
}


def run(name: str, data: bytes) -> None:
    """Run a target on one input; an error beyond its promise is raised."""
    target, refusals = TARGETS[name]
    try:
        target(data)
    except refusals:
        return
