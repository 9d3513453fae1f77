"""Page statistics of one column over the blocks of a segment: the files' own page index, prepared for pruning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from secateur.index.zones.zonemap import ZoneMap, concat
from secateur.ragged import elements_of, offsets_of


@dataclass(frozen=True)
class Places:
    """Where pages lie in their file: int64 of shape (n_pages,); -1 for a block treated as one page."""

    position: np.ndarray  # offset in the file
    size: np.ndarray  # compressed bytes with the page header

    def take(self, pages: np.ndarray) -> Places:
        """Return the places of the given pages."""
        return Places(self.position[pages], self.size[pages])


@dataclass(frozen=True)
class PageTable:
    """The pages of a column: those of block b are [offsets[b], offsets[b + 1]). A block has at least one.

    A block without a page index has one page, the block itself. `places` is None if only pruning needs the table.
    """

    offsets: np.ndarray  # int64 of shape (n_blocks + 1,)
    first_row: np.ndarray  # int64, within the block
    zone_map: ZoneMap
    places: Places | None = None

    def row_counts(self, block_rows: np.ndarray) -> np.ndarray:
        """Return the row count of every page."""
        return page_row_counts(self.offsets, self.first_row, block_rows)


def page_row_counts(offsets: np.ndarray, first_row: np.ndarray, block_rows: np.ndarray) -> np.ndarray:
    """Return the row count of every page: up to the next page of its block, or to the block's end."""
    following = np.append(first_row[1:], 0)
    following[offsets[1:] - 1] = block_rows
    return following - first_row


def whole_blocks(zone_map: ZoneMap) -> PageTable:
    """Return every block as one page."""
    n = len(zone_map)
    nowhere = np.full(n, -1, np.int64)
    return PageTable(np.arange(n + 1, dtype=np.int64), np.zeros(n, np.int64), zone_map, Places(nowhere, nowhere))


def concat_pages(parts: Sequence[PageTable]) -> PageTable:
    """Concatenate the page tables of consecutive blocks (at least one). Places are known if all parts know theirs."""
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    places = [part.places for part in parts if part.places is not None]
    return PageTable(
        offsets_of(counts),
        np.concatenate([part.first_row for part in parts]),
        concat([part.zone_map for part in parts]),
        _concat_places(places) if len(places) == len(parts) else None,
    )


def _concat_places(parts: Sequence[Places]) -> Places:
    return Places(np.concatenate([part.position for part in parts]), np.concatenate([part.size for part in parts]))


def take_pages(table: PageTable, blocks: np.ndarray) -> PageTable:
    """Return the pages of the given blocks, in that order."""
    offsets, pages = offsets_of(np.diff(table.offsets)[blocks]), elements_of(table.offsets, blocks)
    places = None if table.places is None else table.places.take(pages)
    return PageTable(offsets, table.first_row[pages], table.zone_map.take(pages), places)
