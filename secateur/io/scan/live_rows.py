"""How many rows the blocks of a plan have that are not deleted, where all of these match."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from secateur.io.scan.opened_table import OpenedTable
from secateur.pruning.ordered_values import ExactRows
from secateur.pruning.row_ranges import complement, rows_of_blocks
from secateur.pruning.stages.deletes import deleted_places, deleted_rows
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
    blocks, live = plan.survivors.blocks, complete_rows(plan)
    deleted_from = np.flatnonzero((live < 0) & plan.survivors.fully_matching)
    counted, positions = _positions(plan, deleted_from, most_bytes)
    if len(counted):
        among = blocks.take(counted)
        live[counted] = among.row_count - deleted_rows(plan.opened.catalog, among, positions)
    return live


def rows_alive(plan: PrunedPlan, wanted: np.ndarray, most_bytes: float = np.inf) -> ExactRows | None:
    """Return which rows are not deleted; None if no row of the table is.

    They are known of the files without deletes, and of the `wanted` blocks, by ascending positions, whose deleted rows
    are known as in :func:`live_rows`.
    """
    blocks, touched = plan.survivors.blocks, plan.opened.listing.touched
    if touched is None:
        return None
    is_known = ~touched[blocks.file]
    known, positions = _positions(plan, wanted[~is_known[wanted]], most_bytes)
    is_known[known] = True
    block, row = deleted_places(plan.opened.catalog, blocks.take(known), positions) if len(known) else (known, known)
    deleted = rows_of_blocks(known[block], row, blocks.row_count, ~is_known)
    return ExactRows(complement(deleted, blocks.row_count), is_known)


def _positions(plan: PrunedPlan, blocks: np.ndarray, most_bytes: float) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Return those of some blocks whose deleted rows are all named by positions, and these, by the file."""
    file, listing = plan.survivors.blocks.file[blocks], plan.opened.listing
    touched = np.unique(file)
    touched = touched[~listing.deleted_by_value(touched)] if len(touched) else touched
    if not len(touched) or listing.delete_counts(touched).applied_bytes > most_bytes:
        return blocks[:0], {}
    positions = plan.opened.catalog.files.deleted(touched, touched)
    if positions is None:
        return blocks[:0], {}
    return blocks[np.isin(file, touched)], dict(zip(touched.tolist(), positions, strict=True))
