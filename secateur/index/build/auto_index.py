"""Choose between zone maps, gaps, postings and bloom filters, column by column, from a sample of blocks.

What matters is how many blocks a look-up reads that do not hold the value. So the values of a sampled block are looked
up in the others: how many hold them, and the bounds of how many contain them. The size of every structure follows from
the distinct values per block and how often they recur.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.index.filters.bloom import bits_for
from secateur.index.filters.hashing import hash_binaries, hash_words
from secateur.index.filters.postings import size_of_bitmaps, size_of_pairs
from secateur.index.model import BLOOM, POSTINGS, Choice
from secateur.index.zones.gaps import MOST_GAPS, gap_table, spared, widest_gaps
from secateur.values.combination import concatenate
from secateur.values.conversion import keys_of
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

SAMPLED_BLOCKS = 24
SAMPLED_VALUES = 256  # per block: those with the least hashes, so that blocks can be compared
NEARLY = (
    0.02  # share of all blocks that gaps may leave in addition: they serve ranges too, and are smaller than filters
)
ENOUGH = 2.0  # a structure is good enough if it leaves at most this many times the blocks that hold a value
EVERYWHERE = 0.5  # share of blocks that hold a value, above which nothing can be ruled out
MOST_BYTES = 64  # bytes of a string that are compared
ZONE_MAP, GAPS = "zone map", "gaps"


@dataclass(frozen=True)
class ColumnSample:
    """One column of one block: some of its distinct values by hash, its bounds, and its gaps."""

    distinct: int
    hashes: np.ndarray  # uint64, ascending
    keys: Keys  # of these values, then the least and the greatest of all
    gaps: np.ndarray  # int64 of shape (2, g): low and high ends


def sample_of(values: pa.Array) -> ColumnSample | None:
    """Sample a block's values of an ordered column; None if all are NULL."""
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        values = pc.binary_slice(values.cast(pa.binary()), 0, MOST_BYTES)
    distinct = pc.unique(values.drop_null())
    if not len(distinct):
        return None
    keys = keys_of(distinct)
    order = np.lexsort(tuple(reversed(keys.words)))
    hashes = _hashes(distinct, keys)
    chosen = np.argsort(hashes)[:SAMPLED_VALUES]
    gaps = widest_gaps(distinct, MOST_GAPS) if keys.kind is Kind.WORD else (np.zeros(0, np.int64),) * 2
    return ColumnSample(len(keys), hashes[chosen], keys.take(np.append(chosen, order[[0, -1]])), np.stack(gaps))


def _hashes(distinct: pa.Array, keys: Keys) -> np.ndarray:
    """Return a hash of every value, in order."""
    if keys.kind is Kind.BYTES:
        return hash_binaries(distinct)
    return hash_words(keys.words[-1].view(np.uint64))


def choose(column: str, samples: Sequence[ColumnSample], blocks: int, segment_blocks: int, fpr: float) -> Choice:
    """Choose what serves look-ups by value in a column of a table of `blocks` blocks; at least one sample."""
    by_bounds, holders = _bounded(samples), holders_of_a_value(samples, blocks)
    bounded = max(holders, 1 + (blocks - 1) * by_bounds)
    sizes = sizes_of(samples, holders, blocks, segment_blocks, fpr)
    after_gaps = max(holders, 1 + (blocks - 1) * _left_by_gaps(samples, by_bounds))
    value = f"of {blocks:,} blocks about {holders:,.0f} hold a value"
    if bounded <= ENOUGH * holders:
        return Choice(column, ZONE_MAP, f"{value}, and bounds leave {bounded:,.0f}", sizes)
    if holders > EVERYWHERE * blocks:
        return Choice(column, ZONE_MAP, f"{value}: too many for anything to be ruled out", sizes)
    if GAPS in sizes and after_gaps <= ENOUGH * holders + NEARLY * blocks:
        return Choice(column, GAPS, f"{value}; bounds leave {bounded:,.0f}, gaps {after_gaps:,.0f}", sizes)
    best = min((BLOOM, POSTINGS), key=sizes.__getitem__)
    other = POSTINGS if best == BLOOM else BLOOM
    why = f"{value}, bounds leave {bounded:,.0f}; {other} would take {sizes[other] / sizes[best]:.1f} times as much"
    return Choice(column, best, why, sizes)


