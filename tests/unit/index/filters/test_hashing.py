"""Hashing of whole columns: as the reference hashes key by key, each value once, in bounded memory."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.filters import hashing, murmur3
from secateur.index.filters.hashing import (
    DistinctHashes,
    distinct,
    hash_binaries,
    hash_each,
    hash_keys,
    hash_present,
    hash_texts,
    hash_words,
)
from secateur.values.conversion import keys_of
from secateur.values.key import canonical_bytes
from secateur.values.kinds import Kind, kind_of
from tests.support.drawn.strategies import BINARIES, EXACT, KINDS, TEXTS, ColumnKind, array_of
from tests.support.stores.filter_files import hash_values, mixed, number_hash, text_hash

BINARY_TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def listed(hashes: np.ndarray) -> list[int]:
    assert hashes.dtype == np.uint64
    return hashes.tolist()  # type: ignore[no-any-return]


def of(values: Sequence[bytes]) -> list[int]:
    """The reference, of texts."""
    return [mmh3.hash64(value, signed=False)[0] for value in values]


def of_numbers(values: Sequence[bytes]) -> list[int]:
    """The reference, of keys of 64 and 128 bits."""
    return [number_hash(value) for value in values]


def moved(array: pa.Array, by: int) -> pa.Array:
    """The array with its bytes `by` places further on in memory, so that they begin anywhere within a word."""
    *others, data = array.buffers()
    shifted = pa.py_buffer(bytes(by) + (data.to_pybytes() if data is not None else b"")).slice(by)
    return pa.Array.from_buffers(array.type, len(array), [*others, shifted], offset=array.offset)


lengths = st.integers(0, 40) | st.sampled_from([63, 64, 65, 255, 256, 257, 272, 1000])
strings = lengths.flatmap(lambda n: st.binary(min_size=n, max_size=n)) | st.sampled_from(BINARIES)
texts = st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=40)


@given(st.lists(strings, max_size=40), st.sampled_from(BINARY_TYPES[2:]), st.integers(0, 9), st.integers(0, 9))
def test_binaries_are_hashed_as_by_mmh3(values: list[bytes], type_: pa.DataType, by: int, offset: int) -> None:
    """In their order, wherever their bytes begin, and whatever slice of an array they are."""
    array = moved(pa.array(values, type_), by).slice(min(offset, len(values)))
    assert listed(hash_binaries(array)) == of(values[offset:])


@given(st.lists(texts, max_size=40), st.sampled_from(BINARY_TYPES[:2]))
def test_strings_are_hashed_by_their_utf_8(values: list[str], type_: pa.DataType) -> None:
    assert listed(hash_binaries(pa.array(values, type_))) == of([value.encode() for value in values])


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=30))
def test_slices_may_overlap_and_come_in_any_order(data: bytes, places: list[tuple[int, int]]) -> None:
    places = [(min(start, len(data)), min(start + length, len(data))) for start, length in places]
    starts, stops = np.array(places, np.int64).reshape(-1, 2).T
    hashes = murmur3.hash_slices(np.frombuffer(data, np.uint8), starts, stops - starts)
    assert listed(hashes) == of([data[start:stop] for start, stop in places])


def test_more_values_and_bytes_than_a_chunk() -> None:
    """Long values between short ones, in chunks that end by their number and by the bytes that they span."""
    random = np.random.default_rng(3)
    sizes = np.where(
        random.random(2 * murmur3.CHUNK + 17) < 0.001, 100_000, random.integers(0, 50, 2 * murmur3.CHUNK + 17)
    )
    ends = np.cumsum(sizes)
    assert ends[murmur3.CHUNK] > murmur3.CHUNK_BYTES
    data = random.integers(0, 256, ends[-1], np.uint8)
    hashes = murmur3.hash_slices(data, ends - sizes, sizes)
    whole = data.tobytes()
    assert listed(hashes) == of([whole[start:stop] for start, stop in zip(ends - sizes, ends, strict=True)])


def test_many_words() -> None:
    """More than are hashed at once: the reference's finaliser, word by word."""
    words = np.random.default_rng(4).integers(0, 2**64, murmur3.CHUNK + 5, np.uint64)
    before = words.tobytes()
    assert listed(hash_words(words)) == [mixed(word) for word in words.tolist()]
    assert words.tobytes() == before, "what is given is left as it is"


# ---- columns -------------------------------------------------------------------------------------------------------

columns = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), st.lists(kind.values, max_size=12)))


