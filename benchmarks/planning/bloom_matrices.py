"""Filters of tables that are only an index: fragments of many small blocks at once, merged in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from secateur.index.filters import transpose
from secateur.index.filters.bloom import positions, probes_for, section_bits
from secateur.index.filters.bloom_fragment import FOLDER, BloomFragmentWriter
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.hashing import hash_words
from secateur.index.filters.size_class import own_class
from secateur.index.filters.transpose import MatrixPlan, PartPlan
from secateur.index.model import Store
from secateur.index.segments.segment_table import SegmentSummary

AT_ONCE = 1 << 25  # bits in memory, each in a byte


def add_keys(writer: BloomFragmentWriter, keys: np.ndarray) -> None:
    """Add the filters of blocks with few keys each: int64 of shape (n_blocks, n_keys).

    ``writer.add`` makes the same in 50 microseconds per block; this takes a tenth.
    """
    probes = probes_for(writer.fpr)
    ordered = np.sort(keys, axis=1)
    distinct = 1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1)
    sizes = list(map(writer.size_of, distinct.tolist()))
    step = max(1, AT_ONCE // max((probes * section_bits(size) for size in sizes), default=1))
    for start in range(0, len(keys), step):
        batch = sizes[start : start + step]
        bits = {
            size: _bits(keys[start : start + step], probes, probes * section_bits(size))
            for size in dict.fromkeys(batch)
        }
        for block, size in enumerate(batch):
            writer.add_bits(own_class(probes, size), bits[size][block])


def _bits(keys: np.ndarray, probes: int, bits: int) -> np.ndarray:
    """Filters of one size: uint8 of shape (n_blocks, bits), 0 or 1."""
    n, count = keys.shape
    hashes = hash_words(keys.reshape(-1).view(np.uint64))
    filters = np.zeros((n, bits), np.uint8)
    filters[np.repeat(np.arange(n), count)[:, None], positions(hashes, probes, bits)] = 1
    return filters


def lay_fragments(store: Store, summaries: Sequence[SegmentSummary], filters: int) -> dict[int, BloomMatrices]:
    """Run the third pass of a build: merge the fragments of all segments, filter by filter.

    The fragments are removed.
    """
    bloom_matrices = {}
    for f in range(filters):
        matrices = transpose.plan_matrices([summary.fragments.get(f, ()) for summary in summaries])
        files = []
        for i, parts in enumerate(transpose.plan_files(matrices)):
            name = f"{transpose.FOLDER}/000000000000-{f:03d}{i:06d}.filter"
            files.append((parts, transpose.write_file(store, name, parts, partial(_rows_of, store, matrices))))
        if matrices:
            bloom_matrices[f] = transpose.written_matrices(matrices, files)
    for file in store.files(FOLDER):
        store.delete(file.name)
    return bloom_matrices


def _rows_of(store: Store, matrices: Sequence[MatrixPlan], part: PartPlan) -> np.ndarray:
    return transpose.interleaved(store, matrices[part.matrix], part)
