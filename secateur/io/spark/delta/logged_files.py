"""The files of a scan of Delta's, and which of them can hold a match.

Java sends the files that Delta has chosen for a scan (DeltaRelation.java), once, and refers to them by a digest
afterwards. Sound: both sides have read the same version of the same table; a file that is not found in it here is kept.
Where Delta has chosen none yet, files that are left are named here as the log names them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from secateur.errors import SecateurError
from secateur.io.scan.opened_table import OpenedTable, open_snapshot_of
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark.planner.file_list import Reader
from secateur.io.spark.planner.known_aggregates import Reading, Rest
from secateur.io.spark.planner.protocol import degraded_text, figures_of, most_named, text_of
from secateur.io.spark.planner.splits import byte_ranges
from secateur.io.tables.delta.actions import decoded_paths
from secateur.io.tables.delta.live_files import rows_of
from secateur.io.tables.delta.log_files import LOG_DIRECTORY
from secateur.io.tables.delta.snapshot import DeltaSnapshot
from secateur.io.tables.delta.table import DeltaTable, VersionSelection
from secateur.io.tables.places import is_absolute
from secateur.pruning.functions.zone_names import zone_of
from secateur.pruning.report import Faults

LOG = f"/{LOG_DIRECTORY}"  # ends the location by which Java looks an index up
_RANGE = np.dtype([("file", ">i4"), ("start", ">i8"), ("stop", ">i8")])


@dataclass(frozen=True)
class LoggedFiles:
    """What Delta reads: some files of one version of a table, by their paths as in the log."""

    location: str
    id: str  # of the table, as its metadata has it
    version: int
    columns: StructType
    paths: pa.Array | None  # None if Delta has chosen none yet


def logged_files(data: bytes) -> LoggedFiles:
    """Decode the files that Java's ``DeltaRelation`` wrote."""
    reader = Reader(data)
    location, id_ = reader.text(), reader.text()
    (version,) = struct.unpack(">q", reader.bytes(8))
    columns = StructType.fromJson(json.loads(reader.text()))
    n = reader.number()
    return LoggedFiles(location, id_, version, columns, None if n < 0 else reader.texts(n))


def open_version(table: DeltaTable, version: int) -> DeltaTable:
    """Return the handle of a version, with the same index."""
    return replace(table, selection=VersionSelection(version=version))


def opened(table: DeltaTable, files: LoggedFiles, zone_name: str) -> OpenedTable:
    """Open the version that Delta reads, with its index. Raises SecateurError if it is another one, or has no index."""
    zone = zone_of(zone_name)
    if zone is None:
        raise SecateurError(f"unknown time zone {zone_name!r}")
    snapshot = table.snapshot()
    if (snapshot.id, snapshot.state.metadata.id) != (files.version, files.id):
        raise SecateurError(f"{files.location} is another table now")
    opened = open_snapshot_of(snapshot, zone, Faults())
    if opened.catalog.snapshot is None:
        raise SecateurError("the index is gone")
    return opened


def listed(files: LoggedFiles, scan: PlannedScan) -> Reading:
    """Return what Delta reads of a plan, of the files that it has chosen: files are left out whole.

    Sound: of a file with a block to read, all blocks that can match stay in the plan. So it is right whether Delta then
    reads their ranges or, as with deletion vectors, the whole file.
    """
    file = scan.survivors.blocks.file
    ordinals = _ordinals(files, scan.opened.listing.paths)
    read = scan.part(np.flatnonzero(np.isin(file, ordinals)))
    of_block = read.survivors.blocks.file
    return Reading(read, lambda answered: ~np.isin(of_block, of_block[~answered]), bool((ordinals >= 0).all()))


def chosen_files(files: LoggedFiles, paths: pa.Array) -> np.ndarray | None:
    """Return which files of the version, by their paths, Delta has chosen: bool; None if it has chosen none yet."""
    if files.paths is None:
        return None
    chosen = np.zeros(len(paths) + 1, bool)
    chosen[_ordinals(files, paths)] = True  # the last is for those that are not in the version
    return chosen[:-1]


