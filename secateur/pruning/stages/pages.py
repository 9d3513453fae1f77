"""Stage "pages": evaluate the predicate over blocklets, the row ranges between page ends of its columns.

Pages of different columns end at different rows. A block is cut wherever a page of any of them ends; within such a
blocklet each column lies in one page, whose bounds hold for the blocklet. So AND, OR, NOT and several columns work on
pages as they do on blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from secateur.integers import sorted_distinct
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.conjuncts import alive
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.bound_walks import fields
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import counted
from secateur.pruning.row_ranges import RowRanges, intersection
from secateur.pruning.stages.survivors import PageCounts, Query, Survivors
from secateur.pruning.statistics import Blocks, Pages, Statistics
from secateur.ragged import offsets_of, runs_of

BLOCKS_AT_ONCE = 1 << 15  # limits the memory for their pages


@dataclass(frozen=True)
class Blocklets:
    """Statistics over blocklets: `block` and [start, stop) of each, in order of block and row."""

    blocks: Statistics
    block: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    pages: Mapping[Field, Pages]

    def __len__(self) -> int:
        return len(self.block)

    @property
    def row_count(self) -> np.ndarray:
        return self.stop - self.start

    def page_of(self, pages: Pages) -> np.ndarray:
        """Return the page that each blocklet lies in."""
        return np.searchsorted(_keys(pages), _key(self.block, self.start), side="right") - 1

    def zones(self, column: Field) -> Zones | None:
        """Return the zone maps of the blocklets' pages, or of their blocks if the column has no pages."""
        pages = self.pages.get(column)
        if pages is not None:
            return pages.zones.take(self.page_of(pages))
        zones = self.blocks.zones(column)
        return None if zones is None else zones.take(self.block)


@dataclass(frozen=True)
class Spans:
    """Rows [start, stop) of blocks, given by position among the survivors, in order of block and row."""

    block: np.ndarray
    start: np.ndarray
    stop: np.ndarray


def prune_pages(query: Query, survivors: Survivors) -> Survivors:
    """Keep the row ranges that page bounds cannot rule out, and the blocks that have any.

    Sound: every row of a block lies in exactly one blocklet. Fully matching blocks keep all rows. Where row lists say
    which rows hold all that is asked for, the pages of the same columns say nothing more, and are not read.
    """
    blocks, known = survivors.blocks, survivors.row_ranges
    columns = fields(query.predicate)
    if not any(blocks.has_pages(column) for column in columns):
        return survivors
    is_settled = survivors.fully_matching
    if survivors.is_listed and known is not None:
        is_settled |= ~known.are_whole(blocks.row_count)
    unsure = np.flatnonzero(~is_settled)
    if not len(unsure):
        return survivors
    spans = [_whole(blocks, np.flatnonzero(is_settled))]
    before = after = cut = 0
    for start in range(0, len(unsure), BLOCKS_AT_ONCE):
        chosen = unsure[start : start + BLOCKS_AT_ONCE]
        if query.is_late:
            spans.append(_whole(blocks, unsure[start:]))
            break
        part = blocks.take(chosen)
        pages = {column: table for column in columns if (table := part.pages(column)) is not None}
        if not pages:
            spans.append(_whole(blocks, chosen))
            continue
        blocklets = _cut(part, pages)
        survives = alive(query.predicate, blocklets).units
        before += sum(int(p.offsets[-1]) for p in pages.values())
        after += sum(int(np.count_nonzero(np.bincount(blocklets.page_of(p)[survives]))) for p in pages.values())
        cut += len(blocklets)
        spans.append(_merged(blocklets, survives, chosen))
    query.notes.append(f"{counted(cut, 'blocklet')}, cut by the pages of the predicate's columns")
    kept, ranges = _ranges(spans, len(blocks))
    left = replace(survivors.take(kept), row_ranges=ranges, pages=PageCounts(before, after))
    return left if known is None else _narrowed(left, known.take(kept))


def _narrowed(survivors: Survivors, known: RowRanges) -> Survivors:
    """Keep only rows that were left before, too."""
    assert survivors.row_ranges is not None, "the caller has set them"
    ranges = intersection(known, survivors.row_ranges)
    kept = np.flatnonzero(np.diff(ranges.offsets))
    return replace(survivors.take(kept), row_ranges=ranges.take(kept))


def may_match_in_pages(predicate: Predicate, blocks: Blocks) -> np.ndarray:
    """Return which blocks have a blocklet that page bounds cannot rule out: bool of shape (n_blocks,).

    For columns without pages the block's bounds are used.
    """
    may_match = np.zeros(len(blocks), bool)
    columns = fields(predicate)
    for start in range(0, len(blocks), BLOCKS_AT_ONCE):
        part = blocks.take(slice(start, start + BLOCKS_AT_ONCE))
        pages = {column: table for column in columns if (table := part.pages(column)) is not None}
        blocklets = _cut(part, pages) if pages else None
        units = (
            alive(predicate, part).units if blocklets is None else blocklets.block[alive(predicate, blocklets).units]
        )
        may_match[start + units] = True
    return may_match


def surviving_rows(
    predicate: Predicate, block: Statistics, pages: Mapping[Field, Pages]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the row ranges [start, stop) of one block that page bounds cannot rule out.

    At least one column must have pages; for the others the block's bounds are used. Ranges ascend without touching.
    """
    blocklets = _cut(block, pages)
    ranges = _merged(blocklets, alive(predicate, blocklets).units, np.zeros(1, np.int64))
    return ranges.start, ranges.stop


def _whole(blocks: Blocks, chosen: np.ndarray) -> Spans:
    """Return all rows of some blocks."""
    return Spans(chosen, np.zeros(len(chosen), np.int64), blocks.row_count[chosen])


def _cut(blocks: Statistics, pages: Mapping[Field, Pages]) -> Blocklets:
    keys = sorted_distinct(np.concatenate([_keys(p) for p in pages.values()]))
    block, start = keys >> 40, keys & ((1 << 40) - 1)
    last = np.append(np.diff(block) > 0, True)
    stop = np.where(last, blocks.row_count[block], np.append(start[1:], 0))
    return Blocklets(blocks, block, start, stop, pages)


def _keys(pages: Pages) -> np.ndarray:
    """Combine (block, first row) of every page into one ascending integer."""
    return _key(np.repeat(np.arange(len(pages.offsets) - 1), np.diff(pages.offsets)), pages.first_row)


def _key(block: np.ndarray, row: np.ndarray) -> np.ndarray:
    return (block.astype(np.int64) << 40) | row


def _merged(blocklets: Blocklets, survives: np.ndarray, chosen: np.ndarray) -> Spans:
    """Merge touching blocklets that survive, in the chosen blocks."""
    block = blocklets.block[survives]
    start, stop = blocklets.start[survives], blocklets.stop[survives]
    touches = (block[1:] == block[:-1]) & (start[1:] == stop[:-1])
    first, last = runs_of(~touches, len(start))
    return Spans(chosen[block[first]], start[first], stop[last])


def _ranges(parts: list[Spans], blocks: int) -> tuple[np.ndarray, RowRanges]:
    """Return which of n blocks have a span, ascending, and their row ranges."""
    block, start, stop = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("block", "start", "stop")
    )
    order = np.argsort(block, kind="stable")
    counts = np.bincount(block, minlength=blocks)
    kept = np.flatnonzero(counts)
    return kept, RowRanges(offsets_of(counts[kept]), start[order], stop[order])
