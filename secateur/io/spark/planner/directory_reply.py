"""The row groups of a directory's scan, as Java reads them."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np

from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark.planner.file_list import KnownFiles
from secateur.io.spark.planner.known_aggregates import Rest
from secateur.io.spark.planner.protocol import NOTHING_KNOWN, degraded_text, figures_of, text_of
from secateur.io.spark.planner.splits import byte_ranges

RANGE = np.dtype([("file", ">i4"), ("start", ">i8"), ("length", ">i8")])


def _is_enough(scan: PlannedScan) -> bool:
    """Return whether the blocks of a plan are sure to hold as many rows as are wanted, where any rows will do."""
    if scan.limit is None or scan.order_by is not None:
        return False
    return int(scan.survivors.blocks.row_count[scan.complete_blocks].sum()) >= scan.limit


def directory_reply(known: KnownFiles, size: np.ndarray, rest: Rest, number: int) -> bytes:
    """Encode row groups for Java's ``FileList.read``: files are ordinals in Spark's list."""
    scan = rest.scan
    blocks, report = scan.survivors.blocks, scan.report
    if _is_enough(scan):
        known = replace(known, others=known.others[:0])
    before = report.stages[0].before
    of_all = f"{before.files:,} files" if before.blocks is None else f"{before.blocks:,} row groups"
    others = f", and all of {len(known.others):,} files without an entry" if len(known.others) else ""
    degraded = degraded_text(report)
    ranges = byte_ranges(scan)
    file = np.concatenate([known.ordinals[ranges.file], known.others])
    start = np.concatenate([ranges.start, np.zeros(len(known.others), np.int64)])
    stop = np.concatenate([ranges.stop, size[known.others]])
    chosen, of_range = np.unique(file, return_inverse=True)
    encoded = np.zeros(len(file), RANGE)
    encoded["file"], encoded["start"], encoded["length"] = of_range, start, stop - start
    byte_count = int(blocks.byte_count.sum()) + int(size[known.others].sum())
    row_count = -1 if len(known.others) else int(blocks.row_count.sum())
    return b"".join(
        [
            text_of(f"{len(blocks):,} of {of_all}{others}{rest.note}{degraded}"),
            struct.pack(">qqq", number, byte_count, row_count),
            figures_of(scan, size[known.others]),
            struct.pack(">i", len(chosen)),
            chosen.astype(">i4").tobytes(),
            struct.pack(">i", len(encoded)),
            encoded.tobytes(),
            rest.known,
            NOTHING_KNOWN if len(known.others) else rest.columns,
        ]
    )
