"""Convert the surviving row groups of a plan to byte ranges of their files, for readers that take splits.

Such a reader (parquet-mr, and so Spark) reads the row groups whose midpoint lies in its split. So row groups may lie in
any order: the midpoints of a file are sorted, the file is cut between any two neighbours, and adjacent pieces of
survivors are joined. A survivor is in exactly one range.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from secateur.errors import IndexFault, InvalidParquet
from secateur.index.read.blocks import OpenedBlocks
from secateur.io.parquet.parquet_file import open_parquet
from secateur.io.storage.object_file import FOOTER_THREADS
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.pruning.statistics import Blocks
from secateur.ragged import runs_of

if TYPE_CHECKING:
    from secateur.io.scan.planned_scan import PlannedScan

MOST_FOOTERS = 2_000  # read for one plan; a thousand take about a second. Further files are read whole
_WHOLE = np.zeros((2, 0), np.int64)  # for a file whose row group positions are unknown


@dataclass(frozen=True)
class ByteRanges:
    """Ranges [start, stop) of files of a listing: int64 arrays of shape (n_ranges,), ascending within a file."""

    file: np.ndarray
    start: np.ndarray
    stop: np.ndarray


def whole_files(size: np.ndarray) -> ByteRanges:
    """Return one range per file, the whole file; `size` in bytes."""
    return ByteRanges(np.arange(len(size)), np.zeros(len(size), np.int64), size)


def byte_ranges(scan: PlannedScan) -> ByteRanges:
    """Return the ranges that hold a plan's surviving row groups, and no other row groups if positions are known.

    A footer is read only if some but not all row groups of the file survive, the index does not have their positions,
    the table's cache does not either, and the table is a directory: files of others are then read whole. Raises
    StalePlan if a file is not the one that was listed.
    """
    blocks, sizes = scan.survivors.blocks, scan.opened.listing.size
    order = scan.order()
    file, row_group = blocks.file[order], blocks.row_group[order]
    files, first = np.unique(file, return_index=True)
    rows = np.add.reduceat(blocks.row_count[order], first) if len(first) else np.zeros(0, np.int64)
    partly = rows != scan.opened.catalog.file_rows[files]
    ends = np.append(first, len(file))
    placed = placed_by_index(blocks, order, np.repeat(partly, np.diff(ends)))
    stored = [stored_ranges(placed[:, ends[i] : ends[i + 1]]) if partly[i] else None for i in range(len(files))]
    unknown = files[partly & np.array([locations is None for locations in stored], bool)]
    starts = dict(zip(unknown.tolist(), _read_starts(scan, unknown), strict=True))
    ranges_of_files = [
        known if known is not None else chosen(starts.get(number, _WHOLE), row_group[begin:end], int(sizes[number]))
        for number, known, begin, end in zip(files.tolist(), stored, ends[:-1], ends[1:], strict=True)
    ]
    counts = np.array([ranges.shape[1] for ranges in ranges_of_files], np.int64)
    start, stop = np.concatenate([np.zeros((2, 0), np.int64), *ranges_of_files], axis=1)
    return ByteRanges(np.repeat(files, counts), start, stop)


def placed_by_index(blocks: Blocks, order: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return start and size in bytes of blocks by the index, in `order`: int64 of shape (2, n); -1 = unknown."""
    placed = np.full((2, len(order)), -1, np.int64)
    if isinstance(blocks, OpenedBlocks) and wanted.any():
        asked = np.sort(order[wanted])
        with suppress(IndexFault):  # even of a strict plan: a finished plan needs no index
            placed[:, wanted] = blocks.take(asked).placed[:, np.searchsorted(asked, order[wanted])]
    return placed


def stored_ranges(placed: np.ndarray) -> np.ndarray | None:
    """Return ranges that hold the midpoints of a file's surviving row groups, from their starts and sizes.

    None if some are unknown or overlap: then a range could hold the midpoint of another row group.
    """
    begin, stop = placed[0], placed[0] + np.maximum(placed[1], 1)
    if (placed < 0).any() or (begin[1:] < stop[:-1]).any():
        return None
    first, last = runs_of(begin[1:] > stop[:-1], len(begin))
    return np.stack([begin[first], stop[last]])


def _read_starts(scan: PlannedScan, files: np.ndarray) -> Iterator[np.ndarray]:
    """Yield for each file the start and size in bytes of its row groups: int64 of shape (2, n_row_groups)."""
    table, listing = scan.opened.table, scan.opened.listing
    if not isinstance(table, ParquetDirectory):
        yield from (_WHOLE for _ in files)
        return

    def starts(number: int) -> np.ndarray:
        path, identity = listing.paths[number].as_py(), listing.identity(number)

        def read() -> np.ndarray:
            listed = table.listed(listing, number)
            try:
                return open_parquet(listed.filesystem, listed.path, listed.redacted, listed).footer.placed
            except InvalidParquet:  # Spark's reader reports it better
                return _WHOLE

        return table.cache.get(("row group starts", path, *identity), read)

    with ThreadPoolExecutor(FOOTER_THREADS) as threads:
        yield from threads.map(starts, files[:MOST_FOOTERS].tolist())
    yield from (_WHOLE for _ in files[MOST_FOOTERS:])


def chosen(placed: np.ndarray, row_groups: np.ndarray, file_size: int) -> np.ndarray:
    """Return ranges that hold the midpoints of these row groups of a file only: int64 of shape (2, n_ranges)."""
    begin, size = placed
    if not len(begin) or int(row_groups.max(initial=0)) >= len(begin) or (placed < 0).any():
        return np.array([[0], [file_size]], np.int64)
    middles, at = np.unique(begin + size // 2, return_inverse=True)
    wanted = np.zeros(len(middles) + 2, bool)
    wanted[1 + at[row_groups]] = True
    starts = np.full(len(middles), file_size, np.int64)
    np.minimum.at(starts, at, begin)
    cuts = np.clip(starts[1:], middles[:-1] + 1, middles[1:])
    edges = np.concatenate([[min(starts[0], middles[0])], cuts, [max(int((begin + size).max()), middles[-1] + 1)]])
    changes = np.diff(wanted.astype(np.int8))
    return np.stack([edges[np.flatnonzero(changes > 0)], edges[np.flatnonzero(changes < 0)]])
