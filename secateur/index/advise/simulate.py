"""Simulate a missing filter or gap list on sampled blocks, built from their values and probed.

A trial compares the hashes themselves, so it has no false positives; those are added from a filter's rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from statistics import fmean

import numpy as np
import pyarrow as pa

from secateur.index.advise.candidates import Offer, filter_of, serves
from secateur.index.build.assemble import NGRAM_FPR
from secateur.index.build.auto_index import SAMPLED_BLOCKS, ColumnSample, holders_of_a_value, sample_of, sizes_of
from secateur.index.build.column_sketch import add_hashes, elements
from secateur.index.build.survey import segment_size
from secateur.index.filters.bloom import bits_for, rate_for
from secateur.index.filters.hashing import DistinctHashes, hash_keys
from secateur.index.filters.ngrams import hash_parts
from secateur.index.filters.ordered import PAGE
from secateur.index.model import BLOOM, NGRAM, ORDERED, POSTINGS, TOKEN
from secateur.index.read.lookup import parts_to_look_up
from secateur.index.read.ordered_lookup import LEAST_PAGES, MOST_SHARE
from secateur.index.zones.gaps import MOST_GAPS, gap_table, pays
from secateur.index.zones.gaps import Gaps as BlockGaps
from secateur.pruning.bounds.zones import Gaps
from secateur.pruning.predicate.bound import Leaf
from secateur.pruning.questions import Question, Ranges, Texts, Values, questions
from secateur.values.conversion import keys_of
from secateur.values.kinds import Kind, ordered_kind

ENTRY_BYTES = 7  # of ordered postings, measured of random doubles; other values take 3 to 7


@dataclass(frozen=True)
class SimulatedFilter:
    """What one filter over one block would answer."""

    count: int | None  # distinct hashes, or values that have an entry; None if there are too many for a filter
    may_hold: Mapping[Leaf, bool]  # by leaf: whether the block may hold what it asks for
    hits: Mapping[Leaf, int] = field(default_factory=dict)  # entries of ordered postings that it asks for


def simulated_filter(offer: Offer, asked: Sequence[Leaf], values: pa.Array) -> SimulatedFilter:
    """Simulate a filter over a block's values for some leaves that it serves, at least one."""
    of_leaf = {leaf: [question for question in questions(leaf) if serves(offer.option, question)] for leaf in asked}
    if offer.option.kind == ORDERED:
        return _simulated_postings(of_leaf, elements(values))
    distinct = DistinctHashes()
    add_hashes(filter_of(offer.option, of_leaf[asked[0]][0]), elements(values), distinct)
    hashes = distinct.distinct()
    if hashes is None:
        return SimulatedFilter(None, dict.fromkeys(asked, True))
    return SimulatedFilter(
        len(hashes),
        {
            leaf: all(_may_hold(offer, question, hashes) for question in asked_questions)
            for leaf, asked_questions in of_leaf.items()
        },
    )


def _simulated_postings(asked: Mapping[Leaf, Sequence[Question]], values: pa.Array) -> SimulatedFilter:
    """Simulate ordered postings over a block's values."""
    known = values.drop_null()
    keys = keys_of(known)
    hits = {
        leaf: min(int(question.ranges.contains(keys).sum()) for question in of_leaf if isinstance(question, Ranges))
        for leaf, of_leaf in asked.items()
    }
    return SimulatedFilter(len(known), {leaf: count > 0 for leaf, count in hits.items()}, hits)


def are_too_many(simulated: Sequence[SimulatedFilter], leaf: Leaf, blocks: int) -> bool:
    """Whether ordered postings of a table leave a leaf to bounds, as its ranges hold so many of their entries.

    Parameters
    ----------
    simulated
        Those of the sampled blocks.
    blocks
        In the table.
    """
    entries = sum(one.count or 0 for one in simulated)
    share = sum(one.hits[leaf] for one in simulated) / max(entries, 1)
    pages = entries / len(simulated) * min(segment_size(blocks), blocks) / PAGE
    return share > MOST_SHARE and share * pages > LEAST_PAGES


def _may_hold(offer: Offer, question: Question, hashes: np.ndarray) -> bool:
    if isinstance(question, Ranges):  # ordered postings alone serve them
        return True
    if isinstance(question, Values):
        kind = ordered_kind(question.type)
        return bool(_is_in(hash_keys(question.points.tolist(), kind), hashes).any())
    filter_ = filter_of(offer.option, question)
    parts = (parts_to_look_up(filter_, alternative, question.tokens) for alternative in question.alternatives)
    return any(bool(_is_in(hash_parts(keys, grams=filter_.kind == NGRAM), hashes).all()) for keys in parts)


