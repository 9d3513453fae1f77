"""The data files of an Iceberg scan, and the ranges of them that can hold a match.

Java sends the files of a scan once (NarrowedScan.java), and refers to them by a digest afterwards. Or it sends none,
only the snapshot that a scan reads: then the reply names the files that have to be read, with a task for each, and
Iceberg reads no manifest. Sound: data files are immutable, so a reply about a file holds for every snapshot that the
scan may read; and the files and deletes of a snapshot are those that its manifests name, here and in Java.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from secateur.errors import SecateurError
from secateur.io.scan.opened_table import OpenedTable, open_snapshot_of
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark.iceberg.block_ranges import exact_ranges, in_ranges
from secateur.io.spark.iceberg.scan_tasks import read_tasks, whole_texts
from secateur.io.spark.iceberg.task_json import Range, ReadTask, byte_ranges
from secateur.io.spark.planner.file_list import Reader
from secateur.io.spark.planner.known_aggregates import Reading, Rest
from secateur.io.spark.planner.protocol import NOTHING_KNOWN, degraded_text, figures_of, most_named, text_of
from secateur.io.tables.iceberg.listing import of_iceberg
from secateur.io.tables.iceberg.snapshot import IcebergSnapshot
from secateur.io.tables.open import Moment, open_at
from secateur.io.tables.table import Table
from secateur.pruning.functions.zone_names import zone_of
from secateur.pruning.report import Faults

FOREVER = 1e9  # seconds: a metadata file never changes


@dataclass(frozen=True)
class DataFiles:
    """What an Iceberg scan reads: one snapshot, with one schema, and the paths of its files as in the manifests."""

    metadata: str
    snapshot_id: int
    schema: str  # as Iceberg writes it in JSON
    paths: pa.Array | None  # None if it reads the whole snapshot, of which only this side knows the files


def data_files(data: bytes) -> DataFiles:
    """Decode the files that Java's ``NarrowedScan`` wrote."""
    reader = Reader(data)
    metadata = reader.text()
    (snapshot_id,) = struct.unpack(">q", reader.bytes(8))
    schema, count = reader.text(), reader.number()
    return DataFiles(metadata, snapshot_id, schema, None if count < 0 else reader.texts(count))


def open_metadata(metadata: str, snapshot_id: int | None = None) -> Table:
    """Open the table of a metadata file. Raises TableNotFound, UnknownSnapshot, UnsupportedTable."""
    return open_at(
        metadata,
        None,
        Moment(snapshot_id=snapshot_id),
        index_location=None,
        filesystem=None,
        schema=None,
        freshness=FOREVER,
        disk_cache=None,
    )


def opened(table: Table, zone_name: str) -> OpenedTable:
    """Open the snapshot with its index. Raises SecateurError if there is no index."""
    zone = zone_of(zone_name)
    if zone is None:
        raise SecateurError(f"unknown time zone {zone_name!r}")
    opened_table = open_snapshot_of(table, zone, Faults())
    if opened_table.catalog.snapshot is None:
        raise SecateurError("the index is gone")
    return opened_table


def _snapshot_of(opened_table: OpenedTable) -> IcebergSnapshot:
    assert isinstance(opened_table.table, IcebergSnapshot), "opened by the metadata file of Iceberg's scan"
    return opened_table.table


def common_columns(files: DataFiles, opened_table: OpenedTable) -> pa.Schema:
    """Return the columns that have the same name, field id and type in Iceberg's scan and in the open snapshot."""
    snapshot = _snapshot_of(opened_table)
    scanned = {field.name: field for field in Schema.model_validate_json(files.schema).fields}
    known = {field.name: field for field in snapshot.schema_of.fields}
    return pa.schema(
        [
            field
            for field in opened_table.schema
            if field.name in scanned
            and field.name in known
            and scanned[field.name].field_id == known[field.name].field_id
            and str(scanned[field.name].field_type) == str(known[field.name].field_type)
        ]
    )


def listed(files: DataFiles, scan: PlannedScan) -> Reading:
    """Return what Iceberg reads of a plan, of the files that it has chosen."""
    ordinals = _ordinals(files, scan.opened)
    is_read = np.isin(scan.survivors.blocks.file, ordinals)
    reading = in_ranges(scan.part(np.flatnonzero(is_read)))
    return replace(reading, is_all=bool((ordinals >= 0).all()))


def chosen_files(files: DataFiles, opened_table: OpenedTable) -> np.ndarray:
    """Return which files of the snapshot Iceberg reads, where it has chosen them: bool of shape (n_files,)."""
    chosen = np.zeros(len(opened_table.listing.size) + 1, bool)
    chosen[_ordinals(files, opened_table)] = True  # the last is for those that are not in the snapshot
    return chosen[:-1]


