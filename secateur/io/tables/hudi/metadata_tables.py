"""The metadata of a Hudi table as Arrow tables: the commits of its active timeline, and its live files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.io.tables.hudi.instants import time_of
from secateur.io.tables.hudi.state import HudiState
from secateur.io.tables.listing import Listing
from secateur.io.tables.metadata_tables import MANIFESTS, SNAPSHOTS, ManifestCounts, listed_files


@dataclass(frozen=True)
class HudiTables:
    """See :class:`secateur.io.tables.metadata_tables.MetadataTables`."""

    state: HudiState

    manifest_counts = manifests_read = ManifestCounts()

    def snapshots(self) -> pa.Table:
        """Return the complete commits of the active timeline, oldest first."""
        is_utc = self.state.properties.is_utc
        commits = list(self.state.commits.items())
        parents = [None, *(commit.instant for _, commit in commits[:-1])]
        rows: list[dict[str, Any]] = [
            {
                "snapshot_id": commit.instant,
                "parent_id": parent,
                "committed_at": time_of(file.completed or commit.instant, is_utc=is_utc),
                "operation": commit.operation or file.action,
                "refs": [],
                "selected": commit.instant == self.state.instant,
            }
            for parent, ((_, file), commit) in zip(parents, commits, strict=True)
        ]
        return pa.Table.from_pylist(rows, SNAPSHOTS)

    def manifests(self) -> pa.Table:
        """A timeline has no manifests."""
        return MANIFESTS.empty_table()

    def files(self, listing: Listing) -> pa.Table:
        """Return path, size, time and partition values of every live file."""
        return listed_files(listing, np.zeros(len(listing.size), np.int64))
