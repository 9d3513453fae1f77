"""Stage "files": prune whole files by the table's own metadata, before the index is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from secateur.pruning.bounds.outcomes import TRUE
from secateur.pruning.conjuncts import alive
from secateur.pruning.predicate.bound import Leaf
from secateur.pruning.predicate.bound_walks import fields, leaves
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.questions import questions
from secateur.pruning.stages.survivors import Query, SurvivingSegments, evaluate_with
from secateur.pruning.statistics import Files


def prune_files(query: Query, left: SurvivingSegments) -> SurvivingSegments:
    """Keep the files that may satisfy the predicate according to the table's own metadata.

    Sound: a partition value is the column's value in every row of the file, or bounds it; all rows whose values fall
    into a bucket are in that bucket's files; file statistics in a format's metadata are ordinary bounds. Files that the
    query does not ask for count for nothing, so they go before rows are counted for a limit.
    """
    files = query.catalog.files
    has_zones = any(files.zones(field) is not None for field in fields(query.predicate))
    evidence = evidence_of_files(query.predicate, files)
    if not has_zones and not evidence and query.files is None:
        return left
    survives = np.ones(len(files), bool)
    if has_zones:
        survives[:] = False
        survives[alive(query.predicate, files).units] = True
    if evidence:
        survives &= (evaluate_with(query.predicate, files, evidence) & TRUE) != 0
    if query.files is not None:
        survives &= query.files
    if survives.all():
        return left
    return replace(left, files=survives, segments=query.catalog.everywhere(survives))


def evidence_of_files(predicate: Predicate, files: Files) -> dict[Leaf, np.ndarray]:
    """Return, for every leaf that buckets can refute, the files that may hold what it asks for."""
    evidence = {}
    for leaf in dict.fromkeys(leaves(predicate)):
        by_question = [holders for question in questions(leaf) if (holders := files.holders(question)) is not None]
        if by_question:
            evidence[leaf] = np.flatnonzero(np.logical_and.reduce(by_question))
    return evidence
