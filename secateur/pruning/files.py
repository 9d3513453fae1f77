"""Stage "files": partition values and file names decide whole files before anything of the index is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from secateur.pruning.conjuncts import alive
from secateur.pruning.survivors import Query, Survivors


def prune_files(query: Query, survivors: Survivors) -> Survivors:
    """Keeps the files whose partition values and names may satisfy the predicate.

    Sound: a partition value is the value of the column in every row of the file, an exact bound.
    """
    files = np.zeros(len(survivors.files), bool)
    files[alive(query.predicate, query.catalog.files).units] = True
    files &= survivors.files
    return replace(survivors, files=files, segments=query.catalog.segments(files))