@given(columns, st.integers(0, 3))
def test_hashes_of_values_are_those_of_their_keys(column: tuple[ColumnKind, list[Any]], offset: int) -> None:
    """What a build hashes, a slice of an array with NULLs, is what a query hashes, key by key; for every type."""
    kind, values = column
    array = array_of([*values, None, *values], kind.type).slice(min(offset, len(values)))
    key_kind = kind_of(kind.type)
    assert key_kind is not None
    words = [word.tolist() for word in keys_of(array.drop_null()).words]
    match key_kind:
        case Kind.BYTES:
            keys = array.drop_null().cast(pa.binary()).to_pylist()
        case Kind.WORD:
            keys = words[0]
        case Kind.WIDE:
            keys = [(high << 64) | low for high, low in zip(*words, strict=True)]
    key_hash = text_hash if key_kind is Kind.BYTES else number_hash
    expected = [key_hash(canonical_bytes(key, key_kind)) for key in keys]
    assert listed(hash_each(array)) == expected
    built = listed(hash_values(array))
    assert len(built) == len(set(built))
    assert set(built) == set(expected) == set(listed(hash_present(array)))
    assert listed(hash_keys(keys, key_kind)) == expected
    if kind.type != pa.bool_():  # of which Parquet has no dictionary
        assert set(listed(hash_values(array.dictionary_encode()))) == set(expected)


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-(10**27), max_value=10**27)))
def test_hashes_of_16_byte_keys_are_mixed_half_by_half(values: list[Any]) -> None:
    keys = [int(value.scaleb(10, EXACT)).to_bytes(16, "little", signed=True) for value in values]
    assert set(listed(hash_values(pa.array(values, pa.decimal128(38, 10))))) == set(of_numbers(keys))


@pytest.mark.parametrize("type_", BINARY_TYPES)
@pytest.mark.parametrize("different", [1, 5, 3_000, 30_000])
def test_strings_that_repeat_and_that_do_not(type_: pa.DataType, different: int) -> None:
    """Either way of finding the distinct: before hashing, where a sample repeats, and after."""
    values = [f"user-{number % different:0{number % different % 30}d}" for number in range(30_000)]
    array = pa.array([None, *values, None], type_)
    repeated = hashing.distinct_where_repeated(array) is not array
    assert repeated == (different < 30_000)
    expected = set(of([value.encode() for value in set(values)]))
    built = listed(hash_values(array))
    assert len(built) == len(expected)
    assert set(built) == expected == set(listed(hash_present(array)))


@given(st.lists(st.integers(-1, 1), max_size=20))
def test_integers_that_hardly_differ(steps: list[int]) -> None:
    values = np.cumsum(np.array(steps, np.int64))
    assert sorted(listed(hash_values(pa.array(values)))) == sorted(
        of_numbers([value.tobytes() for value in np.unique(values)])
    )


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
@pytest.mark.parametrize("different", [1, 100, 70_000])
def test_integers_in_runs_and_without(order: str, different: int) -> None:
    values = np.sort(np.arange(70_000) % different - different // 2)
    match order:
        case "descending":
            values = values[::-1]
        case "shuffled":
            values = np.random.default_rng(5).permutation(values)
    built = listed(hash_values(pa.array(values)))
    assert len(built) == different
    assert set(built) == set(of_numbers([value.tobytes() for value in np.unique(values)]))


def test_only_the_values_that_a_dictionary_array_uses_are_hashed() -> None:
    indices = pa.array([3, None, 1, 1, 4, 0], pa.int8())
    values = pa.DictionaryArray.from_arrays(indices, ["out", "b", "c", "d", None, "f"]).slice(0, 5)
    assert sorted(listed(hash_values(values))) == sorted(of([b"b", b"d"]))
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.uint16()), pa.array([7, 7]))
    assert len(hash_values(twice)) == 1


@pytest.mark.parametrize("type_", [pa.int64(), pa.string(), pa.large_binary(), pa.decimal128(38), pa.float64()])
def test_columns_without_values(type_: pa.DataType) -> None:
    for array in (pa.array([], type_), pa.nulls(3, type_), pa.nulls(3, type_).dictionary_encode()):
        assert listed(hash_values(array)) == listed(hash_present(array)) == []


def test_c17_both_zeros_and_all_nans_hash_alike() -> None:
    for type_ in (pa.float32(), pa.float64()):
        assert len(hash_values(pa.array([0.0, -0.0], type_))) == 1
        assert len(hash_values(pa.array([math.nan, 1.0, -math.nan], type_))) == 2


def test_c29_a_value_hashes_alike_in_every_width() -> None:
    """An index built when the column was narrower serves the wider one."""
    for narrow, wide in ((pa.int8(), pa.int64()), (pa.int32(), pa.int64()), (pa.float32(), pa.float64())):
        values = [-3, 0, 1, 100]
        assert listed(hash_values(pa.array(values, narrow))) == listed(hash_values(pa.array(values, wide)))


