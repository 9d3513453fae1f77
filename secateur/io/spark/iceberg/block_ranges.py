"""The byte ranges of blocks that aggregates have left to read: no other block that survives is read with them.

Iceberg's reader takes the row groups whose midpoint lies in its range. A manifest may leave out where row groups begin,
and a scan of all rows that match may then read more. But a block that statistics have answered for would be counted
twice. So files with both kinds of blocks are cut where the index has seen their row groups begin and end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from secateur.errors import SecateurError
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark.iceberg.task_json import Range
from secateur.io.spark.planner.known_aggregates import Reading, Rest
from secateur.io.spark.planner.splits import placed_by_index, stored_ranges


def in_ranges(scan: PlannedScan) -> Reading:
    """Return what Iceberg reads of a plan: blocks one by one where the index knows that they lie apart."""

    def left_out(answered: np.ndarray) -> np.ndarray:
        """Keep all blocks of a file with a block to read, if it is not known where they are or if they overlap."""
        file = scan.survivors.blocks.file
        mixed = np.intersect1d(file[answered], file[~answered])
        apart = [number for number, placed in _placed(scan, mixed) if stored_ranges(placed) is not None]
        return answered & ~np.isin(file, np.setdiff1d(mixed, apart))

    return Reading(scan, left_out)


def exact_ranges(rest: Rest) -> dict[int, tuple[Range, ...]]:
    """Return the ranges of files of which some blocks are left to read, and statistics answer for others.

    Raises SecateurError if the index no longer tells where these blocks are.
    """
    mixed = np.intersect1d(rest.answered, rest.scan.survivors.blocks.file)
    return {number: _ranges(placed) for number, placed in _placed(rest.scan, mixed)}


def _ranges(placed: np.ndarray) -> tuple[Range, ...]:
    ranges = stored_ranges(placed)
    if ranges is None:
        raise SecateurError("the index has lost where row groups begin")
    return tuple((start, stop - start) for start, stop in ranges.T.tolist())


def _placed(scan: PlannedScan, files: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield some files, and where their surviving row groups begin and how long they are: int64 of shape (2, n)."""
    blocks, order = scan.survivors.blocks, scan.order()
    wanted = np.isin(blocks.file[order], files)
    placed = placed_by_index(blocks, order, wanted)
    of_file = blocks.file[order]
    for number in files.tolist():
        yield number, placed[:, slice(*np.searchsorted(of_file, [number, number + 1]))]
