"""Classify files for a DELETE, an UPDATE or a MERGE: untouched, droppable, or to be rewritten."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.arrays import flags
from secateur.pruning.statistics import Blocks


@dataclass(frozen=True)
class Affected:
    """The live files of a table, each in one of three lists, by paths as in ``plan.files``."""

    untouched: list[str]  # no row matches
    whole: list[str]  # every row matches: the file can be dropped unread
    rewritten: list[str]  # some rows may match, and others may not


def affected_files(paths: pa.Array, rows: np.ndarray, blocks: Blocks, matching: np.ndarray) -> Affected:
    """Classify files by their surviving blocks, and by which of those are `matching` with all their rows.

    `rows` has the row count of every file, without blocks that hold only deleted rows; -1 if unknown. Sound: no stage
    drops a block that holds a match, so a file without survivors has none; and a file whose rows are all in matching
    blocks has no row for which the predicate is FALSE or NULL. If a block was dropped, the counts differ.
    """
    survives, matching_rows = np.zeros(len(paths), bool), np.zeros(len(paths), np.int64)
    survives[blocks.file] = True
    np.add.at(matching_rows, blocks.file[matching], blocks.row_count[matching])
    whole = survives & (matching_rows == rows)
    return Affected(*(paths.filter(flags(chosen)).to_pylist() for chosen in (~survives, whole, survives & ~whole)))
