"""Bloom filters: never a false negative, whatever the layout, the size class and the way of hashing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from bitarray import bitarray
from hypothesis import given
from hypothesis import strategies as st
from strategies import EXACT, KINDS, ColumnKind, array_of

from secateur.index.bitsliced import (
    LEAST_FPR,
    LEAST_LOG2_BITS,
    MOST_FPR,
    MOST_LOG2_BITS,
    SLAB_BITS,
    Hashes,
    build_filter,
    hash_canonical,
    hash_keys,
    hash_values,
    log2_bits_for,
    positions,
    probe,
    probes_for,
    rate_for,
    transpose,
)
from secateur.values import Kind, canonical_bytes, keys_of, kind_of

MASK = 2**64 - 1


def mixed(x: int) -> int:
    """The finaliser of MurmurHash3, in Python's integers."""
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & MASK
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return x ^ x >> 33


def reference_positions(data: bytes, probes: int, bits: int) -> list[int]:
    """The bits of one value: h1 + i * (h2 | 1), mixed, modulo the size, in 64-bit arithmetic."""
    first, second = mmh3.hash64(data, signed=False)
    return [mixed(first + i * (second | 1) & MASK) % bits for i in range(probes)]


def reference_filter(values: Sequence[bytes], probes: int, bits: int) -> bitarray:
    found = bitarray(bits, endian="little")
    for value in values:
        for position in reference_positions(value, probes, bits):
            found[position] = True
    return found


def pairs(hashes: Hashes) -> list[tuple[int, int]]:
    return list(zip(hashes.first.tolist(), hashes.second.tolist(), strict=True))


def matrix_probe(matrix: np.ndarray, hashes: Hashes, probes: int, log2_bits: int, blocks: int) -> list[bool]:
    return probe(hashes, probes, log2_bits, blocks, lambda rows: matrix[rows]).tolist()


sizes = st.integers(LEAST_LOG2_BITS, 12)
blocks_of_values = st.lists(st.lists(st.binary(max_size=10), max_size=30), min_size=1, max_size=20)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_hashes_of_8_byte_keys_are_murmur3(values: list[int]) -> None:
    """The vectorised form is bit-exact to ``mmh3.hash64`` of the little-endian bytes."""
    expected = {mmh3.hash64(value.to_bytes(8, "little", signed=True), signed=False) for value in values}
    assert set(pairs(hash_values(pa.array(values, pa.int64())))) == expected


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-(10**27), max_value=10**27)))
def test_hashes_of_16_byte_keys_are_murmur3(values: list[Any]) -> None:
    keys = [int(value.scaleb(10, EXACT)) for value in values]
    expected = {mmh3.hash64(key.to_bytes(16, "little", signed=True), signed=False) for key in keys}
    assert set(pairs(hash_values(pa.array(values, pa.decimal128(38, 10))))) == expected


columns = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), st.lists(kind.values, max_size=12)))


@given(columns)
def test_hashes_of_values_are_those_of_their_keys(column: tuple[ColumnKind, list[Any]]) -> None:
    """What a build hashes, a whole array with NULLs, is what a query hashes, key by key; for every type."""
    kind, values = column
    array = array_of([*values, None, *values], kind.type)
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
    built = pairs(hash_values(array))
    assert len(built) == len(set(built))
    assert set(built) == set(pairs(hash_keys(keys, key_kind)))
    assert set(built) == set(pairs(hash_canonical([canonical_bytes(key, key_kind) for key in keys])))


def test_c17_both_zeros_and_all_nans_hash_alike() -> None:
    for type_ in (pa.float32(), pa.float64()):
        assert len(hash_values(pa.array([0.0, -0.0], type_)).first) == 1
        assert len(hash_values(pa.array([math.nan, -math.nan], type_)).first) == 1


def test_c29_a_value_hashes_alike_in_every_width() -> None:
    """An index built when the column was narrower serves the wider one."""
    for narrow, wide in ((pa.int8(), pa.int64()), (pa.int32(), pa.int64()), (pa.float32(), pa.float64())):
        values = [-3, 0, 1, 100]
        assert pairs(hash_values(pa.array(values, narrow))) == pairs(hash_values(pa.array(values, wide)))


GOLDEN = [
    (b"", (0x0000000000000000, 0x0000000000000000)),
    (b"hello", (0xCBD8A7B341BD9B02, 0x5B1E906A48AE1D19)),
    (bytes(8), (0x28DF63B7CC57C3CB, 0xF2557DFCC4E8FE52)),
]


@pytest.mark.parametrize(("data", "expected"), GOLDEN)
def test_c36_hashes_golden(data: bytes, expected: tuple[int, int]) -> None:
    """The hash is part of the format. The value of "hello" is that of the reference implementation by Appleby."""
    assert pairs(hash_canonical([data])) == [expected]


@given(st.lists(st.binary(max_size=20), max_size=40), st.integers(1, 20), sizes)
def test_a_filter_is_the_reference_bit_by_bit(values: list[bytes], probes: int, log2_bits: int) -> None:
    found = build_filter(hash_canonical(values), probes, log2_bits)
    assert found.tobytes() == reference_filter(values, probes, 1 << log2_bits).tobytes()


