"""Index files: what is written is read back, and no harm to the bytes gives other arrays, only an IndexFault."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import KINDS

from secateur.errors import IndexFault
from secateur.index import bitsliced, codec, zonemap
from secateur.index.codec import HEADER, MAGIC, SEGMENT, SNAPSHOT, TRAILER, VERSION, Writer, read_contents
from secateur.index.model import BlockTable, BuildOptions, IndexedColumn, StoredFile, type_name, type_of_name
from secateur.index.pages import PageTable
from secateur.index.reader import current_snapshot, open_segment
from secateur.index.segment import BlockFilters, SegmentData, encode_segment
from secateur.index.snapshot import SegmentSummary, encode_snapshot, open_snapshot, snapshot_name
from secateur.pruning.predicate.bound import Field

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
FILES = [("p=1/ä b.parquet", 1000, 1_700_000_000_000_000_001), ("p=2/c.parquet", 2**40, 5)]


@dataclass
class Memory:
    """A store in memory."""

    data: dict[str, bytes] = field(default_factory=dict)
    location: str = "memory:"

    def files(self, folder: str) -> list[StoredFile]:
        return [StoredFile(n, len(d), 0.0) for n, d in sorted(self.data.items()) if n.startswith(folder + "/")]

    def read(self, name: str, offset: int, size: int) -> bytes:
        found = self.data.get(name, b"")[offset : offset + size]
        if offset < 0 or len(found) != size:
            raise IndexFault(f"{name} ends before byte {offset + size}")
        return found

    def read_many(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self.read(name, offset, size) for offset, size in ranges]

    def size(self, name: str) -> int:
        if name not in self.data:
            raise IndexFault(f"{name} is missing")
        return len(self.data[name])

    def put(self, name: str, data: bytes) -> None:
        self.data[name] = data

    create = put

    def delete(self, name: str) -> None:
        self.data.pop(name, None)


def zone_maps() -> list[zonemap.ZoneMap]:
    found = []
    for column, (lower, upper) in zip(COLUMNS, BOUNDS, strict=True):
        type_ = pa.binary() if column.type == pa.string() else column.type
        counts = np.array([0, 0, -1, 1]), np.zeros(4, np.int64)
        bounds = pa.array(lower, type_), pa.array(upper, type_)
        found.append(zonemap.from_bounds(column.type, *bounds, *counts, ROWS))
    return found


def segment_data() -> SegmentData:
    blocks = BlockTable(
        np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32), ROWS, np.array([100, 0, 70, 10], np.int64)
    )
    maps = zone_maps()
    offsets = np.array([0, 3, 4, 6, 7])
    pages = PageTable(
        offsets,
        np.array([0, 4, 8, 0, 0, 6, 0]),
        np.arange(7) * 100 + 4,
        np.full(7, 100),
        maps[0].take(np.repeat(np.arange(4), np.diff(offsets))),
    )
    hashes = [bitsliced.hash_values(pa.array(range(n), pa.int64())) for n in ROWS.tolist()]
    log2_bits = np.array([bitsliced.log2_bits_for(len(h.first), 3) for h in hashes], np.int8)
    filters = [bitsliced.build_filter(h, 3, int(b)) for h, b in zip(hashes, log2_bits, strict=True)]
    return SegmentData(FILES, blocks, COLUMNS, maps, {0: pages}, {0: BlockFilters(log2_bits, filters, 3)})


def segment_bytes() -> bytes:
    return encode_segment(segment_data())


def snapshot_bytes() -> bytes:
    one = [zonemap.merge(z, ROWS, np.zeros(1, np.int64)) for z in zone_maps()]
    counts = np.array([[2, 10, 100], [2, 8, 80]])
    summary = SegmentSummary(NAME, len(segment_bytes()), 18, 4, FILES, counts, one)
    schema = pa.schema(
        [("id", pa.int64()), ("nested", pa.struct([("name", pa.string())])), ("wide", pa.decimal128(38, 2))]
    )
    options = BuildOptions(("id",), ("id",), 0.1, True, 4)
    return encode_snapshot(1, 1.5, COLUMNS, [summary], options, schema)


def everything_of_segment(store: Memory) -> list[Any]:
    """All that a segment file tells, as plain values."""
    segment = open_segment(store, NAME, store.size(NAME))
    blocks = segment.blocks()
    n = len(blocks)
    found: list[Any] = [segment.files, segment.columns, plain(blocks)]
    for column in COLUMNS:
        found.append(plain(segment.zone_map(column.path, column.type, n)))
        found.append(plain(segment.pages(column.path, column.type, blocks.row_count)))
        hashes = bitsliced.hash_values(pa.array([5, 69, 1000]))
        mask = segment.may_contain(column.path, column.type, hashes, n)
        found.append(None if mask is None else mask.tolist())
    return found


def everything_of_snapshot(store: Memory) -> list[Any]:
    snapshot = current_snapshot(store)
    assert snapshot is not None
    files = snapshot.files
    found: list[Any] = [snapshot.number, snapshot.created, snapshot.columns, snapshot.segments, snapshot.options]
    found += [snapshot.schema, files.path.to_pylist(), snapshot.row_count.tolist(), plain(replace(files, path=None))]
    return [*found, *(plain(snapshot.zone_map_at(0, Field(c.path, c.type))) for c in COLUMNS)]


def plain(value: Any) -> Any:
    """Arrays, and what is made of them, as values that compare."""
    match value:
        case np.ndarray():
            return value.tolist()
        case tuple() | list():
            return [plain(item) for item in value]
        case _ if hasattr(value, "__dataclass_fields__"):
            return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
        case _:
            return value


@pytest.fixture
def store() -> Memory:
    return Memory({NAME: segment_bytes(), SNAPSHOT_NAME: snapshot_bytes()})


READERS: list[tuple[str, Callable[[Memory], list[Any]]]] = [
    (NAME, everything_of_segment),
    (SNAPSHOT_NAME, everything_of_snapshot),
]
readers = pytest.mark.parametrize(("name", "read_all"), READERS, ids=["segment", "snapshot"])


# ---- there and back --------------------------------------------------------------------------------------------------


def test_a_segment_is_read_as_it_was_written(store: Memory) -> None:
    written = segment_data()
    files, columns, blocks, *rest = everything_of_segment(store)
    assert files == list(FILES)
    assert columns == COLUMNS
    assert blocks == plain(written.blocks)
    assert rest[0::3] == plain(written.zone_maps)
    assert rest[1::3] == [plain(written.pages[0]), None, None]
    assert rest[2::3] == [[True, False, True, False], None, None]


def test_a_snapshot_is_read_as_it_was_written(store: Memory) -> None:
    snapshot = open_snapshot(store, 1)
    assert (snapshot.number, snapshot.created) == (1, 1.5)
    assert snapshot.columns == COLUMNS
    assert snapshot.options == BuildOptions(("id",), ("id",), 0.1, True, 4)
    assert snapshot.files.path.to_pylist() == [path for path, _, _ in FILES]
    assert snapshot.files.size.tolist() == [size for _, size, _ in FILES]
    assert snapshot.files.modified.tolist() == [modified for _, _, modified in FILES]
    assert snapshot.verify() == []


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    dtype = draw(st.sampled_from(["<i8", "<i4", "<u8", "|i1", "|u1", "|b1", "<u4"]))
    shape = draw(st.sampled_from([(0,), (1,), (7,), (63,), (64,), (1000,), (0, 3), (20, 30)]))
    values = np.random.default_rng(draw(st.integers(0, 99))).integers(0, draw(st.sampled_from([1, 2, 200])), shape)
    return values.astype(dtype)


@examples(ci=150)
@given(st.lists(arrays(), max_size=5))
def test_arrays_are_read_as_they_were_written(given_arrays: list[np.ndarray]) -> None:
    """Of every type and shape, compressed or not."""
    writer = Writer(SEGMENT, {"any": ["thing", 1, None]})
    for i, array in enumerate(given_arrays):
        writer.add(f"array/{i}", array)
    store = Memory({NAME: writer.finish()})
    contents = read_contents(NAME, SEGMENT, store.size(NAME), lambda offset, size: store.read(NAME, offset, size))
    assert contents.meta == {"any": ["thing", 1, None]}
    for i, array in enumerate(given_arrays):
        found = contents.array(f"array/{i}", lambda offset, size: store.read(NAME, offset, size))
        assert found.dtype == array.dtype
        assert found.tolist() == array.tolist()
        assert contents.sections[f"array/{i}"]["at"] % 8 == 0


@examples(ci=100)
@given(st.integers(0, 20), st.integers(1, 12), st.data())
def test_rows_are_read_one_by_one(n: int, width: int, data: st.DataObject) -> None:
    matrix = np.random.default_rng(n * 100 + width).integers(0, 256, (n, width), np.uint8)
    writer = Writer(SEGMENT, {})
    writer.add_rows("rows", matrix)
    store = Memory({NAME: writer.finish()})
    contents = read_contents(NAME, SEGMENT, store.size(NAME), lambda offset, size: store.read(NAME, offset, size))
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1)))) if n else [], np.int64)
    found = contents.rows("rows", chosen, lambda ranges: store.read_many(NAME, ranges))
    assert found.tolist() == matrix[chosen].tolist()


def test_type_names_there_and_back() -> None:
    for kind in KINDS:
        assert type_of_name(type_name(kind.type)) == kind.type
    for name in ("varchar", "decimal(99,2)", "decimal(5)", "decimal(a,b)", ""):
        with pytest.raises(IndexFault, match="unknown column type"):
            type_of_name(name)


# ---- harm ------------------------------------------------------------------------------------------------------------


@readers
@pytest.mark.parametrize("flip", [0x01, 0xFF])
def test_every_byte_may_be_flipped(
    store: Memory, name: str, read_all: Callable[[Memory], list[Any]], flip: int
) -> None:
    """Each of them: the same arrays, or an IndexFault. The first 16 bytes and padding are not looked at."""
    data, whole = store.data[name], read_all(store)
    unnoticed = 0
    for at in range(len(data)):
        store.data[name] = data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
        try:
            assert read_all(store) == whole, at
            unnoticed += 1
        except IndexFault:
            pass
    assert unnoticed < len(data) // 4  # the filters' rows that are not probed, mostly


@readers
def test_every_length_may_be_cut_off(store: Memory, name: str, read_all: Callable[[Memory], list[Any]]) -> None:
    data = store.data[name]
    for length in range(len(data)):
        store.data[name] = data[:length]
        with pytest.raises(IndexFault):
            read_all(store)
    store.data[name] = data + b"\0"
    with pytest.raises(IndexFault):
        read_all(store)


@readers
def test_verify_finds_every_flipped_bit_of_the_sections(
    store: Memory, name: str, read_all: Callable[[Memory], list[Any]]
) -> None:
    """All arrays and all rows of the filters, whether a query would read them or not."""
    data = store.data[name]
    contents = read_contents(name, SEGMENT if name == NAME else SNAPSHOT, len(data), lambda o, s: data[o : o + s])
    for section, entry in contents.sections.items():
        if entry["size"]:
            at = entry["at"] + entry["size"] // 2
            store.data[name] = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
            opened = open_segment(store, name, len(data)) if name == NAME else open_snapshot(store, 1)
            assert len(opened.verify()) == 1, section


def with_trailer(data: bytes, **changes: int) -> bytes:
    names = ("at", "stored", "raw", "crc", "version", "kind", "magic")
    values = dict(zip(names, TRAILER.unpack(data[-TRAILER.size :]), strict=True)) | changes
    return data[: -TRAILER.size] + TRAILER.pack(*values.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": VERSION + 1}, "is newer than 1, the newest known here: upgrade secateur"),
        ({"kind": SNAPSHOT}, "is an index file of kind 1 instead of 2"),
        ({"at": 2**63}, "lies outside the file"),
        ({"stored": 2**32 - 1}, "lies outside the file"),
        ({"raw": 2**32 - 1}, "lies outside the file"),
        ({"crc": 0}, "does not match its checksum"),
    ],
)
def test_what_the_trailer_may_say(store: Memory, changes: dict[str, int], message: str) -> None:
    store.data[NAME] = with_trailer(store.data[NAME], **changes)
    with pytest.raises(IndexFault, match=message):
        everything_of_segment(store)


def with_contents(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """A file whose table of contents says something else, with all checksums right."""
    at, stored, raw, *_ = TRAILER.unpack(data[-TRAILER.size :])
    contents = json.loads(pa.decompress(data[at : at + stored], decompressed_size=raw, codec="zstd", asbytes=True))
    change(contents)
    text = json.dumps(contents).encode()
    packed = pa.compress(text, codec="zstd", asbytes=True)
    trailer = TRAILER.pack(at, len(packed), len(text), zlib.crc32(packed), VERSION, SEGMENT, MAGIC)
    return data[:at] + packed + trailer


def section(name: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda contents: contents["sections"][name].update(changes)


def meta(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda contents: contents["meta"].update(changes)


def without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda contents: contents["sections"].pop(name)


LIES = [
    section("zone/0/null_count", at=-8),
    section("zone/0/null_count", at=2**70),
    section("zone/0/null_count", size=-1),
    section("zone/0/null_count", size="8"),
    section("zone/0/null_count", shape=[5]),
    section("zone/0/null_count", shape=[2**62, 2**62]),
    section("zone/0/null_count", shape=[-1]),
    section("zone/0/null_count", shape=[4.0]),
    section("zone/0/null_count", shape=[2, 2]),
    section("zone/0/null_count", shape=None),
    section("zone/0/null_count", dtype="<f8"),
    section("zone/0/null_count", dtype="O"),
    section("zone/0/null_count", dtype="nonsense"),
    section("zone/0/null_count", codec="lz4"),
    section("zone/0/null_count", codec="zstd"),
    section("zone/0/null_count", crc=None),
    section("zone/1/lower/0", dtype="<i8"),
    section("zone/2/lower/0", dtype="<u8"),
    section("block/file", dtype="<i8", shape=[2]),
    section("page/0/offsets", shape=[4], size=32),
    section("bloom/0/6", shape=[63, 1]),
    section("bloom/0/6", shape=[64, 1, 1]),
    section("bloom/0/6", codec="none"),
    lambda contents: contents["sections"].update({"zone/0/null_count": []}),
    without("zone/0/null_count"),
    without("zone/0/lower/0"),
    without("zone/2/lower/1"),
    without("page/0/first_row"),
    without("bloom/0/6"),
    without("block/row_group"),
    meta(columns=None),
    meta(columns=[{"path": ["id"]}]),
    meta(columns=[{"path": ["id"], "type": "varchar"}]),
    meta(columns=5),
    meta(files=None),
    meta(files=[["a", 1]]),
    meta(files=[["a", "b", "c"], ["a", 1, 1]]),
    meta(files=[FILES[0]]),
    meta(probes={}),
    meta(probes={"0": "three"}),
    meta(probes={"0": 0}),
    meta(probes={"0": 10**9}),
    lambda contents: contents.pop("meta"),
    lambda contents: contents.pop("sections"),
    lambda contents: contents.update(sections=[]),
    lambda contents: contents.update(meta=[]),
]


@pytest.mark.parametrize("lie", range(len(LIES)))
def test_contents_may_lie(store: Memory, lie: int) -> None:
    """Right checksums prove that nothing was damaged, not that it was written right: nothing is trusted."""
    store.data[NAME] = with_contents(store.data[NAME], LIES[lie])
    with pytest.raises(IndexFault):
        everything_of_segment(store)


def arrays_that_lie() -> list[SegmentData]:
    good = segment_data()
    pages = good.pages[0]
    return [
        replace(good, blocks=replace(good.blocks, file=np.array([0, 0, 2, 1], np.int32))),
        replace(good, blocks=replace(good.blocks, file=np.array([0, 0, -1, 1], np.int32))),
        replace(good, blocks=replace(good.blocks, row_group=np.array([0, -1, 0, 1], np.int32))),
        replace(good, blocks=replace(good.blocks, row_count=np.array([10, -1, 7, 1]))),
        replace(good, blocks=replace(good.blocks, byte_count=np.array([1, 2, 3]))),
        replace(good, pages={0: replace(pages, offsets=np.array([0, 3, 3, 6, 7]))}),
        replace(good, pages={0: replace(pages, offsets=np.array([1, 3, 4, 6, 7]))}),
        replace(good, pages={0: replace(pages, offsets=np.array([0, 4, 3, 6, 7]))}),
        replace(good, pages={0: replace(pages, offsets=np.array([0, 3, 4, 6, 2**40]))}),
        replace(good, pages={0: replace(pages, offsets=np.array([0, 3, 4, 6, -7]))}),
        replace(good, pages={0: replace(pages, first_row=np.array([0, 4, 4, 0, 0, 6, 0]))}),
        replace(good, pages={0: replace(pages, first_row=np.array([1, 4, 8, 0, 0, 6, 0]))}),
        replace(good, pages={0: replace(pages, first_row=np.array([0, 4, 10, 0, 0, 6, 0]))}),
        replace(good, pages={0: replace(pages, first_row=np.array([0, 4, 8, 0, 0, -6, 0]))}),
    ]


@pytest.mark.parametrize("lie", range(len(arrays_that_lie())))
def test_c38_arrays_may_contradict_each_other(store: Memory, lie: int) -> None:
    store.data[NAME] = encode_segment(arrays_that_lie()[lie])
    with pytest.raises(IndexFault):
        everything_of_segment(store)


def test_a_small_file_cannot_claim_much_memory() -> None:
    """The size of what is allocated is bounded by that of the file."""
    writer = Writer(SEGMENT, {})
    writer.add("numbers", np.arange(10_000))
    data = writer.finish()
    bomb = with_contents(data, section("numbers", shape=[2**40]))
    contents = read_contents(NAME, SEGMENT, len(bomb), lambda o, s: bomb[o : o + s])
    with pytest.raises(IndexFault, match="claims"):
        contents.array("numbers", lambda o, s: bomb[o : o + s])


def test_the_layout_golden() -> None:
    """The frame of every file, byte by byte: docs/format.md."""
    writer = Writer(SEGMENT, {"x": 1})
    writer.add("a", np.array([1, 2, 3], np.int32))
    writer.add("b", np.array([-1], np.int64))
    data = writer.finish()
    assert data[:16] == struct.pack("<8sHHI", b"SECATEUR", 1, 2, 0)
    assert data[16:32] == struct.pack("<iii4x", 1, 2, 3)
    assert data[32:40] == b"\xff" * 8
    at, stored, raw, crc, version, kind, magic = struct.unpack("<QIIIHH8s", data[-32:])
    assert (at, at + stored + 32, version, kind, magic) == (40, len(data), 1, 2, b"SECATEUR")
    packed = data[at : at + stored]
    assert zlib.crc32(packed) == crc
    contents = json.loads(pa.decompress(packed, decompressed_size=raw, codec="zstd", asbytes=True))
    crc_of_a = zlib.crc32(data[16:28])
    assert contents["meta"] == {"x": 1}
    assert contents["sections"]["a"] == {
        "at": 16, "size": 12, "dtype": "<i4", "shape": [3], "codec": "none", "crc": crc_of_a
    }  # fmt: skip
    assert HEADER.size == 16
    assert codec.VERSION == 1
