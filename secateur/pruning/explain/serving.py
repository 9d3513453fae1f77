"""Measure what each structure leaves of all blocks without the others, conjunct by conjunct."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from secateur.pruning.bounds.outcomes import fully_matching, survives
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.conjuncts import alive, conjuncts
from secateur.pruning.evaluate import evaluate, may_match
from secateur.pruning.explain.causes import Answers, answers_of, evidence_in
from secateur.pruning.explain.explanation import CONSULTED, IDLE, STRUCTURES, Conjunct, Explanation, Structure
from secateur.pruning.explain.replaced_zones import without_gaps, without_zones
from secateur.pruning.predicate.bound import Field, Leaf, Within
from secateur.pruning.predicate.bound_walks import fields, leaves, unbounded
from secateur.pruning.predicate.index_paths import is_expression, text_of_expression
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.questions import questions
from secateur.pruning.stages.files import evidence_of_files
from secateur.pruning.stages.pages import may_match_in_pages
from secateur.pruning.stages.survivors import evaluate_with
from secateur.pruning.statistics import Blocks, Catalog
from secateur.values.combination import concatenate
from secateur.values.kinds import kind_of

SAMPLE = 1 << 12  # blocks whose bounds are compared, to decide whether a column is clustered
CLUSTERED = 0.1  # clustered: at most this share of the blocks has bounds that contain a value


@dataclass(frozen=True)
class Index:
    """The structures that exist, and those that could exist."""

    catalog: Catalog
    parts: Sequence[Blocks]  # all known blocks: in segments, and from footers
    implied: Callable[[Predicate], Within | None]  # what a predicate implies for sort key tuples
    sort_key: tuple[str, ...]
    outside: frozenset[str]  # columns that are not in the files
    kept: Mapping[tuple[str, str], str]  # by column and structure, what is not covered, in words
    gaps_kept: frozenset[str]
    offers: Callable[[Leaf], Sequence[Structure]]  # filters that could support a leaf
    gap_offers: Callable[[Leaf], Sequence[Structure]]
    bounds_offers: Callable[[Field], Sequence[Structure]]  # of what has zone maps only if named

    def count(self, holds: Callable[[Blocks], np.ndarray]) -> int:
        """Count the blocks of which something holds."""
        return sum(int(np.count_nonzero(holds(part))) for part in self.parts)


def explained(predicate: Predicate, index: Index, files_not_known: int) -> Explanation:
    """Explain every conjunct of a bound predicate by the structures that support it or could."""
    blocks, parts = sum(map(len, index.parts)), conjuncts(predicate)
    answers = answers_of(predicate, index.catalog, index.catalog.everywhere(None))
    together = (*_by_tuples(predicate, index), *_by_pages(predicate, index)) if len(parts) > 1 else ()
    left = index.count(lambda part: _left_by_all(predicate, index, answers, part))
    return Explanation(
        blocks, files_not_known, tuple(_explained(conjunct, index) for conjunct in parts), together, left
    )


def _explained(conjunct: Predicate, index: Index) -> Conjunct:
    answers = answers_of(conjunct, index.catalog, index.catalog.everywhere(None))
    structures = (
        *_by_files(conjunct, index),
        *_by_bounds(conjunct, index),
        *_by_gaps(conjunct, index),
        *_by_filters(conjunct, index, answers),
        *_by_tuples(conjunct, index),
        *_by_pages(conjunct, index),
    )
    left = index.count(lambda part: _left_by_all(conjunct, index, answers, part))
    whole = index.count(lambda part: fully_matching(evaluate(conjunct, part)))
    return Conjunct(str(conjunct), left, structures, tuple(dict.fromkeys(unbounded(conjunct, answers))), whole)


def _left_by_all(conjunct: Predicate, index: Index, answers: Answers, part: Blocks) -> np.ndarray:
    """Return the blocks left by all structures together: bool of shape (n_blocks,)."""
    left = survives(evaluate_with(conjunct, part, evidence_in(answers))) & _files(conjunct, index)[part.file]
    implied = index.implied(conjunct)
    if implied is not None:
        left &= may_match(implied, part)
    left[left] = may_match_in_pages(conjunct, part.take(np.flatnonzero(left)))
    return left


def _files(conjunct: Predicate, index: Index) -> np.ndarray:
    """Return the files that may satisfy a conjunct according to the table's own metadata."""
    files = index.catalog.files
    may_match = np.zeros(len(files), bool)
    may_match[alive(conjunct, files).units] = True
    return may_match & survives(evaluate_with(conjunct, files, evidence_of_files(conjunct, files)))


