"""Stage "pages": the algebra over blocklets, the row ranges between any two page ends of the predicate's columns.

Pages of different columns end at different rows. Cut a block wherever a page of any of them ends: on every piece,
a blocklet, each column lies within one page, whose bounds hold for the piece. So AND, OR, NOT and several columns
work on pages as they do on blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from secateur.pruning.conjuncts import alive
from secateur.pruning.predicate.bound import Field, fields
from secateur.pruning.statistics import Blocks, Pages
from secateur.pruning.survivors import PageCounts, Query, RowRanges, Survivors
from secateur.pruning.zones import Zones
from secateur.values import sorted_distinct


@dataclass(frozen=True)
class Blocklets:
    """Statistics over blocklets: `block` and [start, stop) of each, in order of block and row."""

    blocks: Blocks
    block: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    pages: dict[Field, Pages]

    def __len__(self) -> int:
        return len(self.block)

    @property
    def row_count(self) -> np.ndarray:
        return self.stop - self.start

    def page_of(self, pages: Pages) -> np.ndarray:
        """The page in which every blocklet lies."""
        return np.searchsorted(_keys(pages), _key(self.block, self.start), side="right") - 1

    def zones(self, column: Field) -> Zones | None:
        """The zone maps of the pages that the blocklets lie in, or of their blocks."""
        pages = self.pages.get(column)
        if pages is not None:
            return pages.zones.take(self.page_of(pages))
        zones = self.blocks.zones(column)
        return None if zones is None else zones.take(self.block)


def prune_pages(query: Query, survivors: Survivors) -> Survivors:
    """Keeps the row ranges that page bounds cannot rule out, and the blocks that have any.

    Sound: every row of a block lies in exactly one blocklet.
    """
    blocks = survivors.blocks
    if blocks is None or not len(blocks):
        return survivors
    found = {field: blocks.pages(field) for field in fields(query.predicate)}
    pages = {field: p for field, p in found.items() if p is not None}
    if not pages or survivors.fully_matching.all():
        return survivors
    blocklets = _cut(blocks, pages)
    survives = alive(query.predicate, blocklets).units
    before = sum(int(p.offsets[-1]) for p in pages.values())
    after = sum(int(np.count_nonzero(np.bincount(blocklets.page_of(p)[survives]))) for p in pages.values())
    query.notes.append(f"{len(blocklets.block):,} blocklets, cut by the pages of {len(pages)} columns")
    kept = np.flatnonzero(np.bincount(blocklets.block[survives], minlength=len(blocks)))
    ranges = _merge(blocklets, survives, kept)
    return replace(survivors.take(kept), row_ranges=ranges, pages=PageCounts(before, after))


def _cut(blocks: Blocks, pages: dict[Field, Pages]) -> Blocklets:
    keys = sorted_distinct(np.concatenate([_keys(p) for p in pages.values()]))
    block, start = keys >> 40, keys & ((1 << 40) - 1)
    last = np.append(np.diff(block) > 0, True)
    stop = np.where(last, blocks.row_count[block], np.append(start[1:], 0))
    return Blocklets(blocks, block, start, stop, pages)


def _keys(pages: Pages) -> np.ndarray:
    """(block, first row) of every page as one ascending integer."""
    return _key(np.repeat(np.arange(len(pages.offsets) - 1), np.diff(pages.offsets)), pages.first_row)


def _key(block: np.ndarray, row: np.ndarray) -> np.ndarray:
    return (block.astype(np.int64) << 40) | row


def _merge(blocklets: Blocklets, survives: np.ndarray, kept: np.ndarray) -> RowRanges:
    """Surviving blocklets that touch become one range; blocks are renumbered to the kept ones."""
    block = np.searchsorted(kept, blocklets.block[survives])
    start, stop = blocklets.start[survives], blocklets.stop[survives]
    touches = (block[1:] == block[:-1]) & (start[1:] == stop[:-1])
    first = np.flatnonzero(np.append(True, ~touches)) if len(start) else np.zeros(0, np.int64)
    last = np.append(first[1:], len(start))[: len(first)] - 1
    counts = np.bincount(block[first], minlength=len(kept))
    return RowRanges(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), start[first], stop[last])
