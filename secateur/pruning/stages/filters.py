"""Stage "filters": prune blocks by bloom filters, postings, n-grams and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from secateur.integers import in_all
from secateur.pruning.bounds.outcomes import FALSE, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.bound import Leaf, Within
from secateur.pruning.predicate.bound_walks import leaves
from secateur.pruning.predicate.nodes import And, Not, Or, Predicate
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.pruning.questions import questions
from secateur.pruning.report import counted
from secateur.pruning.stages.survivors import Query, SurvivingSegments
from secateur.pruning.statistics import Catalog

SELECTIVE = 1 / 8  # share of blocks: if filters leave more, zone maps come first

Evidence = Mapping[Leaf, np.ndarray]


def prune_by_filters(query: Query, left: SurvivingSegments) -> SurvivingSegments:
    """Keep the blocks that may hold what the predicate asks for; zone maps are then read only for those.

    A filter answers for all blocks of many segments at once, so it costs no more than comparing all bounds of one
    column. Sound under AND, OR and NOT alike: where filters refute a leaf it cannot be TRUE; they claim nothing else.
    """
    catalog, segments = query.catalog, left.segments
    evidence = evidence_of(query.predicate, catalog, segments)
    if not evidence:
        return left
    survivors = replace(left, evidence=evidence)
    numbers = unrolled(partial(_may_be, evidence=evidence), (query.predicate, TRUE), {})
    total = catalog.block_count(segments)
    kept = total if numbers is None else len(numbers)
    asked = counted(len(evidence), "condition")
    query.notes.append(f"{asked} looked up, {kept:,} of {counted(total, 'block')} may hold what is asked for")
    if numbers is None or kept > SELECTIVE * total:
        return survivors
    return replace(survivors, chosen=catalog.choose(numbers, left.whole, left.files))


def evidence_of(predicate: Predicate, catalog: Catalog, segments: np.ndarray) -> Evidence:
    """Return, for every leaf that some filter can refute, the blocks of these segments that may hold what it asks."""
    evidence = {leaf: _holders(leaf, catalog, segments) for leaf in dict.fromkeys(leaves(predicate))}
    return {leaf: numbers for leaf, numbers in evidence.items() if numbers is not None}


def _holders(leaf: Leaf, catalog: Catalog, segments: np.ndarray) -> np.ndarray | None:
    """Return the numbers of the blocks, ascending; None if no filter applies."""
    asked = (catalog.holders(question, segments) for question in questions(leaf))
    return in_all([numbers for numbers in asked if numbers is not None])


def _may_be(asked: tuple[Predicate, int], evidence: Evidence) -> Steps[np.ndarray | None]:
    """Return where a predicate may be TRUE, or FALSE, by evidence only (None: all). Nothing refutes FALSE."""
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
        case Within(fails=RangeSet()):  # only zone maps know about rows on which Spark raises an error
            return None
        case _ if truth == TRUE:
            return evidence.get(predicate)  # type: ignore[call-overload]
        case _:
            return None
