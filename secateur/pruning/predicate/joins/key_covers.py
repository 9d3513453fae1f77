"""Cover many keys by few intervals: the widest gaps between the keys are kept, the others filled.

Sound: every key lies in an interval. Intervals cover intervals too, so parts of the keys are covered one by one, and
then their covers together.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags, from_numpy, truths
from secateur.pruning.bounds import rangeset
from secateur.pruning.rows.row_values import values_of
from secateur.values.conversion import keys_of
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, ordered_kind

Intervals: TypeAlias = tuple[pa.Array, pa.Array]  # the first and the last value of each
WIDTH = 8  # bytes by which the gaps between byte strings are compared


def covering(first: pa.Array, last: pa.Array, most: int) -> Intervals:
    """Return at most `most` intervals that hold some intervals, which lie in any order, and may overlap. None is NULL.

    Those returned ascend and do not overlap.
    """
    type_ = first.type
    if not len(first):
        return first, last
    if ordered_kind(type_) is Kind.WORD:
        spans = rangeset.integer_spans(keys_of(first).words[0], keys_of(last).words[0])
        least, greatest = (Keys(Kind.WORD, (words,)) for words in rangeset.covering(spans, most))
        present = np.ones(len(least), bool)
        return values_of(least, type_, present), values_of(greatest, type_, present)
    both = pa.concat_arrays([first, last])
    order = _order(both)
    ordered = both.take(from_numpy(order))
    plain = _plain(ordered)
    is_new = np.append(True, truths(pc.not_equal(plain[1:], plain[:-1])))
    rank = np.empty(len(both), np.int64)
    rank[order] = np.cumsum(is_new) - 1
    distinct = ordered.filter(flags(is_new))
    starts, stops = _united(rank[: len(first)], rank[len(first) :])
    if len(starts) > most:
        place = _places(distinct)
        starts, stops = _filled(starts, stops, place[starts[1:]] - place[stops[:-1]], most)
    return distinct.take(from_numpy(starts)), distinct.take(from_numpy(stops))


def _united(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the union of intervals of ranks, ascending."""
    order = np.argsort(first, kind="stable")
    first, reached = first[order], np.maximum.accumulate(last[order])
    apart = first[1:] > reached[:-1]
    return first[np.append(True, apart)], reached[np.append(apart, True)]


def _filled(starts: np.ndarray, stops: np.ndarray, widths: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Fill all but the widest gaps between ascending intervals."""
    kept = np.sort(np.argsort(widths, kind="stable")[len(widths) - most + 1 :])
    return starts[np.append(0, kept + 1)], stops[np.append(kept, len(starts) - 1)]


def _plain(values: pa.Array) -> pa.Array:
    """Return texts as their bytes, which need not be UTF-8."""
    return values.cast(pa.large_binary()) if ordered_kind(values.type) is Kind.BYTES else values


def _order(values: pa.Array) -> np.ndarray:
    """Return the positions of values in their order."""
    if ordered_kind(values.type) is Kind.BYTES:
        return pc.array_sort_indices(_plain(values)).to_numpy().astype(np.int64)
    return np.lexsort(keys_of(values).words[::-1])


def _places(ordered: pa.Array) -> np.ndarray:
    """Return numbers that ascend as values do, or are equal: of bytes, those after what all begin with in common."""
    if ordered_kind(ordered.type) is Kind.WIDE:
        high, low = keys_of(ordered).words
        return high.astype(np.float64) * 2.0**64 + low.astype(np.float64)
    plain = _plain(ordered)
    least, greatest = plain[0].as_py(), plain[len(plain) - 1].as_py()
    common = next((i for i, pair in enumerate(zip(least, greatest, strict=False)) if pair[0] != pair[1]), len(least))
    rest = pc.binary_slice(plain, common, common + WIDTH)
    return keys_of(rest.cast(pa.binary())).words[0].view(np.uint64)
