"""Which blocks of a plan held a match, by what its reader has found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import strings
from secateur.pruning.order import Order
from secateur.pruning.reporters import Matches, tell_of_read
from secateur.pruning.verdicts import places_of

if TYPE_CHECKING:
    from secateur.io.scan.opened_table import OpenedTable
    from secateur.io.tables.file_rows import FileBlocks
    from secateur.pruning.report import Report
    from secateur.pruning.stages.survivors import Survivors


class TalliedPlan(Protocol):
    """The parts of a plan that a tally needs."""

    @property
    def opened(self) -> OpenedTable: ...
    @property
    def survivors(self) -> Survivors: ...
    @property
    def report(self) -> Report: ...
    @property
    def paths(self) -> pa.Array: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def order_by(self) -> Order | None: ...
    @property
    def is_part(self) -> bool: ...


class MatchTally:
    """The blocks in which one read of a plan has found no match; threads share it."""

    def __init__(self, plan: TalliedPlan) -> None:
        self._plan = plan
        self._without: list[tuple[str, Sequence[int]]] = []

    def without_match(self, file: FileBlocks, residual: int, row_groups: Sequence[int]) -> None:
        """Note row groups of a file whose rows were all looked at, and none matches."""
        self._without.append((file.path, row_groups))

    def finish(self, live: np.ndarray | None = None) -> None:
        """Tell whoever listens that the plan was read to its end.

        `live` has the rows of every block that are known to match and not to be deleted; -1 of those that were read.
        A plan with a limit, and a part of a plan, tell nothing.
        """
        plan = self._plan
        if plan.limit is None and plan.order_by is None and not plan.is_part:
            tell_of_read(plan.report, partial(self._matches, live))

    def _matches(self, live: np.ndarray | None) -> Matches | None:
        """Count the blocks that held a match; None if some may have none because all of their rows are deleted."""
        survivors, touched = self._plan.survivors, self._plan.opened.listing.touched
        blocks = survivors.blocks
        holds = np.ones(len(blocks), bool) if live is None else live != 0
        if touched is not None:
            not_looked_at = survivors.fully_matching & touched[blocks.file]  # whether a row is left was not asked
            if (not_looked_at if live is None else not_looked_at & (live < 0)).any():
                return None
        if self._without:
            holds &= ~np.isin(places_of(blocks.file, blocks.row_group), self._places())
        size = blocks.byte_count
        return Matches(len(blocks), int(size.sum()), int(holds.sum()), int(size[holds].sum()))

    def _places(self) -> np.ndarray:
        """Return the blocks without a match by their places."""
        paths = strings([path for path, _ in self._without]).cast(self._plan.paths.type)
        file = pc.index_in(paths, value_set=self._plan.paths).to_numpy().astype(np.int64)
        count = [len(row_groups) for _, row_groups in self._without]
        row_groups = [row_group for _, some in self._without for row_group in some]
        return places_of(np.repeat(file, count), np.array(row_groups, np.int64))
