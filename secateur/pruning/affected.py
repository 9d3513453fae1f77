"""Which files a DELETE, an UPDATE or a MERGE has to do with: what it can leave, what it can drop, what it rewrites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.arrays import flags
from secateur.pruning.statistics import Blocks


@dataclass(frozen=True)
class Affected:
    """The live files of a table, each in one of three lists, by paths as in ``plan.files``."""

    untouched: list[str]  # no row of them matches
    whole: list[str]  # every row of them matches: they may be dropped unread
    rewritten: list[str]  # some rows may match, and others not


def affected_files(paths: pa.Array, rows: np.ndarray, blocks: Blocks, matching: np.ndarray) -> Affected:
    """The files of a table by the blocks that survive, and those of them that are `matching` with all their rows.

    `rows` has the rows of every file, but for blocks that hold only deleted ones; -1 where unknown. Sound: no stage
    drops a block that holds a match, so a file without survivors has none; and a file that has no other rows than those
    of matching blocks has no row for which the predicate is FALSE or NULL. Where a block was dropped, there are others.
    """
    survives, sure = np.zeros(len(paths), bool), np.zeros(len(paths), np.int64)
    survives[blocks.file] = True
    np.add.at(sure, blocks.file[matching], blocks.row_count[matching])
    whole = survives & (sure == rows)
    return Affected(*(paths.filter(flags(each)).to_pylist() for each in (~survives, whole, survives & ~whole)))
