"""Bit-sliced bloom filters, against filters made bit by bit with mmh3 and bitarray."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from bitarray import bitarray
from hypothesis import given
from hypothesis import strategies as st

from secateur.index import bitsliced
from secateur.index.bitsliced import Hashes
from secateur.values import canonical_bytes, key_of, kind_of

int64s = st.integers(-(2**63), 2**63 - 1)
wides = st.integers(1 - 10**38, 10**38 - 1).map(Decimal)


def reference(values: list[bytes], probes: int, log2_bits: int) -> bitarray:
    """The filter of some canonical values, from the definition in docs/format.md."""
    bits = bitarray(1 << log2_bits)
    bits.setall(False)
    for value in values:
        h1, h2 = mmh3.hash64(value, signed=False)
        for i in range(probes):
            bits[(h1 + i * (h2 | 1)) % 2**64 % (1 << log2_bits)] = True
    return bits


def hash_of(value: Any, type_: pa.DataType) -> tuple[int, int]:
    kind = kind_of(type_)
    assert kind is not None
    return mmh3.hash64(canonical_bytes(key_of(value, type_), kind), signed=False)


def pairs(hashes: Hashes) -> set[tuple[int, int]]:
    return set(zip(hashes.first.tolist(), hashes.second.tolist(), strict=True))


@given(st.lists(int64s))
def test_vectorised_hashes_of_words_are_those_of_mmh3(values: list[int]) -> None:
    assert pairs(bitsliced.hash_values(pa.array(values, pa.int64()))) == {hash_of(v, pa.int64()) for v in values}


@given(st.lists(wides))
def test_vectorised_hashes_of_wide_keys_are_those_of_mmh3(values: list[Decimal]) -> None:
    type_ = pa.decimal128(38, 0)
    assert pairs(bitsliced.hash_values(pa.array(values, type_))) == {hash_of(v, type_) for v in values}


@given(st.lists(st.text()))
def test_hashes_of_strings_are_those_of_their_bytes(values: list[str]) -> None:
    expected = {mmh3.hash64(value.encode(), signed=False) for value in values}
    assert pairs(bitsliced.hash_values(pa.array(values, pa.string()))) == expected


SAME = [
    ((pa.int8(), -5), (pa.int64(), -5)),
    ((pa.float32(), 1.5), (pa.float64(), 1.5)),
    ((pa.float64(), -0.0), (pa.float64(), 0.0)),
    ((pa.decimal128(5, 2), Decimal("1.50")), (pa.decimal128(18, 2), Decimal("1.5"))),
    ((pa.string(), "é"), (pa.binary(), "é".encode())),
    ((pa.date32(), dt.date(1970, 1, 3)), (pa.int32(), 2)),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_values_hash_alike_in_every_width(one: tuple[pa.DataType, Any], other: tuple[pa.DataType, Any]) -> None:
    hashes = [pairs(bitsliced.hash_values(pa.array([value], type_))) for type_, value in (one, other)]
    assert hashes[0] == hashes[1]


def test_every_nan_is_one_value() -> None:
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001], np.uint64).view(np.float64)
    assert len(pairs(bitsliced.hash_values(pa.array(nans)))) == 1


def test_null_is_not_hashed() -> None:
    assert len(bitsliced.hash_values(pa.array([None, 7, None], pa.int64())).first) == 1


block = st.lists(st.binary(max_size=12), min_size=1, max_size=12)


@given(st.lists(block, min_size=1, max_size=20), st.integers(1, 8), st.integers(6, 9))
def test_the_matrix_is_the_transpose_of_the_filters(blocks: list[list[bytes]], probes: int, log2_bits: int) -> None:
    filters = [bitsliced.build_filter(bitsliced.hash_canonical(values), probes, log2_bits) for values in blocks]
    references = [reference(values, probes, log2_bits) for values in blocks]
    for found, expected in zip(filters, references, strict=True):
        assert np.unpackbits(found, bitorder="little").tolist() == expected.tolist()
    matrix = bitsliced.transpose(filters)
    bits = np.unpackbits(matrix, axis=1, bitorder="little", count=len(blocks))
    assert bits.T.tolist() == [expected.tolist() for expected in references]


@given(st.lists(block, min_size=1, max_size=20), st.lists(st.binary(max_size=12), min_size=1, max_size=5))
def test_a_probe_says_what_the_single_filters_say(blocks: list[list[bytes]], wanted: list[bytes]) -> None:
    """And so never denies a value that is there."""
    probes, log2_bits = 5, 7
    matrix = bitsliced.transpose(
        [bitsliced.build_filter(bitsliced.hash_canonical(values), probes, log2_bits) for values in blocks]
    )
    hashes = bitsliced.hash_canonical(wanted)
    found = bitsliced.probe(hashes, probes, log2_bits, len(blocks), lambda rows: matrix[rows])
    asked = [reference([value], probes, log2_bits) for value in wanted]
    made = [reference(values, probes, log2_bits) for values in blocks]
    assert found.tolist() == [any((bits & one) == one for one in asked) for bits in made]
    for may_contain, values in zip(found, blocks, strict=True):
        assert may_contain or not set(values) & set(wanted)


@given(block, st.integers(1, 8), st.integers(7, 10))
def test_a_filter_folds_into_one_of_half_the_bits(values: list[bytes], probes: int, log2_bits: int) -> None:
    hashes = bitsliced.hash_canonical(values)
    large = bitsliced.build_filter(hashes, probes, log2_bits)
    half = len(large) // 2
    assert (large[:half] | large[half:]).tolist() == bitsliced.build_filter(hashes, probes, log2_bits - 1).tolist()


@pytest.mark.parametrize("fpr", [0.01, 0.001])
@pytest.mark.parametrize("distinct", [1000, 3000])
def test_the_rate_of_false_positives_is_no_worse_than_asked(fpr: float, distinct: int) -> None:
    """Sizes are rounded up, so the rate is the one asked for or better; 5 standard deviations of slack."""
    probes = bitsliced.probes_for(fpr)
    log2_bits = bitsliced.log2_bits_for(distinct, probes)
    present = bitsliced.hash_values(pa.array(np.arange(distinct)))
    absent = bitsliced.hash_values(pa.array(np.arange(10**6, 10**6 + 100_000)))
    bits = np.unpackbits(bitsliced.build_filter(present, probes, log2_bits), bitorder="little")
    wrong = bits[bitsliced.positions(absent, probes, log2_bits)].all(axis=1).mean()
    assert wrong <= fpr + 5 * np.sqrt(fpr / 100_000)


def test_rates_follow_the_number_of_blocks() -> None:
    assert bitsliced.rate_for(10, None) == 0.01
    assert bitsliced.rate_for(1_000_000, None) == 1e-6
    assert bitsliced.rate_for(1_000_000, 0.05) == 0.05
    assert bitsliced.probes_for(0.01) == 7
