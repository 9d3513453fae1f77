"""Filters of tables that are all index: fragments of many small blocks at once, laid side by side in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from secateur.index.filters import transpose
from secateur.index.filters.bloom import positions, probes_for, shape_for
from secateur.index.filters.bloom_fragment import FOLDER, BloomFragmentWriter
from secateur.index.filters.bloom_matrix import FEWER, OWN, BloomMatrices
from secateur.index.filters.hashing import Hashes, hash_keys
from secateur.index.filters.transpose import MatrixPlan, PartPlan
from secateur.index.model import Store
from secateur.index.segments.segment_table import SegmentSummary
from secateur.values import Kind

AT_ONCE = 1 << 25  # bits in memory, each in a byte


def add_keys(writer: BloomFragmentWriter, keys: np.ndarray) -> None:
    """The filters of blocks with few keys each, int64 of shape (n_blocks, n_keys): as ``writer.add`` makes them.

    That takes 50 microseconds per block; this takes a tenth.
    """
    full = probes_for(writer.fpr)
    ordered = np.sort(keys, axis=1)
    distinct = 1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1)
    shape_of = {count: shape_for(count, writer.fpr) for count in np.unique(distinct).tolist()}
    shapes = [shape_of[count] for count in distinct.tolist()]
    step = max(1, AT_ONCE >> max((log2_bits for _, log2_bits in shapes), default=0))
    for start in range(0, len(keys), step):
        mine = shapes[start : start + step]
        bits = {shape: _bits(keys[start : start + step], *shape) for shape in dict.fromkeys(mine)}
        for block, (probes, log2_bits) in enumerate(mine):
            writer.add_bits(OWN if probes == full else FEWER, bits[probes, log2_bits][block])


def _bits(keys: np.ndarray, probes: int, log2_bits: int) -> np.ndarray:
    """Filters of one size: uint8 of shape (n_blocks, bits), 0 or 1."""
    n, count = keys.shape
    hashes = _hashes(keys.reshape(-1))
    found = np.zeros((n, 1 << log2_bits), np.uint8)
    found[np.repeat(np.arange(n), count)[:, None], positions(hashes, probes, log2_bits)] = 1
    return found


def _hashes(keys: np.ndarray) -> Hashes:
    return hash_keys(keys, Kind.WORD)  # type: ignore[arg-type]


def lay_fragments(
    store: Store, summaries: Sequence[SegmentSummary], rates: Sequence[float]
) -> dict[int, BloomMatrices]:
    """Run the third pass of a build: merge the fragments of all segments, by filter with its false-positive rate.

    The fragments are removed.
    """
    found = {}
    for f, rate in enumerate(rates):
        matrices = transpose.plan_matrices([summary.fragments.get(f, ()) for summary in summaries])
        files = []
        for i, parts in enumerate(transpose.plan_files(matrices)):
            name = f"{transpose.FOLDER}/000000000000-{f:03d}{i:06d}.filter"
            files.append((parts, transpose.write_file(store, name, parts, partial(_rows_of, store, matrices))))
        if matrices:
            found[f] = transpose.written_matrices(matrices, rate, files)
    for file in store.files(FOLDER):
        store.delete(file.name)
    return found


def _rows_of(store: Store, matrices: Sequence[MatrixPlan], part: PartPlan) -> np.ndarray:
    return transpose.interleaved(store, matrices[part.matrix], part)
