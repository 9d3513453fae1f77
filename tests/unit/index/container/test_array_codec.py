"""Arrays of an index file: every encoding gives back what was written, as documented, and decoding trusts nothing."""

from __future__ import annotations

import struct
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.container.array_codec import (
    CONSTANT,
    DELTA,
    DTYPES,
    LEAST_COMPRESSED,
    MOST_EXPANSION,
    PLAIN,
    ZSTD,
    decode,
    encode,
)
from tests.support.drawn.integer_arrays import array_of, arrays
from tests.support.profiles import examples

DTYPE_NAMES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def unpacked(packed: bytes, size: int, width: int) -> list[int]:
    """Integers of `width` bytes from all their first bytes, all second bytes, ..., compressed."""
    raw = pa.decompress(packed, decompressed_size=size * width, codec="zstd", asbytes=True)
    return [int.from_bytes(raw[i::size], "little") for i in range(size)]


def as_documented(encoding: int, dtype: np.dtype, n: int, stored: bytes) -> list[int]:
    """The elements as docs/format.md describes them, one by one and as unsigned integers."""
    match encoding:
        case 0:
            return [
                int.from_bytes(stored[i : i + dtype.itemsize], "little") for i in range(0, len(stored), dtype.itemsize)
            ]
        case 1:
            return unpacked(stored, n, dtype.itemsize)
        case 2:
            first, least, width = struct.unpack_from("<QQB7x", stored)
            values = [first]
            for above in unpacked(stored[24:], n - 1, width):
                values.append((values[-1] + least + above) % 2**64)
            return values
        case _:
            return [int.from_bytes(stored, "little")] * n


# ---- there and back --------------------------------------------------------------------------------------------------


@examples(400)
@given(arrays())
def test_an_array_is_decoded_as_it_was_encoded(array: np.ndarray) -> None:
    """Of every type, length and shape, wrapping differences included; by the decoder, and as documented."""
    encoding, stored = encode(array)
    decoded = decode(encoding, array.dtype, len(array), stored)
    assert decoded.dtype == array.dtype
    assert decoded.tolist() == array.tolist()
    unsigned = array.view(f"<u{array.dtype.itemsize}").tolist()
    assert as_documented(encoding, array.dtype, len(array), stored) == unsigned


@examples(100)
@given(arrays(), st.integers(1, 3))
def test_arrays_that_do_not_lie_together(array: np.ndarray, step: int) -> None:
    """Every other element, or backwards: views without memory of their own."""
    for view in (array[::step], array[::-step], np.broadcast_to(array[:1], len(array) and 100)):
        assert decode(*_described(view)).tolist() == view.tolist()


def _described(array: np.ndarray) -> tuple[int, np.dtype, int, bytes]:
    encoding, stored = encode(array)
    return encoding, array.dtype, len(array), stored


@examples(200)
@given(arrays())
def test_no_encoding_takes_more_than_the_elements(array: np.ndarray) -> None:
    encoding, stored = encode(array)
    assert len(stored) <= array.nbytes
    if array.nbytes < LEAST_COMPRESSED:
        assert encoding in (PLAIN, CONSTANT)
    if len(array) > 1 and len(set(array.tolist())) == 1:
        assert (encoding, len(stored)) == (CONSTANT, array.dtype.itemsize)


@pytest.mark.parametrize(
    ("array", "encoding"),
    [
        (np.arange(5), PLAIN),
        (np.array([7]), PLAIN),
        (np.zeros(0, np.int64), PLAIN),
        (array_of(np.dtype("<u8"), 1000, "random", 1), PLAIN),
        (np.arange(1000, dtype=np.int32), ZSTD),
        (np.arange(1000, dtype=np.uint64), DELTA),
        (np.arange(-(2**63), 2**63 - 1, 2**54), DELTA),
        (np.tile(np.array([2**63 - 1, -(2**63)]), 500), ZSTD),
        (np.full(2, -1, np.int8), CONSTANT),
        (np.full(1000, 2**64 - 1, np.uint64), CONSTANT),
    ],
)
def test_which_encoding_is_taken(array: np.ndarray, encoding: int) -> None:
    assert encode(array)[0] == encoding


def test_the_numbers_of_encodings_and_types_golden() -> None:
    """docs/format.md: files are full of them."""
    assert (PLAIN, ZSTD, DELTA, CONSTANT) == (0, 1, 2, 3)
    assert list(DTYPES) == [np.dtype(name).newbyteorder("<") for name in DTYPE_NAMES]


def test_differences_wrap_around() -> None:
    """From the greatest integer to the least is one step of 1: int64 and uint64 alike."""
    for array in (np.arange(2**63 - 50, 2**63 + 50, dtype=np.uint64), np.arange(100, dtype=np.uint64) - np.uint64(50)):
        for values in (array, array.view(np.int64)):
            encoding, stored = encode(values)
            assert (encoding, stored[:24]) == (DELTA, struct.pack("<QQB7x", int(array[0]), 1, 1))
            assert decode(encoding, values.dtype, 100, stored).tolist() == values.tolist()


