"""Stage "limit": keep just as many fully matching blocks as hold enough rows."""

from __future__ import annotations

import numpy as np

from secateur.pruning.stages.survivors import Query, Survivors


def is_unordered(query: Query) -> bool:
    """Return whether any rows will do, so that a limit may take whichever come first."""
    return query.order is None


def prune_by_limit(query: Query, survivors: Survivors) -> Survivors:
    """Keep just enough fully matching blocks, if these hold `limit` rows.

    Sound without ORDER BY: LIMIT n may return any n matching rows, and every row of the blocks kept matches. Blocks of
    files with deleted rows do not count.
    """
    if query.limit is None:
        return survivors
    matching = survivors.fully_matching
    touched = query.catalog.files.touched
    complete = np.flatnonzero(matching if touched is None else matching & ~touched[survivors.blocks.file])
    rows = np.cumsum(survivors.blocks.row_count[complete])
    if not len(complete) or rows[-1] < query.limit:
        return survivors
    return survivors.take(complete[: int(np.searchsorted(rows, query.limit)) + 1])