def _ordinals(files: LoggedFiles, paths: pa.Array) -> np.ndarray:
    """Return the number of every file of a request in the version; -1 for one that it does not have."""
    assert files.paths is not None, "the request names files"
    value_set = paths.cast(files.paths.type)
    return pc.fill_null(pc.index_in(decoded_paths(files.paths), value_set=value_set), -1).to_numpy()


def reply(files: LoggedFiles, rest: Rest, number: int) -> bytes:
    """Encode which files to read, and which ranges of them: a file that the version does not have here is read."""
    scan = rest.scan
    if files.paths is None:
        return _of_all(rest, number)
    ordinals = _ordinals(files, scan.opened.listing.paths)
    if scan.limit is not None and not np.isin(scan.file_ordinals, ordinals).all():
        raise SecateurError("Delta leaves out files whose rows are counted here")
    keep = (ordinals < 0) | np.isin(ordinals, scan.file_ordinals)
    head = _head(rest, int(keep.sum()), len(keep), number)
    return b"".join([head, keep.astype(np.uint8).tobytes(), _ranges(scan, ordinals)])


def _of_all(rest: Rest, number: int) -> bytes:
    """Encode the files that are left of all of the version. If they are many, Delta's own planning is as fast: -1."""
    scan = rest.scan
    kept, size = scan.file_ordinals, scan.opened.listing.size
    head = _head(rest, len(kept), len(size), number)
    if len(kept) > most_named(len(size)):
        return head + struct.pack(">i", -1)
    named = map(text_of, added_files(_snapshot_of(scan), kept))
    return b"".join([head, struct.pack(">i", len(kept)), *named, _ranges(scan, kept)])


def _head(rest: Rest, kept: int, of_all: int, number: int) -> bytes:
    """Encode the text for reports, the number of the reply, its figures, and what is known of aggregates."""
    scan = rest.scan
    degraded = degraded_text(scan.report)
    row_groups = f"{len(scan.survivors.blocks):,} row groups"
    text = text_of(f"{kept:,} of {of_all:,} files, {row_groups}{rest.note}{degraded}")
    return b"".join([text, struct.pack(">q", number), figures_of(scan), rest.known])


def _ranges(scan: PlannedScan, ordinals: np.ndarray) -> bytes:
    """Encode what is read of the files that are read in part, each by its place in `ordinals`."""
    size = scan.opened.listing.size
    place = np.full(len(size) + 1, -1)
    place[ordinals] = np.arange(len(ordinals))
    ranges = byte_ranges(scan)
    partly = (place[ranges.file] >= 0) & ((ranges.start > 0) | (ranges.stop < size[ranges.file]))
    encoded = np.zeros(int(partly.sum()), _RANGE)
    encoded["file"], encoded["start"] = place[ranges.file[partly]], ranges.start[partly]
    encoded["stop"] = ranges.stop[partly]
    return struct.pack(">i", len(encoded)) + encoded.tobytes()


def added_files(snapshot: DeltaSnapshot, ordinals: np.ndarray) -> Iterator[str]:
    """Yield for some files of a listing the action that added them, as a log has it, but for their statistics."""
    for file in rows_of(snapshot.state.files, ordinals).to_pylist():
        vector = file["vector"]
        add = {
            "path": quote(file["path"], safe=":/" if is_absolute(file["path"]) else "/"),
            "partitionValues": file["partition"] or {},
            "size": file["size"],
            "modificationTime": file["modified"],
            "dataChange": False,
        }
        if vector is not None:
            add["deletionVector"] = {name: value for name, value in vector.items() if value is not None}
        yield json.dumps({"add": add})


def _snapshot_of(scan: PlannedScan) -> DeltaSnapshot:
    snapshot = scan.opened.table
    assert isinstance(snapshot, DeltaSnapshot), "the scan is of a version, which `opened` has opened"
    return snapshot
