"""Groups of files to rewrite stay within the budget, save what they say, and leave alone what is in order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.advise.rewrite_groups import LEAST_FALL, AskedFiles, RewriteCandidates, ShareOfBlocks

SORTED = ShareOfBlocks(1, 1.0, 1.0)  # one block of any number is read


def look_ups(intervals: np.ndarray, size: np.ndarray, partition: np.ndarray | None = None) -> RewriteCandidates:
    """Files with these shares of the rows below and up to their bounds, each of ten blocks as wide as itself."""
    lower, upper = intervals.T
    n = len(lower)
    return RewriteCandidates(
        asked=[AskedFiles(1.0, size * (upper - lower), lower, upper)],
        shares=[SORTED],
        size=size,
        blocks=np.full(n, 10),
        partition=np.zeros(n, np.int64) if partition is None else partition,
        least=lower,
    )


files = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(1, 50), st.integers(0, 2)), min_size=1, max_size=25
)


@given(files, st.integers(0, 400), st.booleans())
def test_groups_are_within_the_budget_and_save(
    listed: list[tuple[float, float, int, int]], budget: int, whole: bool
) -> None:
    intervals = np.sort(np.array([[a, b] for a, b, _, _ in listed]), axis=1)
    size, partition = (np.array([file[i] for file in listed]) for i in (2, 3))
    candidates = look_ups(intervals, size, partition)
    groups = candidates.chosen(budget, 0.01, whole_partitions=whole)
    taken = np.concatenate([group.files for group in groups]) if groups else np.zeros(0, np.int64)
    assert len(taken) == len(set(taken.tolist()))
    assert size[taken].sum() <= budget
    for group in groups:
        of_group = size[group.files]
        low, high = intervals[group.files].min(), intervals[group.files].max()
        now = (of_group * np.diff(intervals[group.files], axis=1)[:, 0]).sum()
        then = (high - low) * of_group.sum() / (10 * len(group.files))
        assert np.isclose(group.bytes_now, now)
        assert np.isclose(group.bytes_then, then)
        assert now - then >= 0.01 * of_group.sum() * (1 - 1e-9)
        assert now - then >= LEAST_FALL * now * (1 - 1e-9)
        assert len(set(partition[group.files].tolist())) == 1
        if whole:
            assert len(group.files) == np.count_nonzero(partition == partition[group.files[0]])


def test_files_that_overlap_are_taken_and_files_in_order_are_left() -> None:
    in_order = np.linspace(0, 0.5, 101)
    ordered = np.stack([in_order[:-1], in_order[1:]], axis=1)
    mixed = np.tile([[0.5, 1.0]], (7, 1))
    candidates = look_ups(np.concatenate([ordered, mixed]), np.full(107, 1000))
    (group,) = candidates.chosen(None, 0.01)
    assert group.files.tolist() == list(range(100, 107))
    assert candidates.chosen(6_999, 0.01)[0].files.tolist() == list(range(100, 106)), "as many as the budget allows"


def test_ordered_runs_are_merged_where_they_lie_above_one_another() -> None:
    """Ten runs of four files: ten blocks are read of each look-up, wherever it is; a window of a quarter mends that."""
    edges = np.linspace(0, 1, 5)
    runs = np.tile(np.stack([edges[:-1], edges[1:]], axis=1), (10, 1))
    wide = look_ups(runs, np.full(40, 1000))
    candidates = RewriteCandidates(
        [AskedFiles(1.0, wide.asked[0].bytes_read / 10, *runs.T)],
        [SORTED],
        wide.size,
        wide.blocks,
        wide.partition,
        runs[:, 0],
    )
    groups = candidates.chosen(10_000, 0.001)
    assert [len(group.files) for group in groups] == [10]
    assert len({tuple(runs[file]) for file in groups[0].files}) == 1, "all of one quarter"


def test_a_share_falls_with_the_number_of_blocks() -> None:
    share = ShareOfBlocks(100, 0.1, 0.5)
    assert np.allclose(share.of(np.array([1, 4, 100, 400, 10**8])), [1.0, 0.5, 0.1, 0.05, 0.0001])
    assert ShareOfBlocks(10, 0.0, 0.0).of(np.array([10])) == 0.1, "some block is read"
