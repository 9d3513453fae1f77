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
    MOST_BITS,
    MOST_FPR,
    MOST_PROBES,
    BloomColumn,
    bits_for,
    bits_per_value,
    distinct_count,
    least_bytes,
    members,
    positions,
    probes_for,
    rate_for,
    rate_of,
    section_bits,
    size_for,
)
from secateur.index.filters.hashing import hash_texts, hash_words
from tests.support.stores.filter_files import bits_of as bitarray_of
from tests.support.stores.filter_files import hash_values, mixed, own_shape, positions_of, text_hash


def reference_filter(values: Sequence[bytes], probes: int, bits: int) -> bitarray:
    return bitarray_of((positions_of(text_hash(value), probes, bits) for value in values), bits)


def column_of(blocks: Sequence[Sequence[bytes]], probes: int, bits: int) -> BloomColumn:
    column = BloomColumn(bits)
    for block in blocks:
        column.add_values(hash_texts(block), probes)
    return column


def filters_of(column: BloomColumn) -> list[bitarray]:
    """Block by block."""
    bits = np.unpackbits(column.bytes[:, None], axis=1, bitorder="little", count=column.count)
    return [bitarray(bits[:, i].tolist(), endian="little") for i in range(column.count)]


def probe(column: BloomColumn, value: bytes, probes: int, bits: int) -> list[int]:
    """The blocks that may hold a value."""
    (rows,) = positions(hash_texts([value]), probes, bits)
    return members(np.bitwise_and.reduce(column.bytes[rows], keepdims=True)).tolist()  # type: ignore[no-any-return]


sections = st.integers(8, 1000)
probe_counts = st.integers(1, MOST_PROBES)
blocks_of_values = st.lists(st.lists(st.binary(max_size=10), max_size=30), min_size=1, max_size=GROUP)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20), probe_counts, st.integers(8, 1 << 27))
def test_positions_are_the_documented(hashes: list[int], probes: int, section: int) -> None:
    """One in every section, for any number of probes and any size."""
    bit_positions = positions(np.array(hashes, np.uint64), probes, probes * section)
    assert bit_positions.tolist() == [positions_of(hashed, probes, probes * section) for hashed in hashes]
    assert ((bit_positions >= np.arange(probes) * section) & (bit_positions < np.arange(1, probes + 1) * section)).all()