def _is_in(asked: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Mark which of a few hashes are among many: bool, for the distinct hashes asked for."""
    asked = np.unique(asked)
    at = np.minimum(np.searchsorted(asked, hashes), len(asked) - 1)
    is_in = np.zeros(len(asked), bool)
    is_in[at[asked[at] == hashes]] = True
    return is_in


def false_positives(offer: Offer, leaf: Leaf, blocks: int) -> float:
    """Return the share of blocks that the filter keeps wrongly."""
    if offer.option.kind not in (BLOOM, NGRAM, TOKEN):
        return 0.0
    asked = [question for question in questions(leaf) if serves(offer.option, question)]
    return min((_kept_wrongly(offer, question, _rate(offer, blocks)) for question in asked), default=0.0)


def _kept_wrongly(offer: Offer, question: Question, rate: float) -> float:
    """Return the share of blocks whose filter wrongly has some value, or all grams or tokens of some text."""
    if isinstance(question, Values):
        return min(1.0, len(question.points) * rate)
    assert isinstance(question, Texts), "filters with a rate serve no other"
    filter_ = filter_of(offer.option, question)
    parts = (parts_to_look_up(filter_, alternative, question.tokens) for alternative in question.alternatives)
    return min(1.0, sum(rate ** len(keys) for keys in parts))


def _rate(offer: Offer, blocks: int) -> float:
    """Return the rate of a filter that is built without one."""
    return NGRAM_FPR if offer.option.kind == NGRAM else rate_for(blocks, None)


# ---- properties of a column ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sampled:
    """A column over the sampled blocks of a whole table."""

    samples: Sequence[ColumnSample]  # of the blocks that hold values
    blocks: int  # in the table

    @cached_property
    def typical(self) -> float | None:
        """Estimated number of blocks that hold a given value of the table; None where no value was found."""
        some = self.samples[:: -(-len(self.samples) // SAMPLED_BLOCKS) or 1]
        return holders_of_a_value(some, self.blocks) if some else None

    @property
    def postings_bytes(self) -> int:
        """The bytes that postings of the column would take."""
        if self.typical is None:
            return 0
        rate = rate_for(self.blocks, None)
        return sizes_of(self.samples, self.typical, self.blocks, segment_size(self.blocks), rate)[POSTINGS]

    @property
    def gap_bytes(self) -> int:
        """The bytes that gaps of the column would take: both ends of as many as sampled blocks have."""
        ends = [2 * 8 * sample.gaps.shape[1] for sample in self.samples]
        return ceil(self.blocks * fmean(ends)) if ends else 0

    @cached_property
    def has_gaps(self) -> bool:
        """Whether a build would keep its gaps, that is whether they are worth their bytes."""
        if not self.samples or self.samples[0].keys.kind is not Kind.WORD:
            return False
        table = gap_table([gaps_of(sample) for sample in self.samples], MOST_GAPS)
        lower, upper = (np.array([sample.keys.words[0][end] for sample in self.samples]) for end in (-2, -1))
        return pays(table, lower, upper)


def gaps_of(sample: ColumnSample) -> BlockGaps:
    """Return the gaps of a block."""
    return sample.gaps[0], sample.gaps[1]


def sample_of_column(values: pa.Array) -> ColumnSample | None:
    """Sample a block's values, an array's elements or a map's keys; None if there are none."""
    return sample_of(elements(values))


def bytes_of(offer: Offer, column: Sampled, filters: Sequence[SimulatedFilter]) -> int:
    """Return the bytes of a filter in the index, extrapolated from the sampled blocks."""
    if offer.option.kind == POSTINGS:
        return column.postings_bytes
    if offer.option.kind == ORDERED:
        return ceil(column.blocks * fmean(one.count or 0 for one in filters) * ENTRY_BYTES) if filters else 0
    rate = _rate(offer, column.blocks)
    bits = sum(bits_for(simulated.count, rate) for simulated in filters if simulated.count)
    return ceil(column.blocks * bits / 8 / len(filters)) if filters else 0


# ---- gaps ------------------------------------------------------------------------------------------------------------


def gaps_over(blocks: Sequence[BlockGaps | None]) -> Gaps:
    """Return the gaps of some blocks as zone maps hold them; None for a block without values."""
    table = gap_table(blocks, MOST_GAPS)
    return table.low, table.high
