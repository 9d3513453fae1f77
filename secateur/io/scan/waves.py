"""Read blocks in waves: a few at first, then more, until no other block can change the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from secateur.integers import sorted_distinct
from secateur.io.scan.block_list import BlockList, reading_order
from secateur.io.scan.reading.block_reader import BlockReader, block_reader
from secateur.io.scan.surviving_blocks import ReadablePlan, surviving_blocks
from secateur.pruning.residual import Residuals

FIRST, MOST = 1, 64  # blocks read at once, doubled each time


def wave_sizes() -> Iterator[int]:
    """Yield the greatest number of blocks to read at once, wave by wave."""
    size = FIRST
    while True:
        yield size
        size = min(2 * size, MOST)


def wave(
    plan: ReadablePlan, positions: np.ndarray, fields: Sequence[pa.Field], residuals: Residuals
) -> tuple[BlockReader, BlockList]:
    """Return a reader of some surviving blocks, and the blocks file by file.

    Only those delete files are read that apply to the blocks' files.
    """
    blocks, opened = plan.survivors.blocks, plan.opened
    delivery = opened.table.delivery(opened.listing, sorted_distinct(blocks.file[positions]))
    reader = block_reader(opened, delivery, fields, residuals)
    in_order = positions[reading_order(blocks.file[positions], blocks.row_group[positions])]
    return reader, surviving_blocks(plan, in_order, reader, delivery.options)