def test_c36_positions_golden() -> None:
    """The positions are part of the format: of the hash 0xCBD8A7B341BD9B02, in three sections of 1,000 bits."""
    (bit_positions,) = positions(hash_texts([b"hello"]), 3, 3000).tolist()
    assert mixed(1) == 0xB456BCFC34C2CB2C  # fmix64 of the reference implementation by Appleby
    halves = [0xCBD8A7B341BD9B02 * (mixed(i) | 1) % 2**64 // 2**32 for i in (1, 2, 3)]
    assert bit_positions == [1000 * i + 1000 * half // 2**32 for i, half in enumerate(halves)] == [564, 1887, 2657]


@given(blocks_of_values, st.integers(1, 12), sections)
def test_a_column_is_the_reference_bit_by_bit(blocks: list[list[bytes]], probes: int, section: int) -> None:
    """Eight filters side by side: a byte per row, a bit per block."""
    column = column_of(blocks, probes, probes * section)
    assert (column.count, column.is_full) == (len(blocks), len(blocks) == 8)
    assert filters_of(column) == [reference_filter(block, probes, probes * section) for block in blocks]


def test_a_column_of_many_values() -> None:
    """More than are processed at once."""
    values = [b"%d" % i for i in range(2 * CHUNK + 5)]
    assert filters_of(column_of([[], values], 5, 250_000))[1] == reference_filter(values, 5, 250_000)


@given(blocks_of_values, st.integers(1, 12), sections, st.integers(0, 7))
def test_bits_that_are_known_are_taken_as_they_are(
    blocks: list[list[bytes]], probes: int, section: int, first: int
) -> None:
    """Of filters that somebody else made, behind others."""
    bits = probes * section
    column = column_of([[b"other"]] * first, probes, bits)
    known = [reference_filter(block, probes, bits) for block in blocks[: 8 - first]]
    for reference in known:
        column.add(np.array(reference.tolist(), np.uint8))
    assert filters_of(column)[first:] == known
    assert filters_of(column)[:first] == [reference_filter([b"other"], probes, bits)] * first


@given(blocks_of_values, st.integers(1, 12), sections, st.lists(st.binary(max_size=10), max_size=5))
def test_a_probe_answers_as_the_filters(
    blocks: list[list[bytes]], probes: int, section: int, others: list[bytes]
) -> None:
    """Bit-sliced or block by block: the same answer to every probe, and none is a false negative."""
    bits = probes * section
    column = column_of(blocks, probes, bits)
    references = [reference_filter(block, probes, bits) for block in blocks]
    for value in {value for block in blocks for value in block} | set(others):
        wanted = positions_of(text_hash(value), probes, bits)
        may_hold = [i for i, reference in enumerate(references) if all(reference[p] for p in wanted)]
        assert probe(column, value, probes, bits) == may_hold
        assert {i for i, block in enumerate(blocks) if value in block} <= set(may_hold)


some_values = st.lists(st.binary(max_size=10), max_size=60)


@given(some_values, st.integers(1, 10), sections, st.integers(2, 9))
def test_a_filter_folds_into_one_whose_size_divides_its_own(
    values: list[bytes], probes: int, section: int, times: int
) -> None:
    """The OR of `times` neighbours is the filter built at that size, bit by bit."""
    whole = column_of([values], probes, probes * section * times)
    folded = np.bitwise_or.reduce(whole.bytes.reshape(-1, times), axis=1)
    assert np.array_equal(folded, column_of([values], probes, probes * section).bytes)


@given(some_values, st.integers(1, 10), sections, st.integers(2, 9), st.binary())
def test_a_filter_repeats_into_a_larger_one(
    values: list[bytes], probes: int, section: int, times: int, other: bytes
) -> None:
    """Row r of the repeated filter is row r div f: it answers every probe as the filter does."""
    bits = probes * section
    small, repeated = column_of([values], probes, bits), BloomColumn(bits * times)
    repeated.count, repeated.bytes = 1, np.repeat(small.bytes, times)
    for value in (*values, other):
        assert probe(repeated, value, probes, bits * times) == probe(small, value, probes, bits)


@given(st.lists(st.integers(0, 255), max_size=70), st.sampled_from([0.02, 0.3, 1.0]), st.integers(0, 99))
def test_members_are_the_bits_set(row: list[int], share: float, seed: int) -> None:
    """Of any width, sparse or full."""
    kept = np.random.default_rng(seed).random(len(row)) < share
    array = np.where(kept, np.array(row, np.uint8), 0).astype(np.uint8)
    expected = [8 * i + bit for i, byte in enumerate(array.tolist()) for bit in range(8) if byte >> bit & 1]
    assert members(array).tolist() == expected


@pytest.mark.parametrize("distinct", [1, 17, 100, 1_000, 5_000, 20_000, 300_000])
@pytest.mark.parametrize("times", [1, 2, 9])
def test_distinct_hashes_are_counted_nearly(distinct: int, times: int) -> None:
    """From the places that they take, whatever the number of times that they occur."""
    hashes = np.tile(hash_values(pa.array(np.arange(distinct))), times)
    deviation = 3 * max(math.sqrt(distinct), 1)
    assert distinct_count(hashes) == pytest.approx(distinct, abs=max(deviation, 1))


def test_no_hashes_are_none() -> None:
    assert distinct_count(np.zeros(0, np.uint64)) == 0


@pytest.mark.parametrize("fpr", [0.3, 0.05, 0.01, 0.001])
@pytest.mark.parametrize("distinct", [100, 1_000, 20_000])
def test_the_measured_rate_is_near_the_design_rate(fpr: float, distinct: int) -> None:
    """Never much above it (sizes are rounded up, so it may be below)."""
    probes, bits, tried = probes_for(fpr), bits_for(distinct, fpr), 200_000
    column = BloomColumn(bits)
    column.add_values(hash_values(pa.array(np.arange(distinct))), probes)
    others = hash_values(pa.array(np.arange(10**9, 10**9 + tried)))
    rate = column.bytes[positions(others, probes, bits)].all(axis=1).mean()
    noise = 4 * math.sqrt(fpr / tried)
    assert rate <= 1.15 * fpr + noise
    assert rate == pytest.approx(rate_of(distinct, probes, bits), rel=0.25, abs=noise)


@pytest.mark.parametrize("fpr", [0.2, 0.01, 1e-3, 1e-4])
@pytest.mark.parametrize("step", [1, 1 << 20, 1 << 44, 1_000_003])
def test_the_rate_of_small_filters_is_the_design_rate(fpr: float, step: int) -> None:
    """Of hundreds of filters of twenty keys, in which places that depend on each other would show; keys at any step."""
    distinct, tried = 20, 2_000
    probes, bits = probes_for(fpr), bits_for(distinct, fpr)
    keys = np.arange(distinct * GROUP * 60 + tried, dtype=np.int64) * step
    hashes = hash_words(keys.view(np.uint64))
    absent = positions(hashes[-tried:], probes, bits)
    wrong = blocks = 0
    for first in range(0, 60 * distinct * GROUP, distinct * GROUP):
        column = BloomColumn(bits)
        for i in range(GROUP):
            column.add_values(hashes[first + i * distinct : first + (i + 1) * distinct], probes)
        wrong += int(np.bitwise_count(np.bitwise_and.reduce(column.bytes[absent], axis=1)).sum())
        blocks += GROUP
    expected = rate_of(distinct, probes, bits) * tried * blocks
    assert wrong <= 1.15 * fpr * tried * blocks + 4 * math.sqrt(expected)
    assert wrong <= 1.35 * expected + 4 * math.sqrt(expected)  # of so few values the fill varies


@given(st.integers(0, 10**9), st.floats(LEAST_FPR, 0.5))
def test_sizes_hold_their_values(distinct: int, fpr: float) -> None:
    """The least documented size at which the rate is kept; at most a sixteenth larger than that needs, and a bit."""
    probes, bits = probes_for(fpr), bits_for(distinct, fpr)
    assert 1 <= probes <= MOST_PROBES
    assert bits <= MOST_BITS
    needed = distinct * bits_per_value(fpr)
    if needed <= 0.8 * MOST_BITS:
        assert own_shape(distinct, fpr) == (512 * probes + size_for(distinct, fpr), probes, bits)
        assert rate_of(distinct, probes, bits) <= fpr * (1 + 1e-6)
    assert bits <= 17 / 16 * (needed + 1.5 * probes)
    assert least_bytes(1, fpr) * 8 <= bits_per_value(fpr) * (1 + 1e-9)


def test_sizes_ascend() -> None:
    sections = [section_bits(size) for size in range(400)]
    assert sections == sorted(set(sections))
    assert (sections[:18], sections[33], sections[-1]) == ([*range(18)], 34, 31 << 23)


@pytest.mark.parametrize("fpr", [0.01, 1e-3, 1e-4])
def test_fewer_bits_are_set_for_a_tenth_more_space(fpr: float) -> None:
    assert probes_for(fpr) <= math.ceil(0.6 * math.log2(1 / fpr))
    assert bits_per_value(fpr) / 8 < 1.15 * least_bytes(1, fpr)


@pytest.mark.parametrize("fpr", [1e-5, 1e-6, 1e-9])
def test_rows_of_many_blocks_are_few(fpr: float) -> None:
    """Eight, or as many as still need less than one and a half times the least space."""
    assert probes_for(fpr) == max(8, math.ceil(0.4 * math.log2(1 / fpr)))
    assert bits_per_value(fpr) / 8 < 1.45 * least_bytes(1, fpr)


@pytest.mark.parametrize(
    ("blocks", "fpr", "expected"),
    [
        (1, None, MOST_FPR),
        (20, None, 0.01),
        (10_000, None, 0.2e-4),
        (10**12, None, LEAST_FPR),
        (10, 0.2, 0.2),
        (10, 0.9, 0.5),
    ],
)
def test_rates(blocks: int, fpr: float | None, expected: float) -> None:
    """By default five absent values cost about one wrong block in the whole table."""
    assert rate_for(blocks, fpr) == pytest.approx(expected)
    assert rate_of(1000, probes_for(expected), bits_for(1000, expected)) <= expected * (1 + 1e-6)
