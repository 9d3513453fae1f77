"""Stage "filters": bloom filters, postings, n-grams and tokens rule out blocks that cannot hold what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from secateur.pruning.outcomes import FALSE, TRUE
from secateur.pruning.predicate.bound import Leaf, Within, leaves
from secateur.pruning.predicate.nodes import And, Not, Or, Predicate
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.pruning.questions import questions
from secateur.pruning.rangeset import RangeSet
from secateur.pruning.stages.survivors import Query, Survivors
from secateur.pruning.statistics import Catalog
from secateur.values import in_all

SELECTIVE = 1 / 8  # share of blocks: where filters leave more, zone maps come first

Evidence = Mapping[Leaf, np.ndarray]


def prune_by_filters(query: Query, survivors: Survivors) -> Survivors:
    """Keeps the blocks that may hold what the predicate asks for; before zone maps, of which only theirs are then read.

    A filter is one answer for all blocks of many segments, so asking it costs no more than comparing all bounds of one
    column. Sound under AND, OR and NOT alike: what filters refute, a leaf cannot be TRUE; they never say more.
    """
    catalog, segments = query.catalog, survivors.segments
    evidence = evidence_of(query.predicate, catalog, segments)
    if not evidence:
        return survivors
    found = replace(survivors, evidence=evidence)
    numbers = unrolled(partial(_may_be, evidence=evidence), (query.predicate, TRUE), {})
    total = catalog.block_count(segments)
    left = total if numbers is None else len(numbers)
    query.notes.append(f"{len(evidence)} conditions looked up, {left:,} of {total:,} blocks may hold what they ask for")
    if numbers is None or left > SELECTIVE * total:
        return found
    return replace(found, blocks=catalog.choose(numbers, survivors.whole, survivors.files))


def evidence_of(predicate: Predicate, catalog: Catalog, segments: np.ndarray) -> Evidence:
    """For every leaf that some filter can refute, the blocks of some segments that may hold what it asks for."""
    found = {leaf: _holders(leaf, catalog, segments) for leaf in dict.fromkeys(leaves(predicate))}
    return {leaf: numbers for leaf, numbers in found.items() if numbers is not None}


def _holders(leaf: Leaf, catalog: Catalog, segments: np.ndarray) -> np.ndarray | None:
    """The numbers of the blocks, ascending; None where no filter tells."""
    asked = (catalog.holders(question, segments) for question in questions(leaf))
    return in_all([numbers for numbers in asked if numbers is not None])


def _may_be(asked: tuple[Predicate, int], evidence: Evidence) -> Steps[np.ndarray | None]:
    """The blocks where a predicate may be TRUE, or FALSE, by evidence alone; None: all. Nothing refutes FALSE."""
    predicate, truth = asked
    match predicate:
        case And(children) | Or(children):
            parts = yield from each_of((child, truth) for child in children)
            known = [part for part in parts if part is not None]
            if isinstance(predicate, And) == (truth == TRUE):
                return in_all(known)
            return reduce(np.union1d, known) if len(known) == len(parts) else None
        case Not(child):
            return (yield child, TRUE + FALSE - truth)
        case Within(fails=RangeSet()):  # rows on which Spark raises an error are known by zone maps only
            return None
        case _ if truth == TRUE:
            return evidence.get(predicate)  # type: ignore[call-overload]
        case _:
            return None