@pytest.mark.parametrize("n", [2**60, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_constant_of_more_elements_than_there_are_addresses(n: int) -> None:
    with pytest.raises(IndexFault, match="claims"):
        decode(CONSTANT, np.dtype("<i8"), n, bytes(8))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_hardly_worth_compressing_is_read_back(seed: int) -> None:
    """Steps that are the same but for a few: the more of them, the nearer to the ratio that a reader refuses."""
    random = np.random.default_rng(seed)
    steps = np.full(1 << 17, 5)
    for _ in range(12):
        steps[random.integers(len(steps))] = random.integers(-(2**62), 2**62)
        array = np.cumsum(steps)
        assert np.array_equal(decode(*_described(array)), array)


def test_a_constant_takes_no_memory() -> None:
    tracemalloc.start()
    decoded = decode(CONSTANT, np.dtype("<i8"), 2**40, b"\1" + b"\0" * 7)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert decoded.shape == (2**40,)
    assert decoded.strides == (0,)
    assert (decoded[0], decoded[-1]) == (1, 1)
    assert peak < 100_000


@examples(50)
@given(arrays())
def test_what_is_decoded_is_read_only_or_nobody_elses(array: np.ndarray) -> None:
    """What is decoded may share memory with what was read; whoever writes into it does not change the file's bytes."""
    encoding, dtype, n, stored = _described(array)
    decoded = decode(encoding, dtype, n, stored)
    assert not decoded.flags.writeable or not np.shares_memory(decoded, np.frombuffer(stored, np.uint8))


# ---- harm ------------------------------------------------------------------------------------------------------------


@examples(300)
@given(arrays(), st.data())
def test_any_description_gives_its_elements_or_a_fault(array: np.ndarray, data: st.DataObject) -> None:
    """Of another encoding, type, length or with other bytes: so many elements of that type, or an IndexFault."""
    encoding, dtype, n, stored = _described(array)
    encoding = data.draw(st.sampled_from([encoding, PLAIN, ZSTD, DELTA, CONSTANT, 4, 255]))
    dtype = data.draw(st.sampled_from([dtype, *DTYPES]))
    n = data.draw(st.sampled_from([n, 0, 1, n + 1, max(n - 1, 0), 2**31, 2**40, 2**60, 2**63 - 1, 2**63, 2**64 - 1]))
    at = data.draw(st.integers(0, len(stored)))
    changed = stored[:at] + b"\xff" + stored[at + 1 :]
    stored = data.draw(st.sampled_from([stored, stored[:at], stored + b"\0", changed, stored[: dtype.itemsize]]))
    try:
        decoded = decode(encoding, dtype, n, memoryview(stored))
    except IndexFault:
        return
    assert (decoded.dtype, decoded.shape) == (dtype, (n,))


@pytest.mark.parametrize("encoding", [PLAIN, ZSTD, DELTA])
def test_a_few_bytes_cannot_claim_much_memory(encoding: int) -> None:
    """Before anything is allocated: a compressed array by its greatest possible ratio, others by their bytes."""
    few = {
        PLAIN: bytes(4000),
        ZSTD: pa.compress(bytes(1 << 20), codec="zstd", asbytes=True),
        DELTA: struct.pack("<QQB7x", 0, 1, 1) + pa.compress(bytes(1 << 20), codec="zstd", asbytes=True),
    }
    stored = few[encoding]
    tracemalloc.start()
    with pytest.raises(IndexFault, match=r"claims|instead of"):
        decode(encoding, np.dtype("<i8"), len(stored) * MOST_EXPANSION + 1, stored)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("width", [0, 3, 5, 16, 255])
def test_differences_of_no_known_width(width: int) -> None:
    stored = struct.pack("<QQB7x", 0, 1, width) + pa.compress(bytes(99 * width), codec="zstd", asbytes=True)
    with pytest.raises(IndexFault, match=f"differences of {width} bytes"):
        decode(DELTA, np.dtype("<i8"), 100, stored)


@pytest.mark.parametrize(("name", "n"), [("<i4", 100), ("<u1", 100), ("<i8", 1), ("<i8", 0)])
def test_differences_where_there_are_none(name: str, n: int) -> None:
    _, stored = encode(np.arange(100))
    with pytest.raises(IndexFault, match="unknown encoding 2"):
        decode(DELTA, np.dtype(name), n, stored)


def test_a_compressed_array_is_as_long_as_it_says() -> None:
    """Both shorter and longer than what is stored."""
    encoding, stored = encode(np.arange(1000, dtype=np.int32))
    assert encoding == ZSTD
    for n in (999, 1001, 0):
        with pytest.raises(IndexFault):
            decode(encoding, np.dtype("<i4"), n, stored)


@pytest.mark.parametrize("n", [1_000, 1_000_000])
@pytest.mark.parametrize("last", [1, -1, 2**62])
def test_an_array_that_is_constant_but_for_an_element_is_small(n: int, last: int) -> None:
    """Smaller than readers accept, without padding."""
    array = np.full(n, 12345, np.int64)
    array[-1] = last
    encoding, stored = encode(array)
    assert encoding == ZSTD
    assert 8 * n / MOST_EXPANSION < len(stored) < 8 * n / MOST_EXPANSION + 100
    assert np.array_equal(decode(encoding, array.dtype, n, stored), array)
