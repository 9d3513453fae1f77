"""Stage "files": partition values and file names decide whole files before anything of the index is read."""

from __future__ import annotations

from dataclasses import replace

from secateur.pruning.evaluate import evaluate
from secateur.pruning.outcomes import survives
from secateur.pruning.survivors import Query, Survivors


def prune_files(query: Query, survivors: Survivors) -> Survivors:
    """Keeps the files whose partition values and names may satisfy the predicate.

    Sound: a partition value is the value of the column in every row of the file, an exact bound.
    """
    files = survivors.files & survives(evaluate(query.predicate, query.catalog.files))
    return replace(survivors, files=files, segments=query.catalog.segments(files))
