"""Choose the increments that a refresh merges, so that look-ups stay fast in an index that grows bit by bit.

An increment is the segments that one build, refresh or merge wrote. A look-up asks every segment and every bloom
matrix, so there should be few. As in a log-structured merge tree, an increment is merged with all smaller ones as soon
as these together are half as large. Every increment that stays is more than twice as large as all smaller ones
together, so n blocks lie in at most log3(n) + 1 increments. A block that moves comes into an increment at least 1.5
times as large as its own, so it moves at most log1.5(n) times. With 1,000 equal appends there are 4 increments at a
time on average, and a block is written 9 times.
"""

from __future__ import annotations

import numpy as np

from secateur.index.compact.plan_segments import LEAST_FILLED, LEAST_MATRIX
from secateur.index.file_names import build_of
from secateur.index.filters.bloom_matrix import MATRIX_BLOCKS
from secateur.index.segments.segment_table import Segments
from secateur.ragged import offsets_of

GROWTH = 1.5  # a merged increment is at least this many times as large as its largest part
MOST_BYTES = 1 << 30  # of index files that one refresh merges: bounds how long an append may have to wait


def due_to_merge(segments: Segments, target: int) -> np.ndarray:
    """Return the segments to merge into one increment, ascending: none, or those of several increments.

    Parameters
    ----------
    target
        The blocks that a merged segment should have. Segments that are filled are left alone, unless they have bloom
        filters in small matrices.
    """
    increment, number = _increments(segments)
    blocks = np.bincount(increment, segments.block_count, number)
    in_small_matrices = (blocks < LEAST_MATRIX * MATRIX_BLOCKS)[increment] & bool(segments.bloom_matrices)
    movable = in_small_matrices | (segments.block_count < LEAST_FILLED * target)
    size = np.bincount(increment[movable], segments.block_count[movable], number)
    order = np.argsort(size, kind="stable")
    order = order[np.bincount(increment[movable], minlength=number)[order] > 0]
    smaller = offsets_of(size[order])[:-1]
    nbytes = np.cumsum(_bytes(segments, increment, number, movable)[order])
    fits = np.flatnonzero((size[order] * (GROWTH - 1) <= smaller) & (nbytes <= MOST_BYTES))
    if not len(fits) or not fits[-1]:
        return np.zeros(0, np.int64)
    return np.flatnonzero(movable & np.isin(increment, order[: fits[-1] + 1]))


def _increments(segments: Segments) -> tuple[np.ndarray, int]:
    """Return the increment of every segment, and the number of increments."""
    names, increment = np.unique([build_of(name) or "" for name in segments.name], return_inverse=True)
    return increment, len(names)


def _bytes(segments: Segments, increment: np.ndarray, number: int, movable: np.ndarray) -> np.ndarray:
    """Return the bytes that every increment has in movable segments, their share of bloom matrices included."""
    nbytes = np.bincount(increment[movable], segments.size[movable], number)
    for matrices in segments.bloom_matrices.values():
        columns = matrices.columns[matrices.run_matrix]
        rows = np.bincount(matrices.part_matrix, matrices.rows, len(matrices.columns))[matrices.run_matrix]
        known = matrices.segment >= 0
        share = np.minimum(matrices.count, columns)[known] / 8 * rows[known]
        owner = matrices.segment[known]
        is_movable = movable[owner]
        nbytes += np.bincount(increment[owner[is_movable]], share[is_movable], number)
    return nbytes
