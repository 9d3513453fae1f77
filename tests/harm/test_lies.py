"""Index files that lie: right checksums prove that nothing was damaged, not that it was written right."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.errors import IndexFault
from secateur.index.container.index_file import MANIFESTS, SEGMENT, SNAPSHOT, Writer
from secateur.index.filters.heads import heads_of
from secateur.index.filters.ordered import BlockEntries, ordered_of
from secateur.index.filters.postings_build import postings_of
from secateur.index.model import BlockTable
from secateur.index.segments.segment_file import SegmentData, encode_segment
from secateur.io.tables.iceberg.manifest_arrays import FILES, Manifest
from secateur.io.tables.iceberg.manifest_cache import ManifestKey, decode_manifests
from tests.support.stores.index_files import (
    SCHEMA,
    SNAPSHOT_NAME,
    Arrays,
    Memory,
    everything_of_segment,
    everything_of_snapshot,
    segment_data,
    sound_store,
    store_of,
    with_arrays,
    with_contents,
)


@pytest.fixture
def store() -> Memory:
    return sound_store()


def arrays_that_contradict_each_other() -> list[SegmentData]:
    good = segment_data()
    pages = good.pages[0]

    def blocks(**changes: np.ndarray) -> SegmentData:
        return replace(good, blocks=replace(good.blocks, **changes))

    def paged(**changes: Any) -> SegmentData:
        return replace(good, pages={0: replace(pages, **changes)})

    def coded(*size_classes: int) -> SegmentData:
        return replace(good, size_classes={0: np.array(size_classes, np.int16)})

    def entries(row: int) -> BlockEntries:
        return BlockEntries(heads_of(pa.array(["a"])), np.array([row], np.uint32))

    shorter = good.zone_maps[0].take(np.arange(3))
    return [
        blocks(file=np.array([0, 0, 2, 1], np.int32)),
        blocks(file=np.array([0, 0, -1, 1], np.int32)),
        blocks(row_group=np.array([0, -1, 0, 1], np.int32)),
        blocks(row_count=np.array([10, -1, 7, 1])),
        blocks(byte_count=np.array([100, 0, -70, 10])),
        blocks(byte_count=np.array([1, 2, 3])),
        replace(good, blocks=BlockTable(*(array[:3] for array in vars(good.blocks).values()))),
        replace(good, zone_maps=[shorter, *good.zone_maps[1:]]),
        replace(good, zone_maps=[*good.zone_maps[1:], good.zone_maps[0]]),
        paged(offsets=np.array([0, 3, 3, 6, 7])),
        paged(offsets=np.array([1, 3, 4, 6, 7])),
        paged(offsets=np.array([0, 4, 3, 6, 7])),
        paged(offsets=np.array([0, 3, 4, 6, 2**40])),
        paged(offsets=np.array([0, 3, 4, 6, -7])),
        paged(offsets=np.array([0, 3, 7])),
        paged(first_row=np.array([0, 4, 4, 0, 0, 6, 0])),
        paged(first_row=np.array([1, 4, 8, 0, 0, 6, 0])),
        paged(first_row=np.array([0, 4, 10, 0, 0, 6, 0])),
        paged(first_row=np.array([0, 4, 8, 0, 0, -6, 0])),
        paged(first_row=np.array([0, 4, 8, 0, 0, 6])),
        paged(zone_map=good.zone_maps[0]),
        paged(places=replace(pages.places, size=np.full(6, 1))),  # type: ignore[type-var]
        coded(528, 512, 544),
        coded(528, 512, 544, -1, -1),
        coded(528, 512, 544, -2),
        coded(528, 512, 544, 544),
        coded(528, 512, -1, -1),
        coded(544, 544, 528, -1),
        replace(good, postings={1: postings_of([None] * 5)}),
        replace(good, ordered={2: ordered_of([None] * 5)}),
        *(replace(good, ordered={2: ordered_of([entries(row), *[None] * 3])}) for row in (10, 2**32 - 1)),
        replace(good, ordered={2: ordered_of([*[None] * 4, entries(0)])}),
        replace(good, size_classes={}),
    ]


@pytest.mark.parametrize("lie", range(len(arrays_that_contradict_each_other())))
def test_c38_arrays_may_contradict_each_other(lie: int) -> None:
    with pytest.raises(IndexFault):
        everything_of_segment(store_of(encode_segment(arrays_that_contradict_each_other()[lie])))


def array(position: int, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Arrays], Arrays]:
    return lambda arrays: [*arrays[:position], change(arrays[position]), *arrays[position + 1 :]]


def cast(position: int, dtype: str) -> Callable[[Arrays], Arrays]:
    return array(position, lambda a: a.astype(dtype))


def to(position: int, *values: int) -> Callable[[Arrays], Arrays]:
    return array(position, lambda a: np.array(values, a.dtype))


def constant(position: int, n: int) -> Callable[[Arrays], Arrays]:
    return array(position, lambda a: np.broadcast_to(a[:1], n))


def shorter(arrays: Arrays) -> Arrays:
    return arrays[:-1]


def longer(arrays: Arrays) -> Arrays:
    return [*arrays, arrays[-1]]


def empty(arrays: Arrays) -> Arrays:
    return []


BIG = 2**59  # elements: what allocates them fails
SEGMENT_LIES = [
    *((chunk, change) for chunk in ("blocks", "zone/0", "zone/1", "zone/2", "page/0", "place/0", "posting/1",
                            "ordered/2")
      for change in (shorter, longer, empty, constant(0, BIG), constant(1, BIG))),
    *(("size-class/0", change) for change in (longer, empty, constant(0, BIG))),
    *(("blocks", cast(i, dtype)) for i in range(4) for dtype in ("<u8", "<i1")),
    ("zone/0", cast(0, "<u8")),
    ("zone/0", cast(1, "<i4")),
    ("zone/0", cast(2, "<u8")),
    ("zone/1", cast(0, "<i8")),
    ("zone/1", array(-1, lambda a: a[:3])),
    ("zone/2", cast(1, "<i8")),
    ("page/0", cast(0, "<u8")),
    ("page/0", cast(1, "<u8")),
    ("page/0", lambda a: [np.array([0, 3, 2, 4, 2], np.uint64), np.zeros(2, np.int64), *(b[:2] for b in a[2:])]),
    ("place/0", cast(0, "<i4")),
    *(("size-class/0", cast(0, dtype)) for dtype in ("<i4", "<u2", "<i1")),
    ("size-class/0", to(0, 6, 6, 8)),
    ("size-class/0", to(0, -7, 6, 8, -1)),
    ("size-class/0", to(0, 6, 6, 7, -1)),
    ("size-class/0", to(0, -1, -1, -1, -1)),
    ("posting/1", cast(0, "<u8")),
    ("posting/1", to(0, 0)),
    ("posting/1", to(0, -8, 0)),
    ("posting/1", to(0, 2**40, 0)),
    ("posting/1", to(0, 2**63 - 1, 0)),
    ("posting/1", array(0, lambda a: a + np.array([0, 1]))),  # the salt
    ("posting/1", array(0, lambda a: a + np.array([8, 0]))),
    ("posting/1", to(1, 1, 2, 2**62, 2, 3)),
    ("posting/1", to(1, 0, 2, 0, 2**62, 2**62)),
    ("posting/1", cast(2, "<i8")),
    ("posting/1", array(2, lambda a: a[::-1])),
    ("posting/1", to(3, 4)),
    *(("ordered/2", cast(i, dtype)) for i, dtype in enumerate(("<u8", "<u8", "<i1", "<u8", "<u8", "<i8"))),
    ("ordered/2", to(0, 0)),
    ("ordered/2", to(0, -8, 0)),
    ("ordered/2", to(0, 2**40, 0)),
    ("ordered/2", to(0, 2**63 - 1, 0)),
    ("ordered/2", array(0, lambda a: a + np.array([0, 1]))),  # the salt
    ("ordered/2", to(1, 3, 2048)),
    ("ordered/2", to(1, -1, 2048, 1)),
    ("ordered/2", to(1, 2, 2048, 1)),
    ("ordered/2", to(1, 4, 2048, 1)),
    ("ordered/2", to(1, 2**62, 2048, 1)),
    ("ordered/2", to(1, 2**62, 2**62, 1)),
    ("ordered/2", to(1, 3, 0, 1)),
    ("ordered/2", to(1, 3, -1, 1)),
    ("ordered/2", to(1, 3, 2, 1)),
    ("ordered/2", to(1, 3, 2048, 2)),
    ("ordered/2", array(2, lambda a: np.zeros(1025, np.uint8))),
    ("ordered/2", constant(3, BIG)),
    ("ordered/2", array(3, lambda a: a[::-1])),
    ("ordered/2", array(3, lambda a: a[:1])),
    ("ordered/2", array(3, lambda a: a + np.array([1, 0]))),
    ("ordered/2", array(3, lambda a: a - np.array([0, 1]))),
    ("ordered/2", to(4, 0, 2**62)),
    ("ordered/2", to(4, 8, 96)),
    ("ordered/2", to(4, 0, -1)),
    ("ordered/2", to(4, 0, 8)),
    ("ordered/2", to(4, 0)),
    ("ordered/2", constant(4, BIG)),
    ("ordered/2", constant(5, BIG)),
    ("ordered/2", to(5, 4)),
    ("ordered/2", to(5, -1)),
    ("ordered/2", to(5, 2, 1)),
    ("ordered/2", to(5, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("lie", range(len(SEGMENT_LIES)))
def test_chunks_of_a_segment_may_lie(lie: int) -> None:
    chunk, change = SEGMENT_LIES[lie]
    good = encode_segment(segment_data())
    with pytest.raises(IndexFault):
        everything_of_segment(store_of(with_arrays(good.data, SEGMENT, {chunk: change})))


def test_the_same_arrays_written_anew_are_read() -> None:
    """So that what the lies above are refused for is what they lie about."""
    good = encode_segment(segment_data())
    same = {chunk: lambda arrays: arrays for chunk in good.places}
    whole = everything_of_segment(sound_store())
    assert everything_of_segment(store_of(with_arrays(good.data, SEGMENT, same))) == whole


SNAPSHOT_LIES = [
    *((chunk, change) for chunk in ("segments", "paths", "files", "where/blocks", "where/zone/0", "tree/0", "tree/1",
                            "where/size-class/0", "where/posting/1", "where/ordered/2",
                            "bloom-matrices/0")
      for change in (shorter, longer, empty, constant(0, BIG), constant(1, BIG))),
    ("segments", to(0, 1, 41)),
    ("segments", to(0, 0, 2**62)),
    ("segments", to(0)),
    ("segments", array(1, lambda a: a | 0x80)),
    ("segments", to(2, -1)),
    ("segments", to(3, -4)),
    ("segments", to(4, -18)),
    *(("segments", cast(i, "<u8")) for i in (0, 2, 3, 4)),
    ("paths", to(0, 0, 30, 5)),
    ("paths", to(0, -1, 5, 30)),
    ("paths", array(1, lambda a: a | 0x80)),
    ("files", to(4, 1, 2)),
    ("files", to(4, -1, 5)),
    ("files", to(4, 2**62, 2)),
    ("files", to(0, 13, 2**40)),
    ("files", to(7, 1, 1)),
    ("files", to(7, -1, 0)),
    ("files", to(8, 1, 1)),
    ("files", to(8, 0, 1)),
    ("files", to(8, -1, 0)),
    *(("files", cast(i, "<u2")) for i in range(9)),
    ("where/blocks", to(0, -8)),
    ("where/blocks", to(0, 2**40)),
    ("where/blocks", to(1, -1)),
    ("where/blocks", to(1, 2**62)),
    ("where/blocks", to(2, 0)),
    ("where/zone/0", cast(0, "<u8")),
    ("where/zone/0", cast(1, "<i4")),
    ("where/zone/0", cast(2, "<i8")),
    ("tree/0", cast(0, "<u8")),
    ("tree/1", cast(0, "<i8")),
    ("where/size-class/0", to(0, -8)),
    ("where/size-class/0", to(1, 2**62)),
    ("where/posting/1", cast(0, "<u8")),
    ("where/posting/1", to(2, 0)),
    ("where/ordered/2", cast(0, "<u8")),
    ("where/ordered/2", to(0, -8)),
    ("where/ordered/2", to(1, 2**62)),
    ("where/ordered/2", to(2, 0)),
]  # fmt: skip


def everything(store: Memory) -> list[Any]:
    return [*everything_of_snapshot(store), *everything_of_segment(store)]


@pytest.mark.parametrize("lie", range(len(SNAPSHOT_LIES)))
def test_chunks_of_a_snapshot_may_lie(store: Memory, lie: int) -> None:
    chunk, change = SNAPSHOT_LIES[lie]
    store.data[SNAPSHOT_NAME] = with_arrays(store.data[SNAPSHOT_NAME], SNAPSHOT, {chunk: change}).data
    with pytest.raises(IndexFault):
        everything(store)


@pytest.mark.parametrize("number", [2**26, 2**20])
def test_blocks_that_are_claimed_take_no_memory(tmp_path: Path, number: int) -> None:
    """A few bytes of a constant stand for any number of blocks: no more are believed than the file can describe."""
    pq.write_table(pa.table({"id": range(20)}), tmp_path / "a.parquet", row_group_size=5)
    table = sec.open_table(str(tmp_path))
    sec.prune(table, "id = 7", use_index=False).to_arrow()  # what is imported for it is not counted
    sec.build_index(table)
    (path,) = tmp_path.rglob("*.snapshot")
    claims = {"segments": to(3, number), "files": to(4, number)}
    path.write_bytes(with_arrays(path.read_bytes(), SNAPSHOT, claims).data)
    tracemalloc.start()
    plan = sec.prune(sec.open_table(str(tmp_path)), "id = 7")
    ids = plan.to_arrow()["id"].to_pylist()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ids == [7]
    assert plan.report.degraded
    assert peak < 16_000_000


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("number", [2**26, 2**20])
def test_blocks_of_a_file_that_is_gone_take_no_memory(tmp_path: Path, number: int, gone: bool) -> None:
    """An entry may claim any size for a file that is not there: its blocks are bounded by the files that are."""
    for name in ("a", "b"):
        pq.write_table(pa.table({"id": range(20)}), tmp_path / f"{name}.parquet", row_group_size=20)
    sec.prune(sec.open_table(str(tmp_path)), "id = 7", use_index=False).to_arrow()  # as above
    sec.build_index(sec.open_table(str(tmp_path)))
    (path,) = tmp_path.rglob("*.snapshot")

    def huge(arrays: Arrays) -> Arrays:
        return array(4, lambda blocks: np.where(np.arange(2) == 1, number, blocks))(to(0, 2**40, 2**40)(arrays))

    claims = {"segments": to(3, number + 1), "files": huge}
    path.write_bytes(with_arrays(path.read_bytes(), SNAPSHOT, claims).data)
    if gone:
        (tmp_path / "b.parquet").unlink()
    tracemalloc.start()
    plan = sec.prune(sec.open_table(str(tmp_path)), "id = 7")
    ids = plan.to_arrow()["id"].to_pylist()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ids == [7] * (1 if gone else 2)
    assert plan.report.degraded
    assert peak < 16_000_000


@pytest.mark.parametrize("change", [to(0, -8), to(0, 2**40), to(0, 2**63 - 1), to(1, -1), to(1, 2**62), to(1, 10**6)])
def test_no_store_is_asked_for_what_lies_outside_of_a_file(store: Memory, change: Callable[[Arrays], Arrays]) -> None:
    """It might take memory for it first."""
    store.data[SNAPSHOT_NAME] = with_arrays(store.data[SNAPSHOT_NAME], SNAPSHOT, {"where/zone/1": change}).data
    with pytest.raises(IndexFault, match="places outside of the segments"):
        everything(store)


WRONG_NAMES = [
    "../../secret",
    "segments/../../secret",
    "/etc/passwd",
    "s3://elsewhere/segments/0123456789ab-000000.segment",
    "segments/0123456789ab-000000.segment\n",
    "segments/0123456789ab-000000.segment/../../secret",
    "other/0123456789ab-000000.segment",
    "segments//0123456789ab-000000.segment",
    "./segments/0123456789ab-000000.segment",
    "segments/0123456789AB-000000.segment",
    "segments/0123456789ab-00000.segment",
    "snapshots/0000000001.snapshot",
    "",
]


def named(name: str) -> Callable[[Arrays], Arrays]:
    """Arrays that begin with one text, which is another now."""
    return lambda arrays: [np.array([0, len(name)]), np.frombuffer(name.encode(), np.uint8), *arrays[2:]]


@dataclass
class Watched(Memory):
    """A store that remembers what it was asked for."""

    asked: set[str] = field(default_factory=set)

    def read(self, name: str, offset: int, size: int) -> bytes:
        self.asked.add(name)
        return super().read(name, offset, size)


@pytest.mark.parametrize("wrong", WRONG_NAMES)
@pytest.mark.parametrize("folder", ["segments", "filters", "manifests"])
def test_no_name_leads_out_of_its_folder(store: Memory, folder: str, wrong: str) -> None:
    """The store, which has a file of that name, is asked for nothing but the snapshot."""
    ending = {"segments": "-000000.segment", "filters": "-000000.filter", "manifests": ".manifests"}[folder]
    name = wrong.replace("-000000.segment", ending).replace("segments", folder)
    good, data = f"{folder}/0123456789ab{ending}", store.data[SNAPSHOT_NAME]

    def with_name(name: str) -> bytes:
        if folder == "manifests":
            return with_contents(data, meta(made_of={"id": 1, "manifests": [[name, 100]]}))
        chunk = {"segments": "segments", "filters": "bloom-matrices/0"}[folder]
        return with_arrays(data, SNAPSHOT, {chunk: named(name)}).data

    store.data[name] = store.data.get(good, b"")
    store.data[SNAPSHOT_NAME] = with_name(good)
    everything(store)
    watched = Watched({**store.data, SNAPSHOT_NAME: with_name(name)})
    with pytest.raises(IndexFault, match="is not the name of an index file"):
        everything(watched)
    assert watched.asked == {SNAPSHOT_NAME}


def meta(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda contents: contents["meta"].update(changes)


def option(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda contents: contents["meta"]["options"].update(changes)


def without(member: str, name: str) -> Callable[[dict[str, Any]], None]:
    return lambda contents: contents[member].pop(name)


META_LIES = [
    *(without("meta", name) for name in ("number", "created", "columns", "filters", "options", "schema")),
    *(without("chunks", name) for name in ("segments", "paths", "files", "where/blocks", "tree/0")),
    meta(number=2),
    meta(number="one"),
    meta(number=float("inf")),
    meta(number=None),
    meta(created="now"),
    meta(created=10**400),
    meta(columns=None),
    meta(columns=[{"path": ["id"]}]),
    meta(columns=[{"path": ["id"], "type": "varchar"}]),
    meta(columns=5),
    meta(columns=[5]),
    meta(made_of={"id": 1, "manifests": [["manifests/0123456789ab.manifests", -1]]}),
    meta(made_of={"id": 1, "manifests": [["manifests/0123456789ab.manifests", 9]] * 65}),
    meta(made_of={"id": 1, "manifests": "manifests/0123456789ab.manifests"}),
    meta(made_of={"id": 1, "manifests": 7}),
    meta(filters=None),
    meta(filters=[{"kind": "bloom", "path": ["id"]}]),
    meta(filters=[{"kind": "bloom", "path": ["id"], "type": "varchar", "gram": 0, "folded": False}]),
    meta(filters=[{"kind": "bloom", "path": ["id"], "type": "bigint", "gram": "many", "folded": False}]),
    meta(filters=[5]),
    meta(schema="00"),
    meta(schema="not hexadecimal"),
    meta(schema=SCHEMA.serialize().to_pybytes().hex()[:-200]),
    meta(options=None),
    option(fan_out=1),
    option(fan_out=-5),
    option(fan_out="many"),
    option(fan_out=float("inf")),
    option(segment_blocks=[]),
    option(fpr="low"),
    option(sort_key=5),
    option(filters=5),
    option(filters=["id"]),
    option(filters=[{"kind": "bloom", "column": "id", "gram": "few", "folded": False, "native": False}]),
    option(gaps=None),
]


@pytest.mark.parametrize("lie", range(len(META_LIES)))
def test_contents_of_a_snapshot_may_lie(store: Memory, lie: int) -> None:
    store.data[SNAPSHOT_NAME] = with_contents(store.data[SNAPSHOT_NAME], META_LIES[lie])
    with pytest.raises(IndexFault):
        everything(store)


# ---- files of manifests ----------------------------------------------------------------------------------------------

KEY = ManifestKey("s3://lake/m.avro", 100, 3, False, 40)
FILE = {"path": "s3://lake/a.parquet", "format": "PARQUET", "size": 10, "row_count": 5, "content": 0}


def manifests_of(message: bytes) -> bytes:
    """A file of one manifest with a message in it, its checksums right."""
    writer = Writer(MANIFESTS, {"manifests": [list(KEY)]})
    writer.add("0", [np.frombuffer(message, np.uint8)])
    return writer.finish()


def decoded(data: bytes) -> dict[ManifestKey, Manifest]:
    return decode_manifests("file", len(data), lambda at, size: data[at : at + size], [KEY])


def message_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def good_message() -> bytes:
    files = pa.Table.from_pylist([FILE], FILES).append_column("1000", pa.array([7]))
    return message_of(files)


def test_a_file_of_manifests_tells_files() -> None:
    (manifest,) = decoded(manifests_of(good_message())).values()
    assert manifest.files.column("path").to_pylist() == [FILE["path"]]
    assert manifest.partition[1000].to_pylist() == [7]


@pytest.mark.parametrize("seed", range(10))
def test_messages_of_manifests_may_be_anything(seed: int) -> None:
    """Cut anywhere, or with bytes that are others: an index fault, or files, which are compared with live ones."""
    good, random, faults = good_message(), np.random.default_rng(seed), 0
    for _ in range(50):
        message = bytearray(good[: random.integers(len(good))] if random.random() < 0.5 else good)
        for at in random.integers(len(message), size=3) if len(message) == len(good) else ():
            message[at] = random.integers(256)
        try:
            decoded(manifests_of(bytes(message)))
        except IndexFault:
            faults += 1
    assert faults > 25


def test_manifests_may_not_claim_more_rows_than_bytes() -> None:
    nothing = pa.table({name: pa.nulls(2**20) for name in FILES.names})
    with pytest.raises(IndexFault, match=f"claim {2**20} rows"):
        decoded(manifests_of(message_of(nothing)))
