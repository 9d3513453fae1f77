"""What look-ups are expected to read, against look-ups that are counted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.advise.look_ups import (
    LEAST_ROWS,
    MOST_BLOCKS,
    NULL,
    BoundedBlocks,
    edges_of,
    measured_share,
    share_of_look_ups,
)


def bounded(lower: list[int], upper: list[int], rows: list[int], file: list[int] | None = None) -> BoundedBlocks:
    """Blocks of 10 bytes a row, by default one in each file."""
    counts = np.array(rows, np.int64)
    at = np.arange(len(rows)) if file is None else np.array(file)
    return BoundedBlocks(at, 10 * counts, counts, np.array(lower, np.int64), np.array(upper, np.int64))


# ---- look-ups in blocks by their bounds


def test_blocks_apart_are_read_for_their_own_rows_alone() -> None:
    """Then the sample does not matter: a look-up reads a block with the chance of its share of rows."""
    blocks = bounded([0, 10, 20], [9, 19, 29], [100, 300, 600])
    for sampled in (np.arange(30), np.arange(5, 8), np.zeros(0, np.int64)):
        asked = blocks.asked(sampled, 3, 1.0)
        np.testing.assert_allclose(asked.bytes_read, [1000 * 0.1, 3000 * 0.3, 6000 * 0.6])
        np.testing.assert_allclose(asked.lower, [0.0, 0.1, 0.4])
        np.testing.assert_allclose(asked.upper, [0.1, 0.4, 1.0])


def test_blocks_that_enclose_all_values_are_always_read() -> None:
    asked = bounded([0, 0], [99, 99], [100, 300]).asked(np.arange(1, 99), 2, 1.0)
    np.testing.assert_allclose(asked.bytes_read, [1000, 3000])


def test_a_block_without_values_is_never_read() -> None:
    asked = bounded([0, 1], [9, 0], [100, 700]).asked(np.arange(10), 2, 1.0)
    np.testing.assert_allclose(asked.bytes_read, [1000, 0])
    assert (asked.lower[1], asked.upper[1]) == (1.0, 0.0), "an empty range"


def test_a_file_spans_its_blocks() -> None:
    asked = bounded([0, 20, 10], [9, 29, 19], [100, 100, 200], file=[0, 0, 1]).asked(np.arange(30), 2, 1.0)
    np.testing.assert_allclose(asked.bytes_read, [2 * 1000 * 0.25, 2000 * 0.5])
    np.testing.assert_allclose((asked.lower[0], asked.upper[0]), (0.0, 1.0))


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(-2, 30), st.integers(0, 50)), min_size=1, max_size=8),
    st.lists(st.integers(0, 60), max_size=40),
)
def test_chances_are_chances(drawn: list[tuple[int, int, int]], sampled: list[int]) -> None:
    """Whatever the bounds and the sample: a block is read with a chance between 0 and 1, and at least for its rows."""
    lower = [low for low, _, _ in drawn]
    upper = [low + span for low, span, _ in drawn]
    rows = np.array([count for _, _, count in drawn])
    asked = bounded(lower, upper, rows.tolist()).asked(np.array(sampled, np.int64), len(drawn), 1.0)
    holds = np.array(lower) <= np.array(upper)
    total = rows[holds].sum()
    least = np.where(holds, 10 * rows * rows / max(total, 1), 0)
    assert (asked.bytes_read <= 10 * rows + 1e-6).all()
    assert (asked.bytes_read >= least - 1e-6).all()


def test_it_is_what_counted_look_ups_read() -> None:
    """Rows spread evenly between overlapping bounds: the expected bytes are close to those of every row's look-up."""
    rng = np.random.default_rng(3)
    begin = rng.integers(0, 10_000, 60)
    values = [np.sort(rng.integers(low, low + 3_000, 500)) for low in begin]
    blocks = bounded([int(v[0]) for v in values], [int(v[-1]) for v in values], [500] * 60)
    every = np.sort(np.concatenate(values))
    enclosing = sum(np.where((every >= v[0]) & (every <= v[-1]), 5_000, 0) for v in values)
    asked = blocks.asked(rng.choice(every, 3_000), 60, 1.0)
    assert asked.bytes_read.sum() == pytest.approx(enclosing.mean(), rel=0.05)


# ---- look-ups in rows of another order


def counted_share(ranks: np.ndarray, blocks: int) -> float:
    """The share of blocks whose bounds enclose the value of a row, over all rows with one."""
    edges = edges_of(len(ranks), blocks)
    parts = [ranks[begin:end][ranks[begin:end] != NULL] for begin, end in pairwise(edges)]
    read = [sum(len(p) > 0 and p.min() <= value <= p.max() for p in parts) for value in ranks[ranks != NULL]]
    return float(np.mean(read)) / blocks if read else 0.0


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 200), st.booleans())
def test_shares_are_counted(seed: int, blocks: int, most: int, in_order: bool) -> None:
    rng = np.random.default_rng(seed)
    ranks = rng.integers(NULL, most, blocks * LEAST_ROWS)
    share = share_of_look_ups(np.sort(ranks) if in_order else ranks, blocks)
    assert share.blocks == blocks
    assert share.share == pytest.approx(counted_share(np.sort(ranks) if in_order else ranks, blocks))


def test_rows_in_order_are_read_once_and_unordered_ones_everywhere() -> None:
    n, blocks = 64 * LEAST_ROWS, 64
    in_order = share_of_look_ups(np.arange(n), blocks)
    assert (in_order.share, in_order.exponent) == (pytest.approx(1 / 64), pytest.approx(1.0))
    shuffled = share_of_look_ups(np.random.default_rng(1).permutation(n), blocks)
    assert shuffled.share > 0.9
    assert shuffled.exponent < 0.1


def test_rows_of_null_are_never_asked_for() -> None:
    assert share_of_look_ups(np.full(1_000, NULL), 10).share == 0.0
    assert share_of_look_ups(np.zeros(0, np.int64), 10).share == 0.0
    only_first = np.append(np.arange(500), np.full(500, NULL))
    assert share_of_look_ups(only_first, 10).share == pytest.approx(1 / 10)


def test_a_thin_sample_is_cut_into_fewer_blocks() -> None:
    for rows, blocks, expected in (
        (10 * LEAST_ROWS, 1_000_000, 10),
        (1 << 20, 1_000_000, MOST_BLOCKS),
        (1 << 20, 7, 7),
        (3, 100, 1),
    ):
        assert measured_share(rows, blocks, lambda edges: 1.0 / (len(edges) - 1)).blocks == expected


def test_the_power_of_the_fall() -> None:
    """Shares that fall as a power of the number of blocks, and such as do not fall or rise."""
    for power in (0.0, 0.5, 1.0):
        share = measured_share(1 << 20, 256, lambda edges, power=power: float(len(edges) - 1) ** -power)
        assert share.exponent == pytest.approx(power)
    assert measured_share(1 << 20, 256, lambda edges: len(edges) / 1_000).exponent == 0.0
    assert measured_share(1 << 20, 256, lambda edges: 0.0).exponent == 0.0


@given(st.integers(0, 10_000), st.integers(1, 100))
def test_edges_cut_rows_evenly(rows: int, blocks: int) -> None:
    edges = edges_of(rows, blocks)
    assert (edges[0], edges[-1], len(edges)) == (0, rows, blocks + 1)
    assert np.ptp(np.diff(edges)) <= 1
