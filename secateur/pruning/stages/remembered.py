"""Stage "remembered": drop blocks in which an earlier read of the same condition, or of a wider one, found no row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from secateur.pruning.bounds.outcomes import survives
from secateur.pruning.predicate.bound import Leaf
from secateur.pruning.report import counted
from secateur.pruning.stages.survivors import Query, Survivors, evaluate_refuted
from secateur.pruning.statistics import Blocks
from secateur.pruning.verdicts import ROW_GROUP_BITS, places_of


def has_verdicts(query: Query) -> bool:
    """Return whether earlier reads found something about the predicate."""
    return bool(query.verdicts)


def prune_remembered(query: Query, survivors: Survivors) -> Survivors:
    """Keep the blocks that earlier reads do not rule out.

    Sound: a verdict is about all rows of a block of a file that has not changed. Where it refutes a leaf, the leaf
    loses TRUE, as by a filter, and the predicate is folded again.
    """
    blocks = survivors.blocks
    live = np.ones(len(blocks), bool)
    refuted: dict[Leaf, np.ndarray] = {}
    for verdict in query.verdicts:
        here = _among(blocks, verdict.places, len(query.catalog.files))
        if verdict.leaves is None:
            live[here] = False
        for leaf in verdict.leaves or ():
            refuted.setdefault(leaf, np.zeros(len(blocks), bool))[here] = True
    if refuted:
        survivors = _folded(query, survivors, refuted, live)
        live &= survives(survivors.outcomes)
    if not live.all():
        query.notes.append(f"earlier reads found no match in {counted(int(np.count_nonzero(~live)), 'block')}")
        survivors = _only(survivors, np.flatnonzero(live))
    return survivors


def _among(blocks: Blocks, places: np.ndarray, files: int) -> np.ndarray:
    """Return which blocks, by position, lie at some places: those of other files are not searched."""
    of_file = np.zeros(files, bool)
    of_file[places >> ROW_GROUP_BITS] = True
    near = np.flatnonzero(of_file[blocks.file])
    at = places_of(blocks.file[near], blocks.row_group[near])
    if not len(places):
        return near[:0]
    among: np.ndarray = near[places.take(np.searchsorted(places, at), mode="clip") == at]
    return among


def _folded(query: Query, survivors: Survivors, refuted: Mapping[Leaf, np.ndarray], live: np.ndarray) -> Survivors:
    """Return the survivors with the outcomes that are left where some leaf is refuted."""
    some = np.flatnonzero(np.logical_or.reduce(list(refuted.values())) & live)
    if not len(some):
        return survivors
    blocks = survivors.blocks.take(some)
    flags = {leaf: mask[some] for leaf, mask in refuted.items()}
    for leaf, by_filters in survivors.refuted(blocks).items():
        flags[leaf] = flags.get(leaf, np.zeros(len(some), bool)) | by_filters
    outcomes = survivors.outcomes.copy()
    outcomes[some] &= evaluate_refuted(query.predicate, blocks, flags)
    return replace(survivors, known=outcomes)


def _only(survivors: Survivors, kept: np.ndarray) -> Survivors:
    """Return some of the survivors; their outcomes are not computed for the sake of the others."""
    if survivors.known is None and survivors.row_ranges is None:
        return replace(survivors, blocks=survivors.blocks.take(kept))
    return survivors.take(kept)
