"""Stage "files": partition values and file names decide whole files before anything of the index is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from secateur.pruning.conjuncts import alive
from secateur.pruning.predicate.bound import fields
from secateur.pruning.survivors import Query, Survivors


def prune_files(query: Query, survivors: Survivors) -> Survivors:
    """Keeps the files whose partition values and names may satisfy the predicate.

    Sound: a partition value is the value of the column in every row of the file, an exact bound.
    """
    files = query.catalog.files
    if all(files.zones(field) is None for field in fields(query.predicate)):
        return survivors
    survives = np.zeros(len(files), bool)
    survives[alive(query.predicate, files).units] = True
    if survives.all():
        return survivors
    return replace(survivors, files=survives, segments=query.catalog.everywhere(survives))
