"""The frame of index files: chunks, rows of matrices and the table of contents, whole, harmed, and lying."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.container import index_file
from secateur.index.container.checked_matrix import read_rows
from secateur.index.container.index_file import (
    ALIGNMENT,
    ARRAY,
    HEADER,
    SEGMENT,
    SNAPSHOT,
    SUMMARY,
    VERSION,
    Place,
    Writer,
    as_it_lies,
    check,
    decode_chunk,
    encode_chunk,
)
from secateur.index.model import type_name, type_of_name
from tests.support.drawn.integer_arrays import arrays
from tests.support.drawn.strategies import KINDS
from tests.support.profiles import examples
from tests.support.stores.index_files import NAME, Memory, with_contents, with_trailer

some_arrays = st.lists(arrays(), max_size=5)


def same(decoded: list[np.ndarray], given_arrays: list[np.ndarray]) -> bool:
    return [(a.dtype, a.tolist()) for a in decoded] == [(a.dtype, a.tolist()) for a in given_arrays]


def matrix_of(n: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed * 10_000 + n * 100 + width).integers(0, 256, (n, width), np.uint8)


def small_file() -> Memory:
    """Chunks in every encoding, and a matrix."""
    writer = Writer(SEGMENT, {"x": 1})
    writer.add("plain", [np.array([1, -2, 3], np.int32), np.zeros(0, np.uint8)])
    writer.add("zstd", [np.tile(np.arange(20, dtype=np.int16), 10)])
    writer.add("delta", [np.arange(100) * 3, np.full(50, 7)])
    writer.add_rows("rows", matrix_of(9, 3))
    return Memory({NAME: writer.finish()})


def everything(store: Memory) -> list[Any]:
    contents = store.contents(NAME, SEGMENT)
    read = store.reader(NAME)
    rows = read_rows(contents.matrices["rows"], np.arange(9), lambda ranges: store.read_many(NAME, ranges), "rows")
    chunks = {name: [a.tolist() for a in contents.arrays(name, read)] for name in contents.chunks}
    return [contents.meta, chunks, rows.tolist()]


# ---- there and back --------------------------------------------------------------------------------------------------


@examples(150)
@given(st.lists(some_arrays, max_size=4))
def test_chunks_are_read_as_they_were_written(chunks: list[list[np.ndarray]]) -> None:
    """Of every type and length, in every encoding; the place is that of the bytes, aligned and with their checksum."""
    writer = Writer(SEGMENT, {"any": ["thing", 1, None]})
    for i, given_arrays in enumerate(chunks):
        writer.add(f"chunk/{i}", given_arrays)
    store = Memory({NAME: writer.finish()})
    contents = store.contents(NAME, SEGMENT)
    assert contents.meta == {"any": ["thing", 1, None]}
    assert contents.chunks == writer.chunks
    for i, given_arrays in enumerate(chunks):
        place = contents.chunks[f"chunk/{i}"]
        data = store.read(NAME, place.at, place.size)
        assert place.at % ALIGNMENT == 0
        assert check(data, place, "it") is data
        assert same(decode_chunk(data, "it"), given_arrays)
        assert same(contents.arrays(f"chunk/{i}", store.reader(NAME)), given_arrays)
    assert contents.verify(store.reader(NAME)) == []


@examples(100)
@given(some_arrays)
def test_a_chunk_as_it_lies(given_arrays: list[np.ndarray]) -> None:
    """Without encoding: nothing to decode but constants, which stay without memory of their own."""
    decoded = decode_chunk(encode_chunk(given_arrays), "it")
    data = encode_chunk(decoded, as_it_lies)
    again = decode_chunk(data, "it")
    assert same(again, given_arrays)
    assert [a.strides for a in again] == [a.strides for a in decoded]


def test_type_names_there_and_back() -> None:
    for kind in KINDS:
        assert type_of_name(type_name(kind.type)) == kind.type
    for name in ("varchar", "decimal(99,2)", "decimal(5)", "decimal(a,b)", ""):
        with pytest.raises(IndexFault, match="unknown column type"):
            type_of_name(name)


# ---- harm ------------------------------------------------------------------------------------------------------------


def padding_of(store: Memory) -> set[int]:
    """The bytes that nothing covers: the first 16, and those up to the next multiple of 8 behind a chunk or matrix."""
    contents = store.contents(NAME, SEGMENT)
    ends = [place.at + place.size for place in contents.chunks.values()]
    ends += [m.at + m.nbytes for m in contents.matrices.values()]
    return {*range(HEADER.size), *(at for end in ends for at in range(end, end + -end % ALIGNMENT))}


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_every_byte_may_be_flipped(flip: int) -> None:
    """Each of them gives an IndexFault, and is found by verify; but for the header and padding, which hold nothing."""
    store = small_file()
    data, whole, padding = store.data[NAME], everything(store), padding_of(store)
    for at in range(len(data)):
        store.data[NAME] = data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
        if at in padding:
            assert everything(store) == whole
        else:
            with pytest.raises(IndexFault):
                everything(store)
            assert found_by_verify(store), at


def found_by_verify(store: Memory) -> bool:
    try:
        return len(store.contents(NAME, SEGMENT).verify(store.reader(NAME))) == 1
    except IndexFault:
        return True


def test_every_length_may_be_cut_off() -> None:
    store = small_file()
    data = store.data[NAME]
    for other in (*(data[:length] for length in range(len(data))), data + b"\0", b"\0" + data):
        store.data[NAME] = other
        with pytest.raises(IndexFault):
            everything(store)


# ---- lies: right checksums prove that nothing was damaged, not that it was written right -----------------------------


@examples(300)
@given(some_arrays, st.data())
def test_any_bytes_are_a_chunk_or_a_fault(given_arrays: list[np.ndarray], data: st.DataObject) -> None:
    """Cut, lengthened, or with other bytes in its description."""
    chunk = bytearray(encode_chunk(given_arrays))
    for at in data.draw(st.lists(st.integers(0, min(len(chunk), 8 + 24 * len(given_arrays)) - 1), max_size=3)):
        chunk[at] = data.draw(st.sampled_from([0, 1, 2, 3, 8, 0x7F, 0xFF]))
    end = data.draw(st.sampled_from([len(chunk)] * 3 + [len(chunk) - 1, len(chunk) // 2, 9, 0]))
    try:
        decoded = decode_chunk(bytes(chunk[:end]), "it")
    except IndexFault as fault:
        assert str(fault).startswith("it: ")
    else:
        assert all(a.ndim == 1 and a.nbytes == a.itemsize * len(a) for a in decoded)


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (b"", "ends within its description"),
        (struct.pack("<Q", 1), "ends within its description"),
        (struct.pack("<Q", 2**12 + 1), "claims 4097 arrays"),
        (struct.pack("<Q", 2**64 - 1), "claims 18446744073709551615 arrays"),
        (struct.pack("<Q", 1) + ARRAY.pack(0, 8, 0, 0), "array 0 lies outside"),
        (struct.pack("<Q", 1) + ARRAY.pack(0, 0, 1, 1), "array 0 lies outside"),
        (struct.pack("<Q", 1) + ARRAY.pack(0, 0, 1, 2**64 - 1), "array 0 lies outside"),
        (struct.pack("<Q", 1) + ARRAY.pack(9, 0, 0, 0), "unknown encoding 9"),
        (struct.pack("<Q", 1) + ARRAY.pack(0, 3, 2**61, 8) + bytes(8), "instead of"),
        (struct.pack("<Q", 1) + ARRAY.pack(1, 3, 2**61, 8) + bytes(8), "claims"),
        (struct.pack("<Q", 1) + ARRAY.pack(2, 3, 2**61, 32) + struct.pack("<QQB15x", 0, 0, 8), "claims"),
        (struct.pack("<Q", 1) + ARRAY.pack(3, 3, 2**61, 8) + bytes(8), "claims"),
    ],
)
def test_what_a_chunk_may_claim(chunk: bytes, message: str) -> None:
    """Nothing is allocated for it."""
    tracemalloc.start()
    with pytest.raises(IndexFault, match=f"^it: .*{message}"):
        decode_chunk(chunk, "it")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": VERSION + 1}, "is newer than 1, the newest known here: upgrade secateur"),
        ({"kind": SNAPSHOT}, "is an index file of kind 1 instead of 2"),
        ({"kind": SUMMARY}, "is an index file of kind 3 instead of 2"),
        ({"at": 2**63}, "lies outside the file"),
        ({"stored": 2**32 - 1}, "lies outside the file"),
        ({"raw": 2**32 - 1}, "lies outside the file"),
        ({"raw": 0}, "malformed|cannot decompress"),
        ({"raw": 5}, "malformed|cannot decompress"),
        ({"crc": 0}, "does not match its checksum"),
        ({"magic": b"secateur"}, "truncated or no index file"),
    ],
)
def test_what_the_trailer_may_say(changes: dict[str, int], message: str) -> None:
    store = small_file()
    store.data[NAME] = with_trailer(store.data[NAME], **changes)
    with pytest.raises(IndexFault, match=message):
        everything(store)


def chunk(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda contents: contents["chunks"].update({name: value})


def matrix(value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda contents: contents["matrices"].update({"rows": value})


LIES = [
    chunk("plain", [-8, 72, 0]),
    chunk("plain", [2**70, 72, 0]),
    chunk("plain", [16, 2**63, 0]),
    chunk("plain", [16, -1, 0]),
    chunk("plain", [16, "72", 0]),
    chunk("plain", [16, 72.0, 0]),
    chunk("plain", [16, 72, None]),
    chunk("plain", [16, 72, True]),
    chunk("plain", [16, 72]),
    chunk("plain", [16, 72, 0, 0]),
    chunk("plain", [16, 72, 0]),
    chunk("plain", [16, 0, 0]),
    chunk("plain", []),
    chunk("plain", 5),
    chunk("plain", None),
    matrix([16, 2**40, 3, 0]),
    matrix([16, 9, 2**40, 0]),
    matrix([16, -9, 3, 0]),
    matrix([16, 9, 3, "0"]),
    matrix([16, 9, 3]),
    matrix({}),
    lambda contents: contents.pop("meta"),
    lambda contents: contents.pop("chunks"),
    lambda contents: contents.pop("matrices"),
    lambda contents: contents.update(chunks=[]),
    lambda contents: contents.update(matrices=None),
    lambda contents: contents.update(meta=[]),
]


@pytest.mark.parametrize("lie", range(len(LIES)))
def test_contents_may_lie(lie: int) -> None:
    store = small_file()
    store.data[NAME] = with_contents(store.data[NAME], LIES[lie])
    with pytest.raises(IndexFault):
        everything(store)


@pytest.mark.parametrize(
    "text", [b"[]", b"5", b"null", b"{", b"\xff", b"[" * 40_000, b"[" * 100_000, b'{"meta": {}, "chunks": 1e999}']
)
def test_contents_may_be_anything(text: bytes) -> None:
    store = small_file()
    packed = pa.compress(text, codec="zstd", asbytes=True)
    trailer = index_file.TRAILER.pack(
        16, len(packed), len(text), zlib.crc32(packed), VERSION, SEGMENT, index_file.MAGIC
    )
    store.data[NAME] = store.data[NAME][:16] + packed + trailer
    with pytest.raises(IndexFault):
        store.contents(NAME, SEGMENT)


def test_what_is_not_there() -> None:
    store = small_file()
    with pytest.raises(IndexFault, match="chunk other is missing"):
        store.contents(NAME, SEGMENT).arrays("other", store.reader(NAME))


# ---- golden ----------------------------------------------------------------------------------------------------------


def test_the_locations_golden() -> None:
    """The frame of every file, byte by byte: docs/format.md."""
    writer = Writer(SEGMENT, {"x": 1})
    writer.add("a", [np.array([1, 2, 3], np.int32), np.full(9, -1, np.int64)])
    writer.add_rows("b", np.array([[1, 2], [3, 4]], np.uint8))
    data = writer.finish()
    assert data[:16] == struct.pack("<8sHHI", b"SECATEUR", 1, 2, 0)
    described = struct.pack("<Q", 2) + struct.pack("<BB6xQQ", 0, 2, 3, 12) + struct.pack("<BB6xQQ", 3, 3, 9, 8)
    chunk = described + struct.pack("<iii4x", 1, 2, 3) + b"\xff" * 8
    assert data[16:96] == chunk
    salt = xxhash.xxh3_64_intdigest(b"\1\2\3\4")
    band = b"\1\2\3\4"  # all rows, which are fewer than a band may have
    assert data[96:112] == band + struct.pack("<Q", xxhash.xxh3_64_intdigest(band, seed=salt)) + bytes(4)
    at, stored, raw, crc, version, kind, magic = struct.unpack("<QIIIHH8s", data[-32:])
    assert (at, at + stored + 32, version, kind, magic) == (112, len(data), 1, 2, b"SECATEUR")
    packed = data[at : at + stored]
    assert zlib.crc32(packed) == crc
    contents = json.loads(pa.decompress(packed, decompressed_size=raw, codec="zstd", asbytes=True))
    assert contents == {
        "meta": {"x": 1},
        "chunks": {"a": [16, 80, zlib.crc32(chunk)]},
        "matrices": {"b": [96, 2, 2, salt]},
    }
    assert writer.chunks["a"] == Place(16, 80, zlib.crc32(chunk))
    assert (HEADER.size, index_file.VERSION) == (16, 1)
