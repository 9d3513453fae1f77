"""The metadata of a Delta table as Arrow tables: the versions that its log has, and the files of one of them."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.concurrency import at_once
from secateur.io.tables.delta.actions import LogReader
from secateur.io.tables.delta.listing import of_delta
from secateur.io.tables.delta.log_files import LogFile, list_log
from secateur.io.tables.delta.log_state import LOG_THREADS
from secateur.io.tables.listing import Listing
from secateur.io.tables.metadata_tables import MANIFESTS, SNAPSHOTS, ManifestCounts, listed_files
from secateur.io.tables.places import TablePlaces


@dataclass(frozen=True)
class DeltaTables:
    """See :class:`secateur.io.tables.metadata_tables.MetadataTables`."""

    places: TablePlaces
    version: int

    manifest_counts = manifests_read = ManifestCounts()

    def snapshots(self) -> pa.Table:
        """Return the versions whose commits the log has, oldest first. Raises TableNotFound."""
        places = self.places
        commits = sorted(list_log(places.filesystem, places.root, places.location).commits.items())
        reader = LogReader(places.filesystem, places.root, places.location)
        infos = at_once(lambda commit: commit_info(reader, commit[1]), commits, LOG_THREADS)
        known = {version for version, _ in commits}
        rows: list[dict[str, Any]] = [
            {
                "snapshot_id": version,
                "parent_id": version - 1 if version - 1 in known else None,
                "committed_at": dt.datetime.fromtimestamp(committed_at(file, info) / 1000, dt.UTC),
                "operation": info.get("operation"),
                "refs": [],
                "selected": version == self.version,
            }
            for (version, file), info in zip(commits, infos, strict=True)
        ]
        return pa.Table.from_pylist(rows, SNAPSHOTS)

    def manifests(self) -> pa.Table:
        """A log has no manifests."""
        return MANIFESTS.empty_table()

    def files(self, listing: Listing) -> pa.Table:
        """Return path, size, time and partition values of every live file, and whether it has a deletion vector."""
        touched = of_delta(listing).touched
        touched = np.zeros(len(listing.size), bool) if touched is None else touched
        return listed_files(listing, touched.astype(np.int64))


def commit_info(reader: LogReader, file: LogFile) -> dict[str, Any]:
    """Return a commit's `commitInfo`; an empty one if it has none. Raises TableNotFound."""
    data = reader.bytes_of(file.name)
    at = data.find(b'"commitInfo"')
    if at < 0:
        return {}
    start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
    try:
        info = json.loads(data[start : end if end >= 0 else len(data)]).get("commitInfo")
    except ValueError:
        return {}
    return info if isinstance(info, dict) else {}


def committed_at(file: LogFile, info: dict[str, Any]) -> float:
    """Return when a version was committed, in milliseconds: as the commit says, else the time of its file."""
    moment = info.get("inCommitTimestamp")
    return float(moment) if moment is not None else file.modified / 1_000_000