def test_what_cannot_be_hashed() -> None:
    with pytest.raises(IndexFault, match="list"):
        hash_values(pa.array([[1]]))
    with pytest.raises(IndexFault, match="int64"):
        hash_binaries(pa.array([1]))
    with pytest.raises(ValueError, match="2 nulls"):
        hash_binaries(pa.array([None, "a", None]))
    with pytest.raises(OverflowError):
        hash_keys([2**63], Kind.WORD)


# ---- distinct hashes -----------------------------------------------------------------------------------------------

some_hashes = st.lists(st.sampled_from([0, 1, 2, 2**63, 2**64 - 1, *range(100, 250)]), max_size=150)


def hashes_of(hashes: Sequence[int]) -> np.ndarray:
    return np.array(hashes, np.uint64)


@given(some_hashes)
def test_distinct_of_any_hashes(hashes: list[int]) -> None:
    assert sorted(listed(distinct(hashes_of(hashes)))) == sorted(set(hashes))


@pytest.mark.parametrize("n", [1, 64, 65, 1_000, murmur3.CHUNK, 3 * murmur3.CHUNK + 1])
@pytest.mark.parametrize("different", [1, 2, 300, 10**9])
def test_distinct_of_many(n: int, different: int) -> None:
    random = np.random.default_rng(n)
    whole = hash_words(random.integers(0, different, n).astype(np.uint64))
    assert sorted(listed(distinct(whole))) == sorted(set(listed(whole)))


@pytest.mark.parametrize("shift", [0, 20, 50])
def test_distinct_of_hashes_that_are_not_spread(shift: int) -> None:
    """As someone may choose values: exact nevertheless, by sorting what finds no place."""
    numbers = np.arange(5_000, dtype=np.uint64) % 4_000
    hashes = distinct(numbers << shift)
    assert len(hashes) == len(set(listed(hashes))) == 4_000


@given(st.lists(some_hashes, max_size=8), st.integers(1, 30))
def test_batches_are_one_set(batches: list[list[int]], most: int) -> None:
    """The distinct hashes of all batches, or none at all where they are more than `most`."""
    collected = DistinctHashes(most)
    for batch in batches:
        collected.add(hashes_of(batch))
    expected = {hashed for batch in batches for hashed in batch}
    hashes = collected.distinct()
    assert collected.overflowed == collected.gave_up == (hashes is None) == (len(expected) > most)
    if hashes is not None:
        assert sorted(listed(hashes)) == sorted(expected)
        again = collected.distinct()
        assert again is not None
        assert listed(again) == listed(hashes)


def test_more_may_be_added_after_some_were_found() -> None:
    collected = DistinctHashes()
    for batch in ([1, 2], [2], [3]):
        collected.add(hashes_of(batch))
        hashes = collected.distinct()
    assert hashes is not None
    assert sorted(listed(hashes)) == [1, 2, 3]


def test_after_giving_up_nothing_is_found() -> None:
    abandoned, overflowed = DistinctHashes(), DistinctHashes(most=2)
    abandoned.add(hashes_of([1]))
    abandoned.abandon()
    overflowed.add(hashes_of([1, 2, 3]))
    for collected in (abandoned, overflowed):
        collected.add(hashes_of([1]))
        assert collected.gave_up
        assert collected.distinct() is None
    assert (abandoned.overflowed, overflowed.overflowed) == (False, True)


def test_memory_is_bounded_by_the_most_that_are_kept() -> None:
    """Twice the bound, and as much again with a table while they are made distinct."""
    most, batch = 1 << 16, 1 << 13
    random = np.random.default_rng(6)
    collected = DistinctHashes(most)
    tracemalloc.start()
    try:
        for _ in range(200):
            collected.add(hash_words(random.integers(0, most - 1000, batch).astype(np.uint64)))
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2.5 * most * 8
    assert peak < 10 * most * 8
    hashes = collected.distinct()
    assert hashes is not None
    assert len(hashes) == most - 1000


def test_hashes_golden() -> None:
    """They are part of the format. The value of "hello" is that of the reference implementation by Appleby."""
    golden = [0, 0xCBD8A7B341BD9B02, 0x28DF63B7CC57C3CB]
    values = [b"", b"hello", bytes(8)]
    assert listed(hash_texts(values)) == golden
    assert listed(hash_binaries(pa.array(values))) == golden
    numbers = [0, 0xB456BCFC34C2CB2C, 0x64B5720B4B825F21]  # by fmix64 of the same implementation
    assert listed(hash_keys([0, 1, -1], Kind.WORD)) == numbers
    assert listed(hash_keys([1, 1 << 64], Kind.WIDE)) == [numbers[1], mixed(numbers[1])]
