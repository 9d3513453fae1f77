"""Bloom filters: never a false negative, whatever the layout, the size class and the way of hashing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from bitarray import bitarray
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.filters.bloom import (
    CHUNK,
    GROUP,
    LEAST_FPR,
    LEAST_LOG2_BITS,
    MOST_FPR,
    MOST_LOG2_BITS,
    MOST_PROBES,
    BloomColumn,
    bits_of,
    bits_per_value,
    fitted,
    least_bytes,
    log2_bits_for,
    members,
    positions,
    probes_for,
    rate_for,
    rate_of,
)
from secateur.index.filters.hashing import Hashes, hash_canonical
from tests.support.filter_files import bits_of as bitarray_of
from tests.support.filter_files import hash_values, mixed, positions_of


def reference_filter(values: Sequence[bytes], probes: int, log2_bits: int) -> bitarray:
    return bitarray_of((positions_of(value, probes, log2_bits) for value in values), log2_bits)


def pairs(hashes: Hashes) -> list[tuple[int, int]]:
    return list(zip(hashes.first.tolist(), hashes.second.tolist(), strict=True))


def column_of(blocks: Sequence[Sequence[bytes]], probes: int, log2_bits: int) -> BloomColumn:
    column = BloomColumn(log2_bits)
    for block in blocks:
        column.add(bits_of(hash_canonical(block), probes, log2_bits))
    return column


def filters_of(column: BloomColumn) -> list[bitarray]:
    """Block by block."""
    bits = np.unpackbits(column.bytes[:, None], axis=1, bitorder="little", count=column.count)
    return [bitarray(bits[:, i].tolist(), endian="little") for i in range(column.count)]


def probe(column: BloomColumn, value: bytes, probes: int, log2_bits: int) -> list[int]:
    """The blocks that may hold a value."""
    (rows,) = positions(hash_canonical([value]), probes, log2_bits)
    return members(np.bitwise_and.reduce(column.bytes[rows], keepdims=True)).tolist()  # type: ignore[no-any-return]


sizes = st.integers(LEAST_LOG2_BITS, 12)
probe_counts = st.integers(1, MOST_PROBES)
blocks_of_values = st.lists(st.lists(st.binary(max_size=10), max_size=30), min_size=1, max_size=GROUP)


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=20), probe_counts, st.integers(6, 27))
def test_positions_are_the_documented(values: list[bytes], probes: int, log2_bits: int) -> None:
    """The quarters of the hash first, then those of mixed words: for any number of probes and any size."""
    found = positions(hash_canonical(values), probes, log2_bits)
    assert found.tolist() == [positions_of(value, probes, log2_bits) for value in values]


def test_c36_positions_golden() -> None:
    """The positions are part of the format: quarters of (0xCBD8A7B341BD9B02, 0x5B1E906A48AE1D19), then mixed words."""
    (found,) = positions(hash_canonical([b"hello"]), 6, 27).tolist()
    quarters = [0x41BD9B02, 0xCBD8A7B3, 0x48AE1D19, 0x5B1E906A]
    third = mixed(0xCBD8A7B341BD9B02 + 2 * 0x5B1E906A48AE1D19 & 2**64 - 1)
    assert found == [quarter % 2**27 for quarter in (*quarters, third % 2**32, third >> 32)]
    assert mixed(1) == 0xB456BCFC34C2CB2C  # fmix64 of the reference implementation by Appleby


@given(blocks_of_values, st.integers(1, 12), sizes)
def test_a_column_is_the_reference_bit_by_bit(blocks: list[list[bytes]], probes: int, log2_bits: int) -> None:
    """Eight filters side by side: a byte per row, a bit per block."""
    column = column_of(blocks, probes, log2_bits)
    assert (column.count, column.is_full) == (len(blocks), len(blocks) == 8)
    assert filters_of(column) == [reference_filter(block, probes, log2_bits) for block in blocks]


def test_a_column_of_many_values() -> None:
    """More than are hashed at once."""
    values = [b"%d" % i for i in range(2 * CHUNK + 5)]
    assert filters_of(column_of([[], values], 5, 18))[1] == reference_filter(values, 5, 18)


@given(blocks_of_values, st.integers(1, 12), sizes, st.integers(0, 7))
def test_bits_that_are_known_are_taken_as_they_are(
    blocks: list[list[bytes]], probes: int, log2_bits: int, first: int
) -> None:
    """Of filters that somebody else made, behind others."""
    column = column_of([[b"other"]] * first, probes, log2_bits)
    known = [reference_filter(block, probes, log2_bits) for block in blocks[: 8 - first]]
    for each in known:
        column.add(np.array(each.tolist(), np.uint8))
    assert filters_of(column)[first:] == known
    assert filters_of(column)[:first] == [reference_filter([b"other"], probes, log2_bits)] * first


@given(blocks_of_values, st.integers(1, 12), sizes, st.lists(st.binary(max_size=10), max_size=5))
def test_a_probe_answers_as_the_filters(
    blocks: list[list[bytes]], probes: int, log2_bits: int, others: list[bytes]
) -> None:
    """Bit-sliced or block by block: the same answer to every probe, and none is a false negative."""
    column = column_of(blocks, probes, log2_bits)
    references = [reference_filter(block, probes, log2_bits) for block in blocks]
    for value in {value for block in blocks for value in block} | set(others):
        wanted = positions_of(value, probes, log2_bits)
        may_hold = [i for i, found in enumerate(references) if all(found[p] for p in wanted)]
        assert probe(column, value, probes, log2_bits) == may_hold
        assert {i for i, block in enumerate(blocks) if value in block} <= set(may_hold)


@given(st.lists(st.binary(max_size=10), max_size=60), st.integers(1, 10), st.integers(LEAST_LOG2_BITS + 1, 12))
def test_a_filter_folds_into_one_of_half_the_size(values: list[bytes], probes: int, log2_bits: int) -> None:
    """m is a power of two: the OR of the halves is the filter built at half the size, bit by bit."""
    whole = column_of([values], probes, log2_bits)
    low, high = np.split(whole.bytes, 2)
    assert np.array_equal(low | high, column_of([values], probes, log2_bits - 1).bytes)


@given(st.lists(st.binary(max_size=10), max_size=60), st.integers(1, 10), sizes, st.integers(1, 5), st.binary())
def test_a_filter_repeats_into_a_larger_one(
    values: list[bytes], probes: int, log2_bits: int, more: int, other: bytes
) -> None:
    """Row r of the repeated filter is row r mod m: it answers every probe as the filter does."""
    small, repeated = column_of([values], probes, log2_bits), BloomColumn(log2_bits + more)
    repeated.count, repeated.bytes = 1, np.tile(small.bytes, 1 << more)
    for value in (*values, other):
        assert probe(repeated, value, probes, log2_bits + more) == probe(small, value, probes, log2_bits)


@given(st.lists(st.integers(0, 255), max_size=70), st.sampled_from([0.02, 0.3, 1.0]), st.integers(0, 99))
def test_members_are_the_bits_set(row: list[int], share: float, seed: int) -> None:
    """Of any width, sparse or full."""
    kept = np.random.default_rng(seed).random(len(row)) < share
    array = np.where(kept, np.array(row, np.uint8), 0).astype(np.uint8)
    expected = [8 * i + bit for i, byte in enumerate(array.tolist()) for bit in range(8) if byte >> bit & 1]
    assert members(array).tolist() == expected


@pytest.mark.parametrize("fpr", [0.3, 0.01, 1e-4])
@pytest.mark.parametrize("distinct", [0, 1, 17, 100, 1_000, 20_000])
@pytest.mark.parametrize("times", [1, 2, 9])
def test_a_filter_is_fitted_to_its_distinct_values(fpr: float, distinct: int, times: int) -> None:
    """Made for all values, and folded by what its bits tell: as if it had been made for the distinct ones."""
    hashes, probes = hash_values(pa.array(np.arange(distinct))), probes_for(fpr)
    repeated = Hashes(np.tile(hashes.first, times), np.tile(hashes.second, times))
    bits = fitted(bits_of(repeated, probes, log2_bits_for(len(repeated), fpr)), fpr, probes)
    log2_bits = len(bits).bit_length() - 1
    assert bits.tolist() == bits_of(hashes, probes, log2_bits).tolist()
    assert log2_bits in {log2_bits_for(round(distinct * factor), fpr) for factor in (0.97, 1, 1.03)}


@pytest.mark.parametrize("fpr", [0.3, 0.05, 0.01, 0.001])
@pytest.mark.parametrize("distinct", [100, 1_000, 20_000])
def test_the_measured_rate_is_near_the_design_rate(fpr: float, distinct: int) -> None:
    """Never much above it (sizes are rounded up to a power of two, so it may be below)."""
    probes, tried = probes_for(fpr), 200_000
    log2_bits = log2_bits_for(distinct, fpr)
    bits = BloomColumn(log2_bits)
    bits.add(bits_of(hash_values(pa.array(np.arange(distinct))), probes, log2_bits))
    others = hash_values(pa.array(np.arange(10**9, 10**9 + tried)))
    rate = bits.bytes[positions(others, probes, log2_bits)].all(axis=1).mean()
    noise = 4 * math.sqrt(fpr / tried)
    assert rate <= 1.15 * fpr + noise
    assert rate == pytest.approx(rate_of(distinct, probes, log2_bits), rel=0.25, abs=noise)


@pytest.mark.parametrize("fpr", [0.2, 0.01, 1e-3, 1e-4])
def test_the_rate_of_small_filters_is_the_design_rate(fpr: float) -> None:
    """Of hundreds of filters of twenty keys, in which arithmetic progressions of positions would show."""
    distinct, tried = 20, 2_000
    probes, log2_bits = probes_for(fpr), log2_bits_for(distinct, fpr)
    absent = positions(hash_values(pa.array(np.arange(10**9, 10**9 + tried))), probes, log2_bits)
    wrong = blocks = 0
    for first in range(0, 60 * distinct * GROUP, distinct * GROUP):
        column = BloomColumn(log2_bits)
        for i in range(GROUP):
            values = hash_values(pa.array(np.arange(first + i * distinct, first + (i + 1) * distinct)))
            column.add(bits_of(values, probes, log2_bits))
        wrong += int(np.bitwise_count(np.bitwise_and.reduce(column.bytes[absent], axis=1)).sum())
        blocks += GROUP
    expected = rate_of(distinct, probes, log2_bits) * tried * blocks
    assert wrong <= 1.15 * fpr * tried * blocks + 4 * math.sqrt(expected)
    assert wrong <= 1.35 * expected + 4 * math.sqrt(expected)  # of so few values the fill varies


@given(st.integers(0, 10**9), st.floats(LEAST_FPR, 0.5))
def test_sizes_hold_their_values(distinct: int, fpr: float) -> None:
    """The least power of two at which the rate is kept, within bounds; and little more than any filter takes."""
    log2_bits, probes = log2_bits_for(distinct, fpr), probes_for(fpr)
    assert LEAST_LOG2_BITS <= log2_bits <= MOST_LOG2_BITS
    assert 1 <= probes <= MOST_PROBES
    assert rate_of(distinct, probes, log2_bits) <= fpr * (1 + 1e-6) or log2_bits == MOST_LOG2_BITS
    assert rate_of(distinct, probes, log2_bits - 1) > fpr * (1 - 1e-6) or log2_bits == LEAST_LOG2_BITS
    assert least_bytes(1, fpr) * 8 <= bits_per_value(fpr) * (1 + 1e-9)


@pytest.mark.parametrize("fpr", [0.01, 1e-3, 1e-6, 1e-9])
def test_fewer_bits_are_set_for_a_tenth_more_space(fpr: float) -> None:
    assert probes_for(fpr) <= math.ceil(0.6 * math.log2(1 / fpr))
    assert bits_per_value(fpr) / 8 < 1.15 * least_bytes(1, fpr)


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
    assert rate_of(1000, probes_for(expected), log2_bits_for(1000, expected)) <= expected * (1 + 1e-6)
