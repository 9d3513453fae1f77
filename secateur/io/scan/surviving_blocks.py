"""The surviving blocks of a plan, as described to readers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index.naming import ByFieldId
from secateur.index.read.blocks import OpenedBlocks
from secateur.index.zones.page_locations import BlockLocations
from secateur.io.parquet.file_metadata import FileMetadata
from secateur.io.parquet.row_group_reader import CHUNK_COST
from secateur.io.scan.block_list import BlockList, block_list
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.reading.block_reader import BlockReader
from secateur.io.scan.reading.opened_rows import PAGE_CELL
from secateur.io.scan.stored_locations import locations_of
from secateur.pruning.residual import Residuals
from secateur.pruning.row_ranges import RowRanges
from secateur.pruning.stages.survivors import Survivors

_log = logging.getLogger("secateur")

MOST_LOCATED = 256  # blocks; for more, readers use footers, many in parallel
# One after the other, for a footer and for row groups together. Without footers, each row group takes a request.
FOOTER_REQUESTS = 3


class ReadablePlan(Protocol):
    """The parts of a plan that its reader needs."""

    @property
    def opened(self) -> OpenedTable: ...
    @property
    def survivors(self) -> Survivors: ...
    @property
    def residuals(self) -> Residuals: ...


def surviving_blocks(
    scan: ReadablePlan, positions: np.ndarray, reader: BlockReader, options: pa.Array, *, is_sent: bool = False
) -> BlockList:
    """List surviving blocks by position, file by file, for this process or to be sent to others.

    `options` has the reader options of their files, in order.
    """
    blocks = scan.survivors.blocks
    share = len(reader.needed) / max(1, len(scan.opened.schema))
    return block_list(
        scan.opened.listing,
        options,
        blocks.file[positions],
        blocks.row_group[positions],
        scan.residuals.of_block[positions],
        _ranges(scan, positions),
        _locations(scan, positions, reader, is_sent=is_sent),
        share * int(surviving_bytes(scan)[positions].sum()),
    )


def surviving_bytes(scan: ReadablePlan) -> np.ndarray:
    """Return the compressed bytes of every block's surviving rows, pro rata by row count: int64, all columns.

    Where postings leave single rows, a page is read for each.
    """
    blocks, ranges = scan.survivors.blocks, scan.survivors.row_ranges
    if ranges is None:
        return blocks.byte_count
    if scan.opened.catalog.lists_rows:
        ranges = replace(ranges, stop=np.maximum(ranges.stop, ranges.start + PAGE_CELL))
    share = np.minimum(ranges.row_counts / np.maximum(blocks.row_count, 1), 1)
    return (blocks.byte_count * share).astype(np.int64)


def _has_many(files: np.ndarray) -> np.ndarray:
    """Return which files, one for each block, have so many blocks that reading their footers saves requests."""
    _, at, count = np.unique(files, return_inverse=True, return_counts=True)
    return count[at] > FOOTER_REQUESTS


def _ranges(scan: ReadablePlan, positions: np.ndarray) -> RowRanges | None:
    """Return the row ranges of blocks of which not all rows may match; None if no pages were checked."""
    blocks, ranges = scan.survivors.blocks, scan.survivors.row_ranges
    return None if ranges is None else ranges.take(positions).partial(blocks.row_count[positions])


def _locations(
    scan: ReadablePlan, positions: np.ndarray, reader: BlockReader, *, is_sent: bool
) -> BlockLocations | None:
    """Return the page locations of the needed columns from the index; None where footers serve as well."""
    blocks = scan.survivors.blocks
    if not isinstance(blocks, OpenedBlocks) or len(positions) > MOST_LOCATED:
        return None
    small = blocks.byte_count[positions] <= CHUNK_COST * len(scan.opened.schema)  # such row groups are read whole
    if (small if reader.is_local else small & _has_many(blocks.file[positions])).all():
        return None
    order = np.argsort(positions)
    wanted = {field.name.lower() for field in reader.needed}
    by_id = isinstance(scan.opened.table.naming, ByFieldId)

    def leaves(head: FileMetadata) -> Sequence[int]:
        all_names = head.schema.names
        return head.leaves(all_names if by_id else [name for name in all_names if name.lower() in wanted])

    try:
        stored = locations_of(scan.opened, blocks.take(positions[order]), leaves, is_sent=is_sent)
    except IndexFault:  # of a strict plan: it needs no index once made
        return None
    for reason in stored.degraded:
        _log.warning("%s is read by footers: %s", scan.opened.table.location, reason)
    return stored.page_locations.take(np.argsort(order))