def _by_files(conjunct: Predicate, index: Index) -> Iterator[Structure]:
    files = index.catalog.files
    listed = [field for field in fields(conjunct) if files.zones(field) is not None]
    in_buckets = [
        question.column
        for leaf in evidence_of_files(conjunct, files)
        for question in questions(leaf)
        if files.holders(question) is not None
    ]
    columns = _names([*listed, *in_buckets])
    if columns:
        survive = _files(conjunct, index)
        outside = all(name in index.outside for name in columns) or bool(in_buckets)
        name = "partition values" if outside else "table metadata"
        yield Structure(name, columns, CONSULTED, index.count(lambda part: survive[part.file]))


def _inside(conjunct: Predicate, index: Index) -> list[Field]:
    """Return the columns of a conjunct that have bounds in blocks."""
    return [
        field for field in fields(conjunct) if kind_of(field.type) is not None and name_of(field) not in index.outside
    ]


def _by_bounds(conjunct: Predicate, index: Index) -> Iterator[Structure]:
    inside = _inside(conjunct, index)
    lacking = {field: offers for field in inside if (offers := index.bounds_offers(field))}
    for offers in lacking.values():
        yield from offers
    columns = [field for field in inside if field not in lacking]
    if not columns:
        return
    left = index.count(lambda part: may_match(conjunct, without_gaps(part)))
    notes = [_clustered(field, index) for field in columns]
    notes += dict.fromkeys(index.kept.get((name_of(field), "zone map"), "") for field in columns)
    yield Structure("zone map", _names(columns), CONSULTED, left, "; ".join(filter(None, notes)))


def _clustered(field: Field, index: Index) -> str:
    """Describe whether a column is clustered, by the number of blocks whose bounds overlap."""
    largest = max(index.parts, key=len, default=None)
    zones = None if largest is None else largest.zones(field)
    overlap = None if zones is None else overlapping(zones)
    if largest is None or overlap is None:
        return ""
    word = "clustered" if overlap <= max(2.0, CLUSTERED * len(largest)) else "not clustered"
    return f"{field} is {word}, its bounds overlap those of {overlap:,.0f} of {len(largest):,} blocks"


def overlapping(zones: Zones) -> float | None:
    """Return with how many units' bounds a unit's bounds overlap on average, itself included; None if none has any."""
    known = np.flatnonzero(zones.value)
    if not len(known):
        return None
    at = known[np.unique(np.linspace(0, len(known) - 1, SAMPLE).astype(np.int64))]
    ends = concatenate([zones.lower.take(at), zones.upper.take(at)])
    order = np.lexsort(tuple(reversed(ends.words)))
    ordered = ends.take(order)
    steps = np.logical_or.reduce([word[1:] != word[:-1] for word in ordered.words])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.append(0, np.cumsum(steps))
    lower, upper = np.sort(ranks[: len(at)]), np.sort(ranks[len(at) :])
    overlaps = np.searchsorted(lower, upper, "right").mean() - np.searchsorted(upper, lower, "left").mean()
    return float(1 + (len(known) - 1) * (overlaps - 1) / max(len(at) - 1, 1))


