"""The files of a scan of Delta's, and which of them can hold a match.

Java sends the files that Delta has chosen for a scan (DeltaRelation.java), once, and refers to them by a digest
afterwards. Sound: both sides have read the same version of the same table; a file that is not found in it here is kept.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from secateur.errors import SecateurError
from secateur.io.scan.opened_table import OpenedTable, open_snapshot_of
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark.planner.file_list import Reader
from secateur.io.spark.planner.known_aggregates import Reading, Rest
from secateur.io.spark.planner.protocol import figures_of, text_of
from secateur.io.tables.delta.actions import decoded_paths
from secateur.io.tables.delta.log_files import LOG_DIRECTORY
from secateur.io.tables.delta.table import DeltaTable, VersionSelection
from secateur.pruning.functions.zone_names import zone_of
from secateur.pruning.report import Faults

LOG = f"/{LOG_DIRECTORY}"  # ends the location by which Java looks an index up


@dataclass(frozen=True)
class LoggedFiles:
    """What Delta reads: some files of one version of a table, by their paths as in the log."""

    location: str
    id: str  # of the table, as its metadata has it
    version: int
    columns: StructType
    paths: pa.Array


def logged_files(data: bytes) -> LoggedFiles:
    """Decode the files that Java's ``DeltaRelation`` wrote."""
    reader = Reader(data)
    location, id_ = reader.text(), reader.text()
    (version,) = struct.unpack(">q", reader.bytes(8))
    columns = StructType.fromJson(json.loads(reader.text()))
    return LoggedFiles(location, id_, version, columns, reader.texts(reader.number()))


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
    """Return what Delta reads of a plan, of the files that it has chosen: a file with a block to read is read whole."""
    file = scan.survivors.blocks.file
    read = replace(scan, survivors=scan.survivors.take(np.flatnonzero(np.isin(file, _ordinals(files, scan)))))
    of_block = read.survivors.blocks.file
    return Reading(read, lambda answered: ~np.isin(of_block, of_block[~answered]))


def _ordinals(files: LoggedFiles, scan: PlannedScan) -> np.ndarray:
    """Return the number of every file of a request in the version; -1 for one that it does not have."""
    value_set = scan.opened.listing.paths.cast(files.paths.type)
    return pc.fill_null(pc.index_in(decoded_paths(files.paths), value_set=value_set), -1).to_numpy()


def reply(files: LoggedFiles, rest: Rest, number: int) -> bytes:
    """Encode for every file of the request whether to read it: one that the version does not have here is read."""
    scan, ordinals = rest.scan, _ordinals(files, rest.scan)
    if scan.limit is not None and not np.isin(scan.file_ordinals, ordinals).all():
        raise SecateurError("Delta leaves out files whose rows are counted here")
    keep = (ordinals < 0) | np.isin(ordinals, scan.file_ordinals)
    degraded = "".join(f"; degraded: {reason}" for reason in scan.report.degraded)
    text = text_of(f"{int(keep.sum()):,} of {len(keep):,} files{rest.note}{degraded}")
    head = [text, struct.pack(">q", number), figures_of(scan), rest.known]
    return b"".join([*head, keep.astype(np.uint8).tobytes()])
