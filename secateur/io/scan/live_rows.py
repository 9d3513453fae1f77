"""How many rows the blocks of a plan have that are not deleted, where all of these match."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from secateur.io.scan.opened_table import OpenedTable
from secateur.pruning.stages.deletes import deleted_rows
from secateur.pruning.stages.survivors import Survivors


class PrunedPlan(Protocol):
    """The parts of a plan that rows are counted by."""

    @property
    def opened(self) -> OpenedTable: ...
    @property
    def survivors(self) -> Survivors: ...
    @property
    def complete_blocks(self) -> np.ndarray: ...


def complete_rows(plan: PrunedPlan) -> np.ndarray:
    """Return the rows of every complete block, int64 of shape (n_blocks,); -1 of any other block."""
    return np.where(plan.complete_blocks, plan.survivors.blocks.row_count, -1)


def live_rows(plan: PrunedPlan, most_bytes: float = np.inf) -> np.ndarray:
    """Return how many rows of every block are not deleted, int64 of shape (n_blocks,); -1 if that takes reading it.

    Deleted positions are read, for files with a block whose rows all match, unless their delete files have more than so
    many bytes. Where rows are deleted by their values, blocks have to be read.
    """
    blocks, listing, files = plan.survivors.blocks, plan.opened.listing, plan.opened.catalog.files
    live = complete_rows(plan)
    deleted_from = np.flatnonzero((live < 0) & plan.survivors.fully_matching)
    touched = np.unique(blocks.file[deleted_from])
    touched = touched[~listing.deleted_by_value(touched)] if len(touched) else touched
    if not len(touched) or listing.delete_counts(touched).applied_bytes > most_bytes:
        return live
    positions = files.deleted(touched, touched)
    if positions is None:
        return live
    counted = deleted_from[np.isin(blocks.file[deleted_from], touched)]
    among = blocks.take(counted)
    deleted = deleted_rows(plan.opened.catalog, among, dict(zip(touched.tolist(), positions, strict=True)))
    live[counted] = among.row_count - deleted
    return live