def _by_gaps(conjunct: Predicate, index: Index) -> Iterator[Structure]:
    offers = _distinct(offer for leaf in leaves(conjunct) for offer in index.gap_offers(leaf))
    have = {name_of(f) for f in fields(conjunct) for part in index.parts if (z := part.zones(f)) and z.gaps is not None}
    for offer in offers:
        (column,) = offer.columns
        if column in have:
            yield replace(offer, state=CONSULTED, blocks_left=index.count(lambda part: may_match(conjunct, part)))
        elif column in index.gaps_kept:
            yield replace(offer, state=IDLE, note="none of its blocks has gaps that are worth their bytes")
        elif column not in index.outside:
            yield offer


def _by_filters(conjunct: Predicate, index: Index, answers: Answers) -> Iterator[Structure]:
    served = set()
    for column, kind in _asked(answers):
        structure = STRUCTURES[kind]
        served.add((column, structure))
        left = index.count(partial(_left_by_kind, conjunct, answers, kind))
        yield Structure(structure, (column,), CONSULTED, left, index.kept.get((column, structure), ""))
    answered = {column for column, _ in served}
    for offer in _distinct(offer for leaf in leaves(conjunct) for offer in index.offers(leaf)):
        (column,) = offer.columns
        key = column, offer.structure
        if key in served or column in index.outside:
            continue
        if key in index.kept:
            yield replace(offer, state=IDLE, note=index.kept[key] or _why_idle(key, served))
        elif column not in answered:
            yield offer


def _asked(answers: Answers) -> list[tuple[str, str]]:
    """Return each column whose filters answered, with the filter's kind, once."""
    asked = ((question.column, hit) for leaf, hits in answers.items() for question in questions(leaf) for hit in hits)
    return list(dict.fromkeys((name_of(column), answer.kind) for column, answer in asked))


def _left_by_kind(conjunct: Predicate, answers: Answers, kind: str, part: Blocks) -> np.ndarray:
    """Return the blocks left by the filters of one kind."""
    of_kind = {leaf: [answer for answer in hits if answer.kind == kind] for leaf, hits in answers.items()}
    evidence = evidence_in({leaf: hits for leaf, hits in of_kind.items() if hits})
    return survives(evaluate_with(conjunct, without_zones(part), evidence))


def _why_idle(key: tuple[str, str], served: set[tuple[str, str]]) -> str:
    column, structure = key
    if structure == "bloom" and (column, "postings") in served:
        return "as postings are exact"
    return "as what it keeps of texts says nothing about this one"


def _by_tuples(conjunct: Predicate, index: Index) -> Iterator[Structure]:
    implied = index.implied(conjunct)
    if implied is not None:
        note = index.kept.get((", ".join(index.sort_key), "sort key"), "")
        yield Structure("sort key", index.sort_key, CONSULTED, index.count(lambda part: may_match(implied, part)), note)


def _by_pages(conjunct: Predicate, index: Index) -> Iterator[Structure]:
    columns = [field for field in fields(conjunct) if any(part.has_pages(field) for part in index.parts)]
    if columns:
        notes = [index.kept.get((name_of(field), "pages"), "") for field in columns]
        left = index.count(lambda part: _in_pages(conjunct, part))
        yield Structure("pages", _names(columns), CONSULTED, left, "; ".join(filter(None, notes)))


def _in_pages(conjunct: Predicate, part: Blocks) -> np.ndarray:
    """Return the blocks that page bounds leave; if a block's bounds rule it out, so do its pages'."""
    left = may_match(conjunct, without_gaps(part))
    left[left] = may_match_in_pages(conjunct, part.take(np.flatnonzero(left)))
    return left


def _names(columns: Sequence[Field]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(name_of, columns)))


def name_of(column: Field) -> str:
    """Return the column's name as used for coverage; the SQL of an indexed expression."""
    return text_of_expression(column.path) if is_expression(column.path) else ".".join(column.path)


def _distinct(offers: Iterator[Structure]) -> list[Structure]:
    return list(dict.fromkeys(offers))
