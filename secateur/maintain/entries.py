"""What an index has entries of, beside the files that are live now."""

from __future__ import annotations

import datetime as dt
import time

from secateur.errors import IndexMissing
from secateur.index.assemble import FileIdentity
from secateur.index.reader import current_snapshot
from secateur.index.segments import FileTable
from secateur.index.snapshot import Snapshot
from secateur.io.table import Table, TableSnapshot

_SECOND = 10**9  # nanoseconds
MOST_WAIT = 2.0  # seconds


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


def settled_files(table: TableSnapshot) -> list[FileIdentity]:
    """The identities of the files that are live now, as :func:`live_files`, which an entry can be made of.

    A store that tells times in whole seconds, as S3 does, gives a file that is overwritten the same time as before if
    that happens within the second, and equal sizes then make an equal identity. So files of this second are listed
    again once it is over, a second later by the clock here, which may be that much ahead.
    """
    files = live_files(table)
    youngest = max((modified for _, _, modified in files if not modified % _SECOND), default=0) / _SECOND
    left = youngest + MOST_WAIT - time.time()
    if (
        table.id is not None or not 0 < left <= MOST_WAIT
    ):  # ids of snapshots are no times; of the future nothing is known
        return files
    time.sleep(left)
    return live_files(table)


def indexed_files(files: FileTable) -> list[FileIdentity]:
    """The identities of the files of all segments, in their order."""
    return list(zip(files.path.to_pylist(), files.size.tolist(), files.modified.tolist(), strict=True))