@given(blocks_of_values, st.integers(1, 12), sizes, st.lists(st.binary(max_size=10), max_size=5))
def test_the_matrix_answers_as_the_filters(
    blocks: list[list[bytes]], probes: int, log2_bits: int, others: list[bytes]
) -> None:
    """Bit-sliced or block by block: the same answer to every probe, and none is a false negative."""
    bits = 1 << log2_bits
    matrix = transpose([build_filter(hash_canonical(block), probes, log2_bits) for block in blocks])
    references = [reference_filter(block, probes, bits) for block in blocks]
    for value in {value for block in blocks for value in block} | set(others):
        wanted = [all(f[p] for p in reference_positions(value, probes, bits)) for f in references]
        assert matrix_probe(matrix, hash_canonical([value]), probes, log2_bits, len(blocks)) == wanted
        assert all(found or value not in block for found, block in zip(wanted, blocks, strict=True))


@given(blocks_of_values, st.lists(st.binary(max_size=10), min_size=1, max_size=8), st.integers(1, 12), sizes)
def test_several_values_are_probed_as_each(
    blocks: list[list[bytes]], values: list[bytes], probes: int, log2_bits: int
) -> None:
    """A block may hold any of the values iff it may hold one."""
    matrix = transpose([build_filter(hash_canonical(block), probes, log2_bits) for block in blocks])
    each = [matrix_probe(matrix, hash_canonical([value]), probes, log2_bits, len(blocks)) for value in values]
    together = matrix_probe(matrix, hash_canonical(values), probes, log2_bits, len(blocks))
    assert together == [any(answers) for answers in zip(*each, strict=True)]


def test_transpose_in_slabs() -> None:
    """Filters longer than a slab, and a number of blocks that is no multiple of eight."""
    random = np.random.default_rng(7)
    filters = [random.integers(0, 256, 4 * SLAB_BITS // 8, np.uint8) for _ in range(11)]
    rows = np.unpackbits(transpose(filters), axis=1, bitorder="little", count=11)
    assert (np.unpackbits(np.stack(filters), axis=1, bitorder="little") == rows.T).all()


@given(st.lists(st.binary(max_size=10), max_size=60), st.integers(1, 10), st.integers(LEAST_LOG2_BITS + 1, 12))
def test_a_filter_folds_into_one_of_half_the_size(values: list[bytes], probes: int, log2_bits: int) -> None:
    """m is a power of two: the OR of the halves is the filter built at half the size, bit by bit."""
    whole = build_filter(hash_canonical(values), probes, log2_bits)
    low, high = np.split(whole, 2)
    assert (low | high).tolist() == build_filter(hash_canonical(values), probes, log2_bits - 1).tolist()


@pytest.mark.parametrize("fpr", [0.3, 0.05, 0.01, 0.001])
@pytest.mark.parametrize("distinct", [100, 1_000, 20_000])
def test_the_measured_rate_is_near_the_design_rate(fpr: float, distinct: int) -> None:
    """Never much above it (sizes are rounded up to a power of two, so it may be below)."""
    probes, tried = probes_for(fpr), 200_000
    log2_bits = log2_bits_for(distinct, probes)
    values = hash_values(pa.array(np.arange(distinct)))
    bits = np.unpackbits(build_filter(values, probes, log2_bits), bitorder="little")
    others = hash_values(pa.array(np.arange(10**9, 10**9 + tried)))
    rate = bits[positions(others, probes, log2_bits)].all(axis=1).mean()
    noise = 4 * math.sqrt(fpr / tried)
    assert rate <= 1.15 * fpr + noise
    fill = -math.expm1(-distinct * probes / (1 << log2_bits))
    assert rate == pytest.approx(fill**probes, rel=0.25, abs=noise)


@given(st.integers(0, 10**9), st.integers(1, 30))
def test_sizes_hold_their_values(distinct: int, probes: int) -> None:
    """The least power of two with n k / ln 2 bits, within bounds."""
    log2_bits = log2_bits_for(distinct, probes)
    assert LEAST_LOG2_BITS <= log2_bits <= MOST_LOG2_BITS
    needed = distinct * probes / math.log(2)
    assert (1 << log2_bits) >= needed or log2_bits == MOST_LOG2_BITS
    assert (1 << log2_bits) < 2 * needed or log2_bits == LEAST_LOG2_BITS


@pytest.mark.parametrize(
    ("blocks", "fpr", "expected"),
    [
        (1, None, MOST_FPR),
        (100, None, 0.01),
        (10_000, None, 1e-4),
        (10**12, None, LEAST_FPR),
        (10, 0.2, 0.2),
        (10, 0.9, 0.5),
    ],
)
def test_rates(blocks: int, fpr: float | None, expected: float) -> None:
    """By default an absent value costs about one wrong block in the whole table."""
    assert rate_for(blocks, fpr) == pytest.approx(expected)
    assert 0.5 ** probes_for(expected) <= expected
