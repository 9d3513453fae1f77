"""An index in memory: a store, a small segment, a snapshot with every kind of chunk, and files with false contents."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index.container.array_codec import encode
from secateur.index.container.index_file import (
    MAGIC,
    TRAILER,
    VERSION,
    Contents,
    Place,
    Writer,
    as_it_lies,
    encode_chunk,
    read_contents,
)
from secateur.index.filters.bloom_fragment import BloomFragmentWriter
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.heads import heads_of
from secateur.index.filters.ordered import BlockEntries, ordered_of
from secateur.index.filters.postings_build import postings_of
from secateur.index.identity import FileIdentity
from secateur.index.model import BLOOM, ORDERED, POSTINGS, BlockTable, BuildOptions, Filter, FilterOption, IndexedColumn
from secateur.index.read.chunk_reader import ChunkReader, IndexChunk
from secateur.index.read.group_arrays import segment_groups
from secateur.index.read.loader import IndexMemory
from secateur.index.read.lookup import holders
from secateur.index.read.memory_cache import ByteCache
from secateur.index.read.open_index import current_snapshot
from secateur.index.read.ordered_lookup import rows_within
from secateur.index.segments.segment_file import (
    COLUMN_KINDS,
    FILTER_KINDS,
    PLACE,
    Encoded,
    SegmentData,
    encode_segment,
    places_of,
)
from secateur.index.segments.segment_files import SegmentFiles
from secateur.index.segments.segment_table import SegmentSummary, summarised
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.snapshot_files import snapshot_name
from secateur.index.segments.snapshot_writer import encode_snapshot
from secateur.index.zones import zonemap
from secateur.index.zones.page_statistics import PageTable, Places
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.bound import Field
from secateur.pruning.questions import Question, Ranges, Values
from secateur.pruning.report import Faults, Reads
from secateur.values.key import Key
from secateur.values.keys import UNBOUNDED, Keys
from secateur.values.kinds import Kind
from tests.support.stores.filter_files import bloom_matrices_in, hash_values
from tests.support.stores.memory_store import MemoryStore

ROWS = np.array([10, 0, 7, 1], np.int64)
COLUMNS = [
    IndexedColumn(("id",), pa.int64()),
    IndexedColumn(("nested", "name"), pa.string()),
    IndexedColumn(("wide",), pa.decimal128(38, 2)),
]
BOUNDS: list[tuple[list[object], list[object]]] = [
    ([-5, None, 3, 2**63 - 1], [4, None, None, 2**63 - 1]),
    ([b"", None, b"a" * 30, b"b"], [b"\xff", None, b"\xf4\x8f\xbf\xbf" * 20, b"b"]),
    ([Decimal("-1.5"), None, Decimal(0), None], [Decimal("9" * 36 + ".99"), None, Decimal(1), None]),
]
NAME, SNAPSHOT_NAME = "segments/0123456789ab-000000.segment", snapshot_name(1)
FILES = [
    FileIdentity("p=1/ä b.parquet", 1000, 1_700_000_000_000_000_001, -1, 2**63 - 1),
    FileIdentity("p=2/c.parquet", 2**40, 5, -(2**63), 0),
]
FILTER_NAME = "filters/0123456789ab-000000.filter"
NAME_COLUMN = ("nested", "name")
FILTERS = [
    Filter(BLOOM, ("id",), pa.int64()),
    Filter(POSTINGS, NAME_COLUMN, pa.string()),
    Filter(ORDERED, NAME_COLUMN, pa.string()),
]
FPR = 0.1
OPTIONS = BuildOptions(
    sort_key=("id",),
    filters=(FilterOption(BLOOM, "id"), FilterOption(POSTINGS, "nested.name"), FilterOption(ORDERED, "nested.name")),
    gaps=("id",),
    fpr=FPR,
    pages=True,
    segment_blocks=4,
    fan_out=16,
)
SCHEMA = pa.schema([("id", pa.int64()), ("nested", pa.struct([("name", pa.string())])), ("wide", pa.decimal128(38, 2))])
Arrays = list[np.ndarray]


@dataclass
class Memory(MemoryStore):
    """A store in memory; `fails` says of every read whether it does."""

    fails: Callable[[], bool] = lambda: False

    def read(self, name: str, offset: int, size: int) -> bytes:
        if self.fails():
            raise IndexFault(f"{name} cannot be read up to byte {offset + size}")
        return super().read(name, offset, size)

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        return lambda offset, size: self.read(name, offset, size)

    def contents(self, name: str, kind: int) -> Contents:
        return read_contents(name, kind, self.size(name), self.reader(name))


# ---- a segment and its snapshot --------------------------------------------------------------------------------------


def zone_maps() -> list[zonemap.ZoneMap]:
    maps = []
    for column, (lower, upper) in zip(COLUMNS, BOUNDS, strict=True):
        type_ = pa.binary() if column.type == pa.string() else column.type
        counts = np.array([0, 0, -1, 1]), np.zeros(4, np.int64)
        bounds = pa.array(lower, type_), pa.array(upper, type_)
        maps.append(zonemap.from_bounds(column.type, *bounds, *counts, ROWS))
    return maps


def segment_data() -> SegmentData:
    blocks = BlockTable(
        np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32), ROWS, np.array([100, 0, 70, 10], np.int64)
    )
    maps = zone_maps()
    offsets = np.array([0, 3, 4, 6, 7])
    pages = PageTable(
        offsets,
        np.array([0, 4, 8, 0, 0, 6, 0]),
        maps[0].take(np.repeat(np.arange(4), np.diff(offsets))),
        Places(np.arange(7) * 100 + 4, np.full(7, 100)),
    )
    size_classes = BloomFragmentWriter(Memory(), "fragments/1", FPR)
    for hashes in hashes_of_ids():
        size_classes.add(hashes)
    named = [None if names is None else hash_values(pa.array(names, pa.string())) for names in NAMES]
    filters = {0: size_classes.finish()}, {1: postings_of(named)}
    return SegmentData(FILES, blocks, COLUMNS, maps, {0: pages}, *filters, ordered={2: ordered_of(entries_of_names())})


# What filters have of the four blocks: filters of three sizes, and blocks of which nothing is known.
IDS: list[range | None] = [range(10), range(0), range(5, 51), None]
NAMES: list[list[str] | None] = [["a", "b"], None, ["b"], []]


def entries_of_names() -> list[BlockEntries | None]:
    """The names in order, in the first rows of their blocks."""
    return [
        None
        if names is None
        else BlockEntries(heads_of(pa.array(names, pa.string())), np.arange(len(names), dtype="u4"))
        for names in NAMES
    ]


def hashes_of_ids() -> list[np.ndarray | None]:
    return [None if ids is None else hash_values(pa.array(ids, pa.int64())) for ids in IDS]


def bloom_matrices_of(store: Memory) -> dict[int, BloomMatrices]:
    """The filters of ids, written to the store."""
    writer = BloomFragmentWriter(store, "fragments/1", FPR)
    for hashes in hashes_of_ids():
        writer.add(hashes)
    writer.finish()
    bloom_matrices = bloom_matrices_in(store, "0123456789ab", [writer.fragments])
    assert bloom_matrices is not None
    return {0: bloom_matrices}


def snapshot_of(encoded: Encoded, bloom_matrices: Mapping[int, BloomMatrices]) -> bytes:
    """A snapshot of one segment file and the filters beside it, whatever they hold."""
    one = [zonemap.merge(z, ROWS, np.zeros(1, np.int64)) for z in zone_maps()]
    counts = np.array([[2, 10, 100], [2, 8, 80]])
    summary = SegmentSummary(NAME, len(encoded.data), 18, 4, FILES, counts, one, encoded.places, {})
    return encode_snapshot(1, 1.5, summarised(COLUMNS, FILTERS, [summary], bloom_matrices), OPTIONS, SCHEMA)


def store_of(encoded: Encoded) -> Memory:
    store = Memory({NAME: encoded.data})
    store.put(SNAPSHOT_NAME, snapshot_of(encoded, bloom_matrices_of(store)))
    return store


def sound_store() -> Memory:
    return store_of(encode_segment(segment_data()))


# ---- values that compare ---------------------------------------------------------------------------------------------


def keys_list(keys: Keys) -> list[Key | None]:
    """Keys as Python values, however many words they take; None for what no string exceeds."""
    endless = keys.words[-1] == UNBOUNDED if keys.kind is Kind.BYTES else np.zeros(len(keys), bool)
    return [None if endless[i] else keys.at(i) for i in range(len(keys))]


def plain(value: Any) -> Any:
    """Arrays, and what is made of them, as values that compare."""
    match value:
        case np.ndarray():
            return value.tolist()
        case pa.Array():
            return value.to_pylist()
        case Keys():
            return keys_list(value)
        case tuple() | list():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case SegmentFiles():  # wherever they are stored
            return plain(value.table)
        case _ if hasattr(value, "__dataclass_fields__"):
            return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
        case _:
            return value


# ---- all that is read of it ------------------------------------------------------------------------------------------

FIELDS = [Field(c.path, c.type) for c in COLUMNS]
ONLY = np.zeros(1, np.int64)  # the number of the only segment, and of its group
WITHIN = Ranges(FIELDS[1], RangeSet(Kind.BYTES, np.array([b"a", b"b"], object)))
ASKED: list[Question] = [
    Values(FIELDS[0], pa.int64(), np.array([7, 69, 1000])),
    Values(FIELDS[1], pa.string(), np.array([b"a"], object)),
    WITHIN,
]


def opened(store: Memory) -> Snapshot:
    snapshot = current_snapshot(store)
    assert snapshot is not None
    return snapshot


def memory_of(store: Memory) -> IndexMemory:
    """The statistics of the segment, as a query reads them that is told of every fault."""
    snapshot, chunks = opened(store), ChunkReader(store, None, Reads())
    return IndexMemory(
        store, ByteCache(1 << 20), chunks, Faults(strict=True), snapshot, segment_groups(snapshot.segments)
    )


def everything_of_segment(store: Memory) -> list[Any]:
    """All that a segment file tells a query, as plain values."""
    memory = memory_of(store)
    (blocks,) = memory.blocks([(0, ONLY)])
    contents: list[Any] = [plain(blocks.of(0))]
    for column in FIELDS:
        (zones,) = memory.zones(column, [(0, ONLY)])
        (pages,) = memory.pages(column, ONLY)
        contents += [plain(zones.zones), plain(pages), places(memory, column)]
    (postings,) = memory.postings(1, ONLY)
    (ordered,) = memory.ordered(2, ONLY)
    filters = plain(memory.size_classes(0, ONLY)[0]), plain(postings), plain(ordered), everything_of_filters(store)
    return [*contents, *filters, [plain(rows_within(memory, WITHIN, np.arange(4), ROWS))]]


def everything_of_filters(store: Memory) -> list[Any]:
    """The blocks that may hold what is asked for."""
    memory = memory_of(store)
    return [plain(holders(memory, question, ONLY)) for question in ASKED]


def places(memory: IndexMemory, column: Field) -> Any:
    """Where the pages of a column lie, which is no statistic."""
    entries = memory.snapshot.directory(PLACE, column)
    if entries is None:
        return None
    (arrays,) = memory.chunks.read(
        [IndexChunk(NAME, PLACE, Place(int(entries.at[0]), int(entries.size[0]), int(entries.crc[0])))]
    )
    if isinstance(arrays, IndexFault):
        raise arrays
    return plain(places_of(arrays, 7, "places"))


def everything_of_snapshot(store: Memory) -> list[Any]:
    """All that a snapshot tells, as plain values."""
    snapshot = opened(store)
    contents: list[Any] = [snapshot.number, snapshot.created, snapshot.columns, snapshot.options, snapshot.schema]
    contents += [
        plain(snapshot.segments),
        plain(snapshot.files),
        plain(snapshot.segments.file_begin),
        plain(snapshot.tree),
    ]
    contents += [plain(snapshot.tree_zones(column)) for column in FIELDS]
    contents += [plain(snapshot.directory(kind, column)) for kind in COLUMN_KINDS for column in FIELDS]
    contents += [plain(snapshot.filter_directory(kind, f)) for kind in FILTER_KINDS for f in range(len(FILTERS))]
    contents += [snapshot.filters, *(plain(snapshot.bloom_matrices(f)) for f in range(len(FILTERS)))]
    return [*contents, plain(snapshot.directory("blocks", None)), plain(list(vars(snapshot.as_segments()).values()))]


# ---- files that lie, with all checksums right ------------------------------------------------------------------------


def with_trailer(data: bytes, **changes: int) -> bytes:
    names = ("at", "stored", "raw", "crc", "version", "kind", "magic")
    values = dict(zip(names, TRAILER.unpack(data[-TRAILER.size :]), strict=True)) | changes
    return data[: -TRAILER.size] + TRAILER.pack(*values.values())


def with_contents(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """A file whose table of contents says something else."""
    at, stored, raw, _, _, kind, _ = TRAILER.unpack(data[-TRAILER.size :])
    contents = json.loads(pa.decompress(data[at : at + stored], decompressed_size=raw, codec="zstd", asbytes=True))
    change(contents)
    text = json.dumps(contents).encode()
    packed = pa.compress(text, codec="zstd", asbytes=True)
    trailer = TRAILER.pack(at, len(packed), len(text), zlib.crc32(packed), VERSION, kind, MAGIC)
    return data[:at] + packed + trailer


def with_arrays(data: bytes, kind: int, changes: Mapping[str, Callable[[Arrays], Arrays]]) -> Encoded:
    """A file of whose chunks some hold other arrays. Matrices stay where they are: behind the chunks that are new."""
    contents = read_contents("file", kind, len(data), lambda at, size: data[at : at + size])
    writer = Writer(kind, contents.meta)
    writer._append(data[writer._size : TRAILER.unpack(data[-TRAILER.size :])[0]])
    writer.chunks.update(contents.chunks)
    writer.matrices.update(contents.matrices)
    for name, change in changes.items():
        chunk = encode_chunk(change(contents.arrays(name, lambda at, size: data[at : at + size])), _encoding)
        writer.chunks[name] = Place(writer._append(chunk), len(chunk), zlib.crc32(chunk))
    return Encoded(writer.finish(), writer.chunks)


def _encoding(array: np.ndarray) -> tuple[int, bytes]:
    """As ever, but for constants that no memory holds."""
    return as_it_lies(array) if array.strides == (0,) else encode(array)
