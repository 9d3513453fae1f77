"""Which of the rows that were read meet a condition; their positions are not copied before they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

SPARSE = 8  # bytes of a position, for one of a flag


@dataclass(eq=False)
class PassedRows:
    """Rows of some row groups that meet a condition, batch by batch, in order."""

    batches: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    # ascending positions of rows of every batch that has a match, all that match among them, and which do

    def add(self, positions: np.ndarray, passing: np.ndarray) -> bool:
        """Add the rows of a batch, and return whether one matches."""
        count = int(np.count_nonzero(passing))
        if count * SPARSE < len(passing):  # few positions take less memory than the flags of all
            positions, passing = positions.compress(passing), np.ones(count, bool)
        if count:
            self.batches.append((positions, passing))
        return count > 0

    def __len__(self) -> int:
        """The number of rows that match."""
        return sum(int(np.count_nonzero(passing)) for _, passing in self.batches)

    @property
    def positions(self) -> np.ndarray:
        """The positions of the rows that match: int64, ascending."""
        return np.concatenate([np.zeros(0, np.int64), *(rows.compress(passing) for rows, passing in self.batches)])

    def sampled(self, step: int) -> np.ndarray:
        """Return the positions of some rows that match, those among every so many that are kept: int64, ascending."""
        return PassedRows([(rows[::step], passing[::step]) for rows, passing in self.batches]).positions

    def with_match(self, ends: np.ndarray) -> np.ndarray:
        """Return which row groups have a row that matches: bool of shape (n,); row group i ends before ends[i + 1]."""
        held = np.zeros(len(ends) - 1, bool)
        for positions, passing in self.batches:
            cuts = positions.searchsorted(ends)
            filled = np.flatnonzero(cuts[1:] > cuts[:-1])
            held[filled] |= np.logical_or.reduceat(passing, cuts[filled])
        return held

    def between(self, begin: int, end: int) -> PassedRows:
        """Return the rows at positions of [begin, end)."""
        inside = PassedRows()
        for positions, passing in self.batches:
            here = slice(*positions.searchsorted([begin, end]).tolist())
            inside.add(positions[here], passing[here])
        return inside
