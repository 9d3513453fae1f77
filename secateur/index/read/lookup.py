"""Look up which blocks may hold what a predicate asks for, by filters and postings.

The answer is ascending block numbers. It includes unknown blocks: those of segments without the filter, those skipped
when it was built, and those with an unreadable filter.

Several values are looked up separately: a block is ruled out if every value its filter may hold lies outside its zone
map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from secateur.errors import IndexFault
from secateur.index.filters import parquet_bloom
from secateur.index.filters.bloom import positions
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.hashing import hash_keys
from secateur.index.filters.ngrams import grams_within, hash_parts, token_key
from secateur.index.filters.postings import blocks_with
from secateur.index.filters.probe import ANY, Alternatives, ReadFile, columns_by_alternative, columns_with
from secateur.index.filters.size_class import NONE, FilterShape, shape_of
from secateur.index.model import BLOOM, NGRAM, ORDERED, POSTINGS, TOKEN, Filter
from secateur.index.read.loader import IndexMemory
from secateur.index.read.ordered_lookup import blocks_within
from secateur.index.read.posting_rows import posting_rows
from secateur.index.segments.segment_file import StoredPostings
from secateur.integers import distinct_and_places, in_all, sorted_distinct
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.patterns.substrings import Substring, fold, tokens_within
from secateur.pruning.questions import FilterHits, Question, Ranges, Texts, Values
from secateur.values.keys import keys_from
from secateur.values.kinds import Kind, kind_of, ordered_kind, same_keys

MOST_PARTS = 64  # grams or tokens looked up per alternative: this many rule out about as much as all would
_NOTHING = np.zeros(0, np.int64)


class AskedRows(NamedTuple):
    """Matrix rows that must all be set for a value, and the value of each such alternative."""

    alternatives: Alternatives
    value: np.ndarray


RowsOf = Callable[[FilterShape], AskedRows | None]  # of filters -> rows; None: all pass
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


@dataclass(frozen=True)
class CandidateBlocks:
    """Blocks that may hold one of several values, ascending, one entry per value; `value` is its position, or ANY."""

    numbers: np.ndarray
    value: np.ndarray


def _any_value(numbers: np.ndarray) -> CandidateBlocks:
    return CandidateBlocks(numbers, np.full(len(numbers), ANY))


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
        return None if exact is None else _any_value(exact)

    @cache
    def native_hashes(encoding: int) -> tuple[np.ndarray, np.ndarray] | None:
        forms = [parquet_bloom.hashes_of(key, question.type, parquet_bloom.encoding_of_code(encoding)) for key in keys]
        known = [form for form in forms if form is not None]
        values = np.repeat(np.arange(len(known)), [len(form) for form in known])
        return (np.array(list(chain.from_iterable(known)), np.uint64), values) if len(known) == len(forms) else None

    def rows_of(shape: FilterShape) -> AskedRows | None:
        if shape.encoding is None:
            return AskedRows(positions(hashes, shape.probes, shape.bits), np.arange(len(keys)))
        native = native_hashes(shape.encoding)
        return None if native is None else AskedRows(parquet_bloom.positions(native[0], shape.bits), native[1])

    return _in_bloom_matrices(memory, f, rows_of, segments)


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
    hashes = [hash_parts(keys, grams=filter_.kind == NGRAM) for keys in parts]

    def rows_of(shape: FilterShape) -> AskedRows:
        rows = [sorted_distinct(positions(of_text, shape.probes, shape.bits).ravel()) for of_text in hashes]
        return AskedRows(rows, np.arange(len(rows)))

    return _in_bloom_matrices(memory, f, rows_of, segments)


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


# ---- bloom matrices --------------------------------------------------------------------------------------------------


def _in_bloom_matrices(memory: IndexMemory, f: int, rows_of: RowsOf, segments: np.ndarray) -> CandidateBlocks | None:
    """Return the blocks whose filters have all bits of some alternative."""
    bloom_matrices = memory.bloom_matrices(f)
    if bloom_matrices is None:
        return None
    wanted = np.zeros(len(memory.groups.names) + 1, bool)  # the last entry is for runs without a segment
    wanted[segments] = True
    runs = np.flatnonzero(wanted[bloom_matrices.segment])
    known = np.zeros(len(wanted), np.int64)  # blocks of every segment whose filters were asked
    candidates: list[CandidateBlocks] = []
    for matrix in sorted_distinct(bloom_matrices.run_matrix[runs]).tolist():
        of_matrix = runs[bloom_matrices.run_matrix[runs] == matrix]
        with memory.faults.tolerated():
            candidates.append(_in_matrix(memory, f, bloom_matrices, matrix, of_matrix, rows_of))
            np.add.at(known, bloom_matrices.segment[of_matrix], bloom_matrices.count[of_matrix])
    counts = np.diff(memory.groups.block_begin)
    partly = segments[known[segments] < counts[segments]]
    unknown = (_without_filter(memory, f, bloom_matrices, segment, int(known[segment])) for segment in partly.tolist())
    joined = _joined([*candidates, *map(_any_value, unknown)])
    order = np.argsort(joined.numbers, kind="stable")
    return CandidateBlocks(joined.numbers[order], joined.value[order])


def _joined(parts: Sequence[CandidateBlocks]) -> CandidateBlocks:
    """Concatenate candidates, in no order."""
    if len(parts) == 1:
        return parts[0]
    numbers = np.concatenate([_NOTHING, *(part.numbers for part in parts)])
    return CandidateBlocks(numbers, np.concatenate([_NOTHING, *(part.value for part in parts)]))


def _in_matrix(
    memory: IndexMemory, f: int, bloom_matrices: BloomMatrices, matrix: int, runs: np.ndarray, rows_of: RowsOf
) -> CandidateBlocks:
    """Return the matching blocks of some runs of a matrix, in no order. Raises IndexFault."""
    asked = rows_of(shape_of(int(bloom_matrices.size_class[matrix])))
    begin, count = bloom_matrices.begin[runs], bloom_matrices.count[runs]
    ends = int(begin[0]), int(begin[-1] + count[-1])
    if asked is None:
        columns = np.concatenate([np.arange(b, b + c) for b, c in zip(begin.tolist(), count.tolist(), strict=True)])
        value = np.full(len(columns), ANY)
    else:
        columns, value = _columns(bloom_matrices, matrix, asked, ends, memory.read_filter_file(bloom_matrices))
    at = np.searchsorted(begin, columns, side="right") - 1
    within = columns - begin[at]
    inside = (at >= 0) & (within < count[at])
    return _numbers(memory, f, bloom_matrices, runs[at[inside]], within[inside], value[inside])


def _columns(
    bloom_matrices: BloomMatrices, matrix: int, asked: AskedRows, ends: tuple[int, int], read: ReadFile
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that may hold a value, and which value. Raises IndexFault."""
    if not len(asked.alternatives):
        return _NOTHING, _NOTHING
    if len(asked.alternatives) == 1:  # for a single value the zone maps decide later anyway
        columns = columns_with(bloom_matrices, matrix, asked.alternatives, ends, read)
        return columns, np.full(len(columns), ANY)
    columns, alternative = columns_by_alternative(bloom_matrices, matrix, asked.alternatives, ends, read)
    return columns, np.where(alternative == ANY, ANY, asked.value[alternative])


