"""Which of the rows that were read meet a condition; their positions are not copied before they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(eq=False)
class PassedRows:
    """Rows of some row groups that meet a condition, batch by batch, in order."""

    batches: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    # the ascending positions of the rows of every batch that has a match, and which of them match

    def add(self, positions: np.ndarray, passing: np.ndarray) -> bool:
        """Add the rows of a batch, and return whether one matches."""
        has_match = bool(passing.any())
        if has_match:
            self.batches.append((positions, passing))
        return has_match

    def __len__(self) -> int:
        """The number of rows that match."""
        return sum(int(np.count_nonzero(passing)) for _, passing in self.batches)

    @property
    def positions(self) -> np.ndarray:
        """The positions of the rows that match: int64, ascending."""
        return np.concatenate([np.zeros(0, np.int64), *(rows.compress(passing) for rows, passing in self.batches)])

    def sampled(self, step: int) -> np.ndarray:
        """Return the positions of those rows that match among every so many rows: int64, ascending."""
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
