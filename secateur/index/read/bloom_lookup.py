"""Look up in the bloom matrices of a filter which blocks may hold some values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from secateur.errors import IndexFault
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.probe import ANY
from secateur.index.filters.size_class import NONE
from secateur.index.read.loader import IndexMemory, readable
from secateur.index.read.matrix_columns import HashesOf, Hits, MatrixReader, find_columns
from secateur.ragged import runs_of

SizeClasses = Mapping[int, np.ndarray | None]  # by segment
_HALF = 32  # bits of the second number of a key: matrices have fewer than 2^27 columns


class CandidateBlocks(NamedTuple):
    """Blocks that may hold one of several values, one entry per value; `value` is its position, or ANY."""

    numbers: np.ndarray
    value: np.ndarray


class _Filters(NamedTuple):
    """Filters that may hold a value: the run of each, and its place there."""

    run: np.ndarray
    within: np.ndarray
    value: np.ndarray

    def take(self, chosen: np.ndarray) -> _Filters:
        return _Filters(self.run[chosen], self.within[chosen], self.value[chosen])


def any_value(numbers: np.ndarray) -> CandidateBlocks:
    """Return blocks that may hold any of the values."""
    return CandidateBlocks(numbers, np.full(len(numbers), ANY))


def joined(parts: Sequence[CandidateBlocks]) -> CandidateBlocks:
    """Concatenate candidates; of blocks, ascending."""
    nothing = np.zeros(0, np.int64)
    numbers, value = (np.concatenate([nothing, *arrays]) for arrays in zip(*parts, strict=True))
    order = np.argsort(numbers, kind="stable")
    return CandidateBlocks(numbers[order], value[order])


def blocks_in_matrices(
    memory: IndexMemory, f: int, hashes_of: HashesOf, segments: np.ndarray
) -> CandidateBlocks | None:
    """Return the blocks of some segments that may hold a value, ascending; None where there are no matrices.

    Blocks without a readable filter are among them.
    """
    bloom_matrices = memory.bloom_matrices(f)
    if bloom_matrices is None:
        return None
    wanted = np.zeros(len(memory.groups.names) + 1, bool)  # the last entry is for runs without a segment
    wanted[segments] = True
    runs = np.flatnonzero(wanted[bloom_matrices.segment])
    reader = MatrixReader(bloom_matrices, runs, memory.filter_files(bloom_matrices), memory.faults)
    hits, known = find_columns(reader, hashes_of)
    filters = _in_runs(bloom_matrices, runs, hits)
    begin = memory.groups.block_begin
    counts = np.diff(begin)  # blocks of every segment
    of_known = runs[known[bloom_matrices.run_matrix[runs]]]
    filled, asked = (_blocks(bloom_matrices, some, len(counts)) for some in (runs, of_known))
    partly = segments[asked[segments] < counts[segments]]  # the others have all been asked
    unread = (asked[partly] < filled[partly]) | (filled[partly] == 0)
    segment = bloom_matrices.segment[filters.run]
    whole = bloom_matrices.count[filters.run] == counts[segment]
    others = np.flatnonzero(~whole)
    others = others[np.argsort(segment[others], kind="stable")]
    first, last = runs_of(np.diff(segment[others]) != 0, len(others))
    mixed, some_without = segment[others[first]], partly[~unread]
    classes = _size_classes(memory, f, np.concatenate([mixed, some_without]))
    return joined(
        [
            CandidateBlocks((begin[segment] + filters.within)[whole], filters.value[whole]),
            *(
                _placed(memory, bloom_matrices, number, filters.take(others[low : high + 1]), classes)
                for number, low, high in zip(mixed.tolist(), first.tolist(), last.tolist(), strict=True)
            ),
            *(any_value(_without_filter(memory, number, classes)) for number in some_without.tolist()),
            *(any_value(np.arange(begin[number], begin[number + 1])) for number in partly[unread].tolist()),
        ]
    )


def _in_runs(bloom_matrices: BloomMatrices, runs: np.ndarray, hits: Hits) -> _Filters:
    """Return the filters at some columns; columns outside the runs are dropped."""
    first = bloom_matrices.run_matrix[runs] << _HALF | bloom_matrices.begin[runs]
    at = np.searchsorted(first, hits.matrix << _HALF | hits.column, side="right") - 1
    run = runs[at]
    within = hits.column - bloom_matrices.begin[run]
    inside = (at >= 0) & (bloom_matrices.run_matrix[run] == hits.matrix) & (within < bloom_matrices.count[run])
    return _Filters(run[inside], within[inside], hits.value[inside])


def _blocks(bloom_matrices: BloomMatrices, runs: np.ndarray, segments: int) -> np.ndarray:
    """Count the blocks of every segment in some runs: int64 of shape (segments,)."""
    counts = np.zeros(segments, np.int64)
    np.add.at(counts, bloom_matrices.segment[runs], bloom_matrices.count[runs])
    return counts


def _size_classes(memory: IndexMemory, f: int, segments: np.ndarray) -> dict[int, np.ndarray | None]:
    """Return the size classes of the filters of some segments, read together."""
    return dict(zip(segments.tolist(), memory.size_classes(f, segments), strict=True))


def _placed(
    memory: IndexMemory, bloom_matrices: BloomMatrices, segment: int, filters: _Filters, classes: SizeClasses
) -> CandidateBlocks:
    """Return the blocks of some filters of a segment; all of its blocks if its size classes say otherwise."""
    begin, end = memory.groups.block_begin[segment : segment + 2].tolist()
    with memory.faults.tolerated():
        of_segment = readable(classes[segment], memory.groups.names[segment])
        order = np.argsort(of_segment, kind="stable")
        size_class = bloom_matrices.run_size_class[filters.run]
        first, last = (np.searchsorted(of_segment[order], size_class, side) for side in ("left", "right"))
        if not np.array_equal(last - first, bloom_matrices.count[filters.run]):
            raise IndexFault(
                f"{memory.groups.names[segment]}: the size classes of its filters are not those of the snapshot"
            )
        return CandidateBlocks(begin + order[first + filters.within], filters.value)
    return any_value(np.arange(begin, end))


def _without_filter(memory: IndexMemory, segment: int, classes: SizeClasses) -> np.ndarray:
    """Return the blocks of a segment that have no filter; all of them if its size classes are unreadable."""
    begin, end = memory.groups.block_begin[segment : segment + 2].tolist()
    with memory.faults.tolerated():
        return begin + np.flatnonzero(readable(classes[segment], memory.groups.names[segment]) == NONE)
    return np.arange(begin, end)
