"""Look up which blocks may hold what a predicate asks for, by filters and postings.

The answer is ascending block numbers. It includes unknown blocks: those of segments without the filter, those skipped
when it was built, and those with an unreadable filter.

Several values are looked up separately: a block is ruled out if every value its filter may hold lies outside its zone
map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from secateur.index.filters import parquet_bloom
from secateur.index.filters.hashing import hash_keys
from secateur.index.filters.ngrams import grams_within, hash_parts, token_key
from secateur.index.filters.postings import blocks_with
from secateur.index.filters.probe import ANY
from secateur.index.model import BLOOM, NGRAM, ORDERED, POSTINGS, TOKEN, Filter
from secateur.index.read.bloom_lookup import CandidateBlocks, any_value, blocks_in_matrices
from secateur.index.read.loader import IndexMemory
from secateur.index.read.matrix_columns import AskedHashes
from secateur.index.read.ordered_lookup import blocks_within
from secateur.index.read.posting_rows import posting_rows
from secateur.index.segments.segment_file import StoredPostings
from secateur.integers import distinct_and_places, in_all
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.patterns.substrings import Substring, fold, tokens_within
from secateur.pruning.questions import FilterHits, Question, Ranges, Texts, Values
from secateur.values.keys import keys_from
from secateur.values.kinds import Kind, kind_of, ordered_kind, same_keys

MOST_PARTS = 64  # grams or tokens looked up per alternative: this many rule out about as much as all would

ZonesOf = Callable[[np.ndarray], Zones | None]  # zone maps of the question's column at blocks with these numbers


def nothing_known(numbers: np.ndarray) -> None:
    """Return None: no block has known zone maps."""


def holders(
    memory: IndexMemory, question: Question, segments: np.ndarray, zones_of: ZonesOf = nothing_known
) -> np.ndarray | None:
    """Return the blocks of some segments, ascending, that may hold a match; None where no filter answers."""
    return in_all([answer.numbers for answer in answers(memory, question, segments, zones_of)])


def answers(
    memory: IndexMemory, question: Question, segments: np.ndarray, zones_of: ZonesOf = nothing_known
) -> list[FilterHits]:
    """Return one answer per filter that covers any of `segments`."""
    match question:
        case Values():
            asked = [_value_filter(memory, question)]
        case Texts():
            asked = list(_text_filters(memory, question))
        case Ranges():
            within = blocks_within(memory, question, segments)
            return [] if within is None else [FilterHits(ORDERED, within)]
    hits = [(f, _asked(memory, f, question, segments)) for f in asked if f is not None]
    return [
        FilterHits(memory.snapshot.filters[f].kind, _within_zones(candidates, question, zones_of))
        for f, candidates in hits
        if candidates is not None
    ]


def _asked(memory: IndexMemory, f: int, question: Values | Texts, segments: np.ndarray) -> CandidateBlocks | None:
    match question:
        case Values():
            return _with_values(memory, f, question, segments)
        case Texts():
            return _with_texts(memory, f, question, segments)


def _within_zones(candidates: CandidateBlocks, question: Values | Texts, zones_of: ZonesOf) -> np.ndarray:
    """Keep the blocks whose zone maps may hold a value that their filters may hold.

    Sound: a row with one of the values lies in a block where neither structure denies that value.
    """
    known = np.flatnonzero(candidates.value != ANY)
    kind = kind_of(question.column.type)
    if not len(known) or question.points is None or kind is None:
        return distinct(candidates.numbers)
    blocks, unit = distinct_and_places(candidates.numbers[known])
    zones = zones_of(blocks)
    if zones is None:
        return distinct(candidates.numbers)
    width = max(zones.lower.width, zones.upper.width) if kind is Kind.BYTES else 0
    keys = keys_from(kind, question.points.tolist(), width).take(candidates.value[known])
    left = np.ones(len(candidates.numbers), bool)
    left[known] = zones.take(unit).may_hold(keys)
    return distinct(candidates.numbers[left])


def distinct(numbers: np.ndarray) -> np.ndarray:
    """Remove duplicates from ascending numbers."""
    return numbers[np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]]


# ---- values ----------------------------------------------------------------------------------------------------------


def _value_filter(memory: IndexMemory, question: Values) -> int | None:
    """Return the postings, which are exact, or else the bloom filter."""
    number_of = {
        filter_.kind: f
        for f, filter_ in enumerate(memory.snapshot.filters)
        if filter_.path == question.column.path and same_keys(filter_.type, question.type)
    }
    return number_of.get(POSTINGS, number_of.get(BLOOM))


def _with_values(memory: IndexMemory, f: int, question: Values, segments: np.ndarray) -> CandidateBlocks | None:
    kind = ordered_kind(question.type)
    keys = question.points.tolist()
    hashes = hash_keys(keys, kind)
    if memory.snapshot.filters[f].kind == POSTINGS:
        exact = _in_postings(memory, f, hashes, segments)
        return None if exact is None else any_value(exact)

    def hashes_of(encoding: int | None) -> AskedHashes | None:
        if encoding is None:
            return AskedHashes(hashes[:, None], np.arange(len(keys)))
        forms = [parquet_bloom.hashes_of(key, question.type, parquet_bloom.encoding_of_code(encoding)) for key in keys]
        known = [form for form in forms if form is not None]
        if len(known) < len(forms):
            return None
        native = np.array(list(chain.from_iterable(known)), np.uint64)
        return AskedHashes(native[:, None], np.repeat(np.arange(len(known)), [len(form) for form in known]))

    return blocks_in_matrices(memory, f, hashes_of, segments)


# ---- texts -----------------------------------------------------------------------------------------------------------


def _text_filters(memory: IndexMemory, question: Texts) -> Iterator[int]:
    """Yield the text filters that can answer; a filter of folded texts also serves unfolded questions."""
    for f, filter_ in enumerate(memory.snapshot.filters):
        if (
            filter_.path == question.column.path
            and filter_.kind in (NGRAM, TOKEN)
            and (filter_.folded or not question.folded)
        ):
            yield f


def _with_texts(memory: IndexMemory, f: int, question: Texts, segments: np.ndarray) -> CandidateBlocks | None:
    filter_ = memory.snapshot.filters[f]
    parts = [parts_to_look_up(filter_, alternative, question.tokens) for alternative in question.alternatives]
    if not all(parts):
        return None
    most = max(map(len, parts), default=1)
    same = [[*keys, *[keys[0]] * (most - len(keys))] for keys in parts]  # to ask the same twice changes no answer
    hashes = hash_parts(list(chain.from_iterable(same)), grams=filter_.kind == NGRAM).reshape(len(parts), most)
    asked = AskedHashes(hashes, np.arange(len(parts)))
    return blocks_in_matrices(memory, f, lambda _: asked, segments)


def parts_to_look_up(filter_: Filter, substrings: Sequence[Substring], tokens: Sequence[bytes]) -> list[bytes]:
    """Return the hashed parts of every text that holds some substrings and tokens; empty where the filter cannot
    answer.

    A long text is sampled evenly: each part is necessary by itself, so dropping some stays sound.
    """
    if filter_.kind == NGRAM:
        texts = [*(substring.text for substring in substrings), *tokens]
        parts = [gram for text in texts for gram in grams_within(fold(text) if filter_.folded else text, filter_.gram)]
    else:
        whole = [*(token for substring in substrings for token in tokens_within(substring)), *tokens]
        parts = [token_key(fold(token) if filter_.folded else token) for token in whole]
    distinct = list(dict.fromkeys(parts))
    return distinct[:: -(-len(distinct) // MOST_PARTS) or 1]


# ---- postings --------------------------------------------------------------------------------------------------------


def _in_postings(memory: IndexMemory, f: int, hashes: np.ndarray, segments: np.ndarray) -> np.ndarray | None:
    """Return the blocks that hold a value with one of the hashes, segment by segment."""
    tables = memory.postings(f, segments)
    if all(table is None for table in tables):
        return None

    def numbers(pair: tuple[int, StoredPostings | None]) -> np.ndarray:
        segment, table = pair
        begin, end = memory.groups.block_begin[segment : segment + 2].tolist()
        with memory.faults.tolerated():
            if table is not None:
                return begin + np.flatnonzero(_probed(memory, segment, table, hashes))
        return np.arange(begin, end)

    pairs = list(zip(segments.tolist(), tables, strict=True))
    return np.concatenate([np.zeros(0, np.int64), *memory.chunks.concurrently(numbers, pairs)])


def _probed(memory: IndexMemory, segment: int, stored: StoredPostings, hashes: np.ndarray) -> np.ndarray:
    name = memory.groups.names[segment]
    return blocks_with(stored.table, hashes, posting_rows(memory, name, stored), f"{name}: postings")
