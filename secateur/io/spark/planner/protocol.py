"""Encode requests of Java and their replies as bytes, because Py4J needs a millisecond for every object.

A request has the number of an earlier reply to narrow (0 for none), the session's time zone, its setting
``secateur.audit``, and what is asked of a scan (:mod:`.catalyst`). A reply has a text for ``explain()``, its number,
and row groups as byte ranges of files. Numbers are big-endian; a text is its length in bytes and its UTF-8. Answer.java
decodes replies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from secateur.arrays import from_numpy
from secateur.io.spark.planner.splits import ByteRanges
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.listing import Listing

if TYPE_CHECKING:
    from secateur.io.scan.planned_scan import PlannedScan
    from secateur.pruning.report import Report

# Numbers of replies without row groups: fail the query; use the earlier reply; send the list of files first.
FAILED, UNKNOWN, UNREGISTERED = -1, -2, -3
NOTHING_KNOWN = struct.pack(">i", 0)
FEW_FILES, ONE_IN = 100, 10  # files that are named for Java: so few, or one in so many of the snapshot's
_RANGE = np.dtype([("file", ">i4"), ("start", ">i8"), ("length", ">i8")])


@dataclass(frozen=True)
class ScanRequest:
    """A request of Java's; `earlier` is the number of the reply to narrow, or 0."""

    earlier: int
    zone: str
    audit: str  # the share of pruned blocks to audit, as the session has it; may be empty or no number
    asked: bytes


def question_of(data: bytes) -> ScanRequest:
    """Decode a request."""
    (earlier,) = struct.unpack_from(">q", data)
    zone, at = _text_at(data, 8)
    audit, at = _text_at(data, at)
    return ScanRequest(earlier, zone, audit, data[at:])


def _text_at(data: bytes, at: int) -> tuple[str, int]:
    """Decode a text; return it and where it ends."""
    (size,) = struct.unpack_from(">i", data, at)
    return data[at + 4 : at + 4 + size].decode(), at + 4 + size


@dataclass(frozen=True)
class ScanReply:
    """Row groups to read, with a text for ``explain()``, their size in bytes, and their rows (-1 = unknown)."""

    text: str
    number: int
    size: int
    rows: int
    figures: bytes
    ranges: ByteRanges
    listing: Listing
    known: bytes = NOTHING_KNOWN  # of the question's aggregates, see known_aggregates.py
    columns: bytes = NOTHING_KNOWN  # of those that the question names, see column_statistics.py

    def to_bytes(self, table: ParquetDirectory) -> bytes:
        """Encode for Java: the table's location once, then files by their paths relative to it."""
        files, of_range = np.unique(self.ranges.file, return_inverse=True)
        ranges = np.zeros(len(of_range), _RANGE)
        ranges["file"], ranges["start"] = of_range, self.ranges.start
        ranges["length"] = self.ranges.stop - self.ranges.start
        head = text_of(self.text) + struct.pack(">qqq", self.number, self.size, self.rows) + self.figures
        place = b"".join(map(text_of, place_of(table)))
        return b"".join(
            [
                head,
                place,
                struct.pack(">i", len(files)),
                *_files(self.listing, files),
                struct.pack(">i", len(ranges)),
                ranges.tobytes(),
                self.known,
                self.columns,
            ]
        )


def figures_of(scan: PlannedScan, others: np.ndarray | None = None) -> bytes:
    """Encode for Figures.java how much is read of how much; -1 = unknown.

    These are row groups, all of them, bytes, all of them, and rows. `others`: sizes of files that are no part of the
    plan and are read whole.
    """
    before, blocks = scan.report.stages[0].before, scan.survivors.blocks
    more, is_known = (0, True) if others is None else (int(others.sum()), not len(others))
    kept_blocks, all_blocks = (len(blocks), before.blocks) if is_known else (None, None)
    all_bytes = None if before.bytes is None else before.bytes + more
    rows = int(blocks.row_count.sum()) if is_known else None
    numbers = (kept_blocks, all_blocks, int(blocks.byte_count.sum()) + more, all_bytes, rows)
    return struct.pack(">5q", *(-1 if number is None else number for number in numbers)) + text_of(_stages(scan))


def _stages(scan: PlannedScan) -> str:
    """Return how many row groups each stage pruned, for ``EXPLAIN FORMATTED``."""
    pruned = (
        (stage.name, stage.before.blocks - stage.after.blocks)
        for stage in scan.report.stages
        if stage.before.blocks is not None and stage.after.blocks is not None
    )
    return ", ".join(f"{name} pruned {count:,}" for name, count in pruned if count)


def degraded_text(report: Report) -> str:
    """Return what ``explain()`` says about a plan that went without something, after its counts."""
    return "".join(f"; degraded: {reason}" for reason in report.degraded)


def most_named(of_all: int) -> int:
    """Return how many files of a snapshot are named for Java at most: of more, the format plans as fast itself."""
    return max(FEW_FILES, of_all // ONE_IN)


def no_answer(text: str, number: int) -> bytes:
    """Encode a reply without row groups; `text` is the reason if it is FAILED."""
    return text_of(text) + struct.pack(">q", number)


def place_of(table: ParquetDirectory) -> tuple[str, str, str]:
    """Return scheme, authority and path of a table for Hadoop's ``Path``, which knows no escapes."""
    if is_local(table):
        return "file", "", table.root
    parts = urlsplit(table.location)
    return parts.scheme, parts.netloc, parts.path.rstrip("/")


def is_local(table: ParquetDirectory) -> bool:
    """Return whether the table is on a local disk."""
    return isinstance(table.filesystem, pafs.LocalFileSystem)


def _files(listing: Listing, files: np.ndarray) -> Iterator[bytes]:
    """Yield for each file its path, size, milliseconds since the epoch, and partition values."""
    chosen = from_numpy(files)
    values_of_columns = [internal_texts(values.take(chosen)) for values in listing.partitions.values]
    sizes, modified = listing.size[files].tolist(), (listing.stamp[files] // 1_000_000).tolist()
    for i, path in enumerate(listing.paths.take(chosen).to_pylist()):
        yield text_of(path) + struct.pack(">qq", sizes[i], modified[i])
        for texts in values_of_columns:
            text = texts[i]
            yield b"\0" if text is None else b"\1" + text_of(text)


def internal_texts(values: pa.Array) -> list[str | None]:
    """Convert values to Spark's internal form: days and microseconds as numbers, a double as its bits."""
    type_ = values.type
    if pa.types.is_floating(type_):
        values = values.cast(pa.float64()).view(pa.int64())
    elif pa.types.is_date32(type_):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(type_):
        values = values.cast(pa.int64())
    elif pa.types.is_decimal(type_):
        return [None if value is None else f"{value:f}" for value in values.to_pylist()]
    return values.cast(pa.string()).to_pylist()


def text_of(text: str) -> bytes:
    """Encode a text."""
    encoded = text.encode()
    return struct.pack(">i", len(encoded)) + encoded