def holders_of_a_value(samples: Sequence[ColumnSample], blocks: int) -> float:
    """Estimate how many of `blocks` blocks hold a value that one of them holds; at least one sample."""
    return 1 + (blocks - 1) * _shared(samples)


def sizes_of(
    samples: Sequence[ColumnSample], holders: float, blocks: int, segment_blocks: int, fpr: float
) -> dict[str, int]:
    """Return the bytes of every structure for look-ups by value; gaps only for columns that can have them.

    `holders` is the number of blocks that hold a value.
    """
    distinct = float(np.mean([sample.distinct for sample in samples]))
    sizes = _sizes(distinct, holders, blocks, segment_blocks, fpr)
    if samples[0].keys.kind is not Kind.WORD:
        del sizes[GAPS]
    return sizes


def _shared(samples: Sequence[ColumnSample]) -> float:
    """Estimate the share of other blocks that hold a value, from the values with the least hashes of both."""
    shares = []
    for i, sample in enumerate(samples):
        for j, other in enumerate(samples):
            if i != j:
                least = min(_reach(sample), _reach(other))
                hashes = sample.hashes[sample.hashes <= least]
                shares.append(float(np.isin(hashes, other.hashes).mean()) if len(hashes) else 0.0)
    return float(np.mean(shares)) if shares else 0.0


def _reach(sample: ColumnSample) -> int:
    """Return the hash up to which a sample has all values of its block."""
    return int(sample.hashes[-1]) if sample.distinct > len(sample.hashes) else 2**64 - 1


def _bounded(samples: Sequence[ColumnSample]) -> float:
    """Return the share of other blocks whose bounds contain a value."""
    ranks = _ranks([sample.keys for sample in samples])
    lower, upper = (np.array([rank[end] for rank in ranks]) for end in (-2, -1))
    shares = []
    for i, rank in enumerate(ranks):
        others = np.arange(len(samples)) != i
        inside = (rank[:-2, None] >= lower[others]) & (rank[:-2, None] <= upper[others])
        shares.append(float(inside.mean()) if inside.size else 0.0)
    return float(np.mean(shares))


def _ranks(parts: Sequence[Keys]) -> list[np.ndarray]:
    """Return the ranks of the keys of all parts; equal keys have equal ranks."""
    whole = concatenate(parts)
    order = np.lexsort(tuple(reversed(whole.words)))
    ordered = whole.take(order)
    steps = np.logical_or.reduce([word[1:] != word[:-1] for word in ordered.words])
    ranks = np.empty(len(whole), np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(steps)])
    return np.split(ranks, np.cumsum([len(part) for part in parts])[:-1])


def _left_by_gaps(samples: Sequence[ColumnSample], by_bounds: float) -> float:
    """Return the share of other blocks that gaps leave, given the share that bounds leave.

    Gaps spare a share of all blocks that bounds leave, including the value's own block, which always stays.
    """
    others = len(samples) - 1
    left = (1 + others * by_bounds) * (1 - _spared(samples))
    return max(0.0, left - 1) / others if others else 0.0


def _spared(samples: Sequence[ColumnSample]) -> float:
    """Return the share of blocks that gaps rule out, among those that bounds leave."""
    if samples[0].keys.kind is not Kind.WORD or not any(sample.gaps.size for sample in samples):
        return 0.0
    table = gap_table([(sample.gaps[0], sample.gaps[1]) for sample in samples], MOST_GAPS)
    lower, upper = (np.array([sample.keys.words[0][end] for sample in samples]) for end in (-2, -1))
    return spared(table, lower, upper)


def _sizes(distinct: float, holders: float, blocks: int, segment_blocks: int, fpr: float) -> dict[str, int]:
    """Return the bytes of every structure."""
    size = min(segment_blocks, blocks)
    pairs = distinct * size
    values = pairs / (1 + (size - 1) * max(holders - 1, 0) / max(blocks - 1, 1))
    postings = min(size_of_bitmaps(int(values), size), size_of_pairs(int(pairs), size))
    bloom = blocks * bits_for(int(distinct), fpr) // 8
    return {BLOOM: bloom, POSTINGS: postings * blocks // size, GAPS: 16 * MOST_GAPS * blocks}