def _numbers(
    memory: IndexMemory, f: int, bloom_matrices: BloomMatrices, runs: np.ndarray, within: np.ndarray, value: np.ndarray
) -> CandidateBlocks:
    """Return block numbers by run and place in it; all blocks of a segment whose size classes cannot be read."""
    segment = bloom_matrices.segment[runs]
    begin = memory.groups.block_begin
    mixed = bloom_matrices.count[runs] != np.diff(begin)[segment]  # runs that do not cover all blocks of their segments
    all_candidates = [CandidateBlocks((begin[segment] + within)[~mixed], value[~mixed])]
    for run in sorted_distinct(runs[mixed]).tolist():
        segment_of_run, of_run = int(bloom_matrices.segment[run]), runs == run
        candidates = _any_value(np.arange(begin[segment_of_run], begin[segment_of_run + 1]))
        with memory.faults.tolerated():
            candidates = CandidateBlocks(
                candidates.numbers[_members(memory, f, bloom_matrices, run)[within[of_run]]], value[of_run]
            )
        all_candidates.append(candidates)
    return _joined(all_candidates)


def _members(memory: IndexMemory, f: int, bloom_matrices: BloomMatrices, run: int) -> np.ndarray:
    """Return the blocks of a run, as positions in its segment. Raises IndexFault."""
    segment = int(bloom_matrices.segment[run])
    members = np.flatnonzero(memory.size_classes(f, segment) == bloom_matrices.run_size_class[run])
    if len(members) != bloom_matrices.count[run]:
        name = memory.groups.names[segment]
        raise IndexFault(f"{name}: the size classes of its filters are not those of the snapshot")
    return members


def _without_filter(memory: IndexMemory, f: int, bloom_matrices: BloomMatrices, segment: int, known: int) -> np.ndarray:
    """Return the blocks of a segment without a filter; all of its blocks if one of its filters could not be asked."""
    begin, end = memory.groups.block_begin[segment : segment + 2].tolist()
    if known and known == int(bloom_matrices.count[bloom_matrices.segment == segment].sum()):
        with memory.faults.tolerated():
            return begin + np.flatnonzero(memory.size_classes(f, segment) == NONE)
    return np.arange(begin, end)


# ---- postings --------------------------------------------------------------------------------------------------------


def _in_postings(memory: IndexMemory, f: int, hashes: np.ndarray, segments: np.ndarray) -> np.ndarray | None:
    """Return the blocks that hold a value with one of the hashes, segment by segment."""
    tables = memory.postings(f, segments)
    if all(table is None for table in tables):
        return None
    numbers_of_segments = [_NOTHING]
    for segment, table in zip(segments.tolist(), tables, strict=True):
        begin, end = memory.groups.block_begin[segment : segment + 2].tolist()
        numbers = np.arange(begin, end)
        with memory.faults.tolerated():
            if table is not None:
                numbers = begin + np.flatnonzero(_probed(memory, segment, table, hashes))
        numbers_of_segments.append(numbers)
    return np.concatenate(numbers_of_segments)


def _probed(memory: IndexMemory, segment: int, stored: StoredPostings, hashes: np.ndarray) -> np.ndarray:
    name = memory.groups.names[segment]
    return blocks_with(stored.table, hashes, posting_rows(memory, name, stored), f"{name}: postings")
