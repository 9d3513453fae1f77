"""Looking things up: which blocks may hold what a predicate asks for, by filters and postings.

The answer is the numbers of blocks, ascending. Blocks of which nothing is known are among them: those of segments
without the filter, those that were left out when it was built, and those whose filter cannot be read.

Of several values each is looked for by itself: a block is left out where those that its filter may hold lie outside of
its zone map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Range, read_rows
from secateur.index.filters import parquet_bloom
from secateur.index.filters.bloom import positions
from secateur.index.filters.bloom_matrix import NONE, OWN_ENCODINGS, Slabs, encoding_and_size
from secateur.index.filters.hashing import hash_canonical, hash_keys
from secateur.index.filters.ngrams import grams_within, token_key
from secateur.index.filters.postings import blocks_with
from secateur.index.filters.probe import ANY, Alternatives, ReadFile, columns_by_alternative, columns_with
from secateur.index.model import BLOOM, NGRAM, POSTINGS, TOKEN, Filter
from secateur.index.read.loader import IndexMemory
from secateur.index.segments.segment_file import StoredPostings
from secateur.pruning.predicate.patterns.pieces import Substring, fold, tokens_within
from secateur.pruning.questions import FilterHits, Question, Texts, Values
from secateur.pruning.zones import Zones
from secateur.values import Kind, in_all, keys_from, kind_of, ordered_kind, same_keys

MOST_PARTS = 64  # grams or tokens of one alternative that are looked up: so many rule out what they all would
_NOTHING = np.zeros(0, np.int64)


class AskedRows(NamedTuple):
    """The rows of a matrix of which all must be set for a value, and the value of each such alternative."""

    alternatives: Alternatives
    value: np.ndarray


RowsOf = Callable[[int, int, int], AskedRows | None]  # of an encoding, probes, and log2 of the bits; None: all pass
ZonesOf = Callable[[np.ndarray], Zones | None]  # the zone maps of the question's column at blocks with these numbers


def nothing_known(numbers: np.ndarray) -> None:
    """No zone maps of any blocks."""


def holders(
    memory: IndexMemory, question: Question, segments: np.ndarray, zones_of: ZonesOf = nothing_known
) -> np.ndarray | None:
    """The blocks of some segments, ascending, that may hold what is asked for; None where no filter tells."""
    return in_all([answer.numbers for answer in answers(memory, question, segments, zones_of)])


def answers(
    memory: IndexMemory, question: Question, segments: np.ndarray, zones_of: ZonesOf = nothing_known
) -> list[FilterHits]:
    """What every filter that tells of some segments says by itself."""
    match question:
        case Values():
            asked = [_value_filter(memory, question)]
        case Texts():
            asked = list(_text_filters(memory, question))
    found = [(f, _asked(memory, f, question, segments)) for f in asked if f is not None]
    return [
        FilterHits(memory.snapshot.filters[f].kind, _within_zones(held, question, zones_of))
        for f, held in found
        if held is not None
    ]


def _asked(memory: IndexMemory, f: int, question: Question, segments: np.ndarray) -> CandidateBlocks | None:
    match question:
        case Values():
            return _with_values(memory, f, question, segments)
        case Texts():
            return _with_texts(memory, f, question, segments)


@dataclass(frozen=True)
class CandidateBlocks:
    """The blocks that may hold one of several values, ascending, once for each; `value` is its position, or ANY."""

    numbers: np.ndarray
    value: np.ndarray


def _any_value(numbers: np.ndarray) -> CandidateBlocks:
    return CandidateBlocks(numbers, np.full(len(numbers), ANY))


def _within_zones(held: CandidateBlocks, question: Question, zones_of: ZonesOf) -> np.ndarray:
    """The blocks that may hold a value by their filters which they may hold by their zone maps too.

    Sound: a row with one of the values is in a block of which neither denies just this value.
    """
    known = np.flatnonzero(held.value != ANY)
    kind = kind_of(question.column.type)
    if not len(known) or question.points is None or kind is None:
        return distinct(held.numbers)
    blocks, unit = np.unique(held.numbers[known], return_inverse=True)
    zones = zones_of(blocks)
    if zones is None:
        return distinct(held.numbers)
    width = max(zones.lower.width, zones.upper.width) if kind is Kind.BYTES else 0
    keys = keys_from(kind, question.points.tolist(), width).take(held.value[known])
    left = np.ones(len(held.numbers), bool)
    left[known] = zones.take(unit).may_hold(keys)
    return distinct(held.numbers[left])


def distinct(numbers: np.ndarray) -> np.ndarray:
    """The distinct ones of numbers that ascend."""
    return numbers[np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]]


# ---- values ----------------------------------------------------------------------------------------------------------


def _value_filter(memory: IndexMemory, question: Values) -> int | None:
    """Postings, which are exact, or else bloom filters."""
    own = {
        each.kind: f
        for f, each in enumerate(memory.snapshot.filters)
        if each.path == question.column.path and same_keys(each.type, question.type)
    }
    return own.get(POSTINGS, own.get(BLOOM))


def _with_values(memory: IndexMemory, f: int, question: Values, segments: np.ndarray) -> CandidateBlocks | None:
    kind = ordered_kind(question.type)
    keys = question.points.tolist()
    hashes = hash_keys(keys, kind)
    if memory.snapshot.filters[f].kind == POSTINGS:
        exact = _in_postings(memory, f, hashes.first, segments)
        return None if exact is None else _any_value(exact)

    @cache
    def native_hashes(encoding: int) -> tuple[np.ndarray, np.ndarray] | None:
        forms = [parquet_bloom.hashes_of(key, question.type, parquet_bloom.encoding_of_code(encoding)) for key in keys]
        known = [form for form in forms if form is not None]
        values = np.repeat(np.arange(len(known)), [len(form) for form in known])
        return (np.array(list(chain.from_iterable(known)), np.uint64), values) if len(known) == len(forms) else None

    def rows_of(encoding: int, probes: int, log2_bits: int) -> AskedRows | None:
        if encoding in OWN_ENCODINGS:
            return AskedRows(positions(hashes, probes, log2_bits), np.arange(len(keys)))
        found = native_hashes(encoding)
        return None if found is None else AskedRows(parquet_bloom.positions(found[0], log2_bits), found[1])

    return _in_slabs(memory, f, rows_of, segments)


# ---- texts -----------------------------------------------------------------------------------------------------------


def _text_filters(memory: IndexMemory, question: Texts) -> Iterator[int]:
    """The filters of parts of texts that can be asked: one of folded texts serves for those that are not."""
    for f, each in enumerate(memory.snapshot.filters):
        if each.path == question.column.path and each.kind in (NGRAM, TOKEN) and (each.folded or not question.folded):
            yield f


def _with_texts(memory: IndexMemory, f: int, question: Texts, segments: np.ndarray) -> CandidateBlocks | None:
    own = memory.snapshot.filters[f]
    parts = [asked_parts(own, alternative, question.tokens) for alternative in question.alternatives]
    if not all(parts):
        return None
    hashes = [hash_canonical(each) for each in parts]

    def rows_of(encoding: int, probes: int, log2_bits: int) -> AskedRows:
        rows = [np.unique(positions(each, probes, log2_bits)) for each in hashes]
        return AskedRows(rows, np.arange(len(rows)))

    return _in_slabs(memory, f, rows_of, segments)


def asked_parts(own: Filter, pieces: Sequence[Substring], tokens: Sequence[bytes]) -> list[bytes]:
    """What a filter has hashed of every text that holds some pieces and tokens; empty where it tells nothing.

    Of a long text some grams from all over: whatever is left out, the others are necessary.
    """
    if own.kind == NGRAM:
        texts = [*(piece.text for piece in pieces), *tokens]
        found = [gram for text in texts for gram in grams_within(fold(text) if own.folded else text, own.gram)]
    else:
        whole = [*(token for piece in pieces for token in tokens_within(piece)), *tokens]
        found = [token_key(fold(token) if own.folded else token) for token in whole]
    distinct = list(dict.fromkeys(found))
    return distinct[:: -(-len(distinct) // MOST_PARTS) or 1]


# ---- slabs -----------------------------------------------------------------------------------------------------------


def _in_slabs(memory: IndexMemory, f: int, rows_of: RowsOf, segments: np.ndarray) -> CandidateBlocks | None:
    """The blocks whose filters have all bits of some alternative."""
    slabs = memory.slabs(f)
    if slabs is None:
        return None
    wanted = np.zeros(len(memory.layout.names) + 1, bool)  # the last for runs of no segment
    wanted[segments] = True
    runs = np.flatnonzero(wanted[slabs.segment])
    known = np.zeros(len(wanted), np.int64)  # blocks of every segment whose filters were asked
    found: list[CandidateBlocks] = []
    for matrix in np.unique(slabs.run_matrix[runs]).tolist():
        mine = runs[slabs.run_matrix[runs] == matrix]
        with memory.faults.tolerated():
            found.append(_in_matrix(memory, f, slabs, matrix, mine, rows_of))
            np.add.at(known, slabs.segment[mine], slabs.count[mine])
    counts = np.diff(memory.layout.block_begin)
    partly = segments[known[segments] < counts[segments]]
    unknown = (_without_filter(memory, f, slabs, segment, int(known[segment])) for segment in partly.tolist())
    return _joined([*found, *map(_any_value, unknown)])


def _joined(parts: Sequence[CandidateBlocks]) -> CandidateBlocks:
    numbers = np.concatenate([_NOTHING, *(part.numbers for part in parts)])
    order = np.argsort(numbers, kind="stable")
    return CandidateBlocks(numbers[order], np.concatenate([_NOTHING, *(part.value for part in parts)])[order])


def _in_matrix(
    memory: IndexMemory, f: int, slabs: Slabs, matrix: int, runs: np.ndarray, rows_of: RowsOf
) -> CandidateBlocks:
    """The blocks of some runs of a matrix. Raises IndexFault."""
    encoding, log2_bits = encoding_and_size(int(slabs.code[matrix]))
    asked = rows_of(encoding, int(slabs.probes[matrix]), log2_bits)
    begin, count = slabs.begin[runs], slabs.count[runs]
    ends = int(begin[0]), int(begin[-1] + count[-1])
    if asked is None:
        columns = np.concatenate([np.arange(b, b + c) for b, c in zip(begin.tolist(), count.tolist(), strict=True)])
        value = np.full(len(columns), ANY)
    else:
        columns, value = _columns(slabs, matrix, asked, ends, memory.read_filter_file(slabs))
    at = np.searchsorted(begin, columns, side="right") - 1
    within = columns - begin[at]
    inside = (at >= 0) & (within < count[at])
    return _numbers(memory, f, slabs, runs[at[inside]], within[inside], value[inside])


def _columns(
    slabs: Slabs, matrix: int, asked: AskedRows, ends: tuple[int, int], read: ReadFile
) -> tuple[np.ndarray, np.ndarray]:
    """The columns that may hold a value, and which. Raises IndexFault."""
    if not len(asked.alternatives):
        return _NOTHING, _NOTHING
    if len(asked.alternatives) == 1:  # the bounds of a block say what they say of it without being asked here
        columns = columns_with(slabs, matrix, asked.alternatives, ends, read)
        return columns, np.full(len(columns), ANY)
    columns, alternative = columns_by_alternative(slabs, matrix, asked.alternatives, ends, read)
    return columns, np.where(alternative == ANY, ANY, asked.value[alternative])


def _numbers(
    memory: IndexMemory, f: int, slabs: Slabs, runs: np.ndarray, within: np.ndarray, value: np.ndarray
) -> CandidateBlocks:
    """The numbers of blocks by their runs and places in these; all blocks of a segment whose codes cannot be read."""
    segment = slabs.segment[runs]
    begin = memory.layout.block_begin
    mixed = slabs.count[runs] != np.diff(begin)[segment]  # runs that are not all blocks of their segments
    found = [CandidateBlocks((begin[segment] + within)[~mixed], value[~mixed])]
    for run in np.unique(runs[mixed]).tolist():
        own, mine = int(slabs.segment[run]), runs == run
        held = _any_value(np.arange(begin[own], begin[own + 1]))
        with memory.faults.tolerated():
            held = CandidateBlocks(held.numbers[_members(memory, f, slabs, run)[within[mine]]], value[mine])
        found.append(held)
    return _joined(found)


def _members(memory: IndexMemory, f: int, slabs: Slabs, run: int) -> np.ndarray:
    """The blocks of a run, among those of its segment. Raises IndexFault."""
    segment = int(slabs.segment[run])
    members = np.flatnonzero(memory.codes(f, segment) == slabs.run_code[run])
    if len(members) != slabs.count[run]:
        name = memory.layout.names[segment]
        raise IndexFault(f"{name}: the codes of its filters are not those of the snapshot")
    return members


def _without_filter(memory: IndexMemory, f: int, slabs: Slabs, segment: int, known: int) -> np.ndarray:
    """The blocks of a segment that have no filter; all, where a filter of theirs could not be asked."""
    begin, end = memory.layout.block_begin[segment : segment + 2].tolist()
    if known and known == int(slabs.count[slabs.segment == segment].sum()):
        with memory.faults.tolerated():
            return begin + np.flatnonzero(memory.codes(f, segment) == NONE)
    return np.arange(begin, end)


# ---- postings --------------------------------------------------------------------------------------------------------


def _in_postings(memory: IndexMemory, f: int, hashes: np.ndarray, segments: np.ndarray) -> np.ndarray | None:
    """The blocks that hold a value with one of the hashes, segment by segment."""
    tables = memory.postings(f, segments)
    if all(table is None for table in tables):
        return None
    found = [_NOTHING]
    for segment, table in zip(segments.tolist(), tables, strict=True):
        begin, end = memory.layout.block_begin[segment : segment + 2].tolist()
        numbers = np.arange(begin, end)
        with memory.faults.tolerated():
            if table is not None:
                numbers = begin + np.flatnonzero(_probed(memory, segment, table, hashes))
        found.append(numbers)
    return np.concatenate(found)


def _probed(memory: IndexMemory, segment: int, stored: StoredPostings, hashes: np.ndarray) -> np.ndarray:
    name = memory.layout.names[segment]

    def read(ranges: Sequence[Range]) -> list[bytes]:
        return memory.chunks.read_ranges(name, ranges)

    where = f"{name}: postings"
    return blocks_with(stored.table, hashes, lambda rows: read_rows(stored.rows, rows, read, where), where)
