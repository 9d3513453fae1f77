"""What an index has entries of, beside the files that are live now."""

from __future__ import annotations

import datetime as dt

from secateur.errors import IndexMissing
from secateur.index.assemble import FileIdentity
from secateur.index.reader import current_snapshot
from secateur.index.segments import FileTable
from secateur.index.snapshot import Snapshot
from secateur.io.table import Table, TableSnapshot


def require_snapshot(table: Table) -> Snapshot:
    """The current index snapshot. Raises IndexMissing, IndexFault."""
    snapshot = current_snapshot(table.store)
    if snapshot is None:
        raise IndexMissing(f"{table.location} has no index at {table.store.location}: build one with build_index()")
    return snapshot


def live_files(table: TableSnapshot) -> list[FileIdentity]:
    """The identities of the files that are live now, in order of their paths."""
    listing = table.fresh_listing(dt.UTC)
    return list(zip(listing.paths.to_pylist(), listing.size.tolist(), listing.modified.tolist(), strict=True))


def indexed_files(files: FileTable) -> list[FileIdentity]:
    """The identities of the files of all segments, in their order."""
    return list(zip(files.path.to_pylist(), files.size.tolist(), files.modified.tolist(), strict=True))