def _ordinals(files: DataFiles, opened_table: OpenedTable) -> np.ndarray:
    """Return the number of every file of a request in the snapshot; -1 for one that it does not have."""
    assert files.paths is not None, "the request names files"
    value_set = of_iceberg(opened_table.listing).paths.cast(files.paths.type)
    return pc.fill_null(pc.index_in(files.paths, value_set=value_set), -1).to_numpy()


def reply(files: DataFiles, rest: Rest, number: int) -> bytes:
    """Encode for every file of the request the ranges to read; -1 for a file that the snapshot does not have."""
    scan = rest.scan
    listing, blocks = of_iceberg(scan.opened.listing), scan.survivors.blocks
    ordinals = _ordinals(files, scan.opened)
    if scan.limit is not None and not np.isin(scan.file_ordinals, ordinals).all():
        raise SecateurError("Iceberg leaves out files whose rows are counted here")
    exact = exact_ranges(rest)
    order = scan.order()
    file, row_group = blocks.file[order], blocks.row_group[order]
    first, last = np.searchsorted(file, ordinals), np.searchsorted(file, ordinals, side="right")
    unknown = np.zeros(np.count_nonzero(ordinals < 0), np.int64)  # their sizes are
    parts = [_head(rest, number, unknown)]
    offsets = listing.files.column("split_offsets")
    for ordinal, begin, end in zip(ordinals.tolist(), first.tolist(), last.tolist(), strict=True):
        if ordinal < 0 or begin == end:
            parts.append(struct.pack(">i", -1 if ordinal < 0 else 0))
            continue
        if ordinal in exact:
            parts.append(_edges(exact[ordinal]))
            continue
        size, starts = int(listing.size[ordinal]), offsets[ordinal].as_py()
        numbers = row_group[begin:end].tolist()
        ranges = byte_ranges(starts, size, numbers) if starts and max(numbers) < len(starts) else ((0, size),)
        parts.append(_edges(ranges))
    return b"".join(parts)


def tasks_reply(rest: Rest, number: int) -> bytes:
    """Encode the surviving files of a snapshot: their paths and ranges, and their tasks as Iceberg's JSON.

    If many files survive, Iceberg's own planning is as fast: -1 instead of their number.
    """
    scan = rest.scan
    table = _snapshot_of(scan.opened)
    most = most_named(len(scan.opened.listing.size))
    if len(scan.file_ordinals) > most or _has_encrypted_deletes(scan):
        return _head(rest, number) + struct.pack(">i", -1)
    tasks = read_tasks(scan, table)
    return _named(rest, number, tasks) + b"".join(map(text_of, whole_texts(tasks, table)))


def ranges_reply(rest: Rest, number: int) -> bytes:
    """Encode the surviving files of a snapshot: their paths and ranges."""
    return _named(rest, number, read_tasks(rest.scan, _snapshot_of(rest.scan.opened)))


def _named(rest: Rest, number: int, tasks: Sequence[ReadTask]) -> bytes:
    exact, ordinals = exact_ranges(rest), rest.scan.file_ordinals.tolist()
    ranges = [exact.get(ordinal, task.ranges) for ordinal, task in zip(ordinals, tasks, strict=True)]
    files = (text_of(task.file.path) + _edges(of_file) for task, of_file in zip(tasks, ranges, strict=True))
    return b"".join([_head(rest, number), struct.pack(">i", len(tasks)), *files])


def _has_encrypted_deletes(scan: PlannedScan) -> bool:
    files = of_iceberg(scan.opened.listing).deletes.files
    return bool(files.column("key_metadata").null_count < len(files))


def _edges(ranges: Sequence[Range]) -> bytes:
    """Encode how many ranges there are, and where each begins and ends."""
    edges = [edge for start, length in ranges for edge in (start, start + length)]
    return struct.pack(f">i{len(edges)}q", len(ranges), *edges)


def _head(rest: Rest, number: int, others: np.ndarray | None = None) -> bytes:
    """Encode the text, number and figures of a reply, and what is known of aggregates and of columns."""
    scan = rest.scan
    blocks, report = scan.survivors.blocks, scan.report
    before = report.stages[0].before
    of_all = f"row groups of {before.files:,} files" if before.blocks is None else f"{before.blocks:,} row groups"
    degraded = degraded_text(report)
    text = text_of(f"{len(blocks):,} of {of_all}{rest.note}{degraded}")
    is_all = others is None or not len(others)
    columns = rest.columns if is_all else NOTHING_KNOWN
    return text + struct.pack(">q", number) + figures_of(scan, others) + rest.known + columns
