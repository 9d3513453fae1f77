"""What an index has entries of, beside the files that are live now."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import replace

import numpy as np

from secateur.errors import IndexMissing
from secateur.index.identity import FileIdentity, identities
from secateur.index.read.coverage import alike
from secateur.index.read.index_view import current_snapshot
from secateur.index.segments.segment_table import FileTable, Segments
from secateur.index.segments.snapshot import Snapshot
from secateur.io.tables.directory.recognition import recognised
from secateur.io.tables.listing import Listing
from secateur.io.tables.table import Table, TableSnapshot

_SECOND = 10**9  # nanoseconds
MOST_WAIT = 2.0  # seconds
TICK = 0.02  # seconds; the clock of a local disk has stood still for no longer, and is coarse up to 10 ms


def require_snapshot(table: Table) -> Snapshot:
    """The current index snapshot. Raises IndexMissing, IndexFault."""
    snapshot = current_snapshot(table.store)
    if snapshot is None:
        raise IndexMissing(f"{table.location} has no index at {table.store.location}: build one with build_index()")
    return snapshot


def live_files(listing: Listing) -> list[FileIdentity]:
    """The identities of the files of a listing, in order of their paths."""
    return identities(listing.paths, listing.size, listing.modified, listing.known_as)


def settled(table: TableSnapshot, snapshot: Snapshot | None = None) -> tuple[Listing, list[FileIdentity]]:
    """The files that are live now, and the identities of those that an entry can be made of, or that a snapshot has.

    A store that tells times in whole seconds, as S3 does, gives a file that is overwritten the same time as before if
    that happens within the second, and equal sizes then make an equal identity. So files of this second are listed
    again once it is over, a second later by the clock here, which may be that much ahead. Those that are so young even
    then are left to the next refresh.
    """
    listing = recognised(table, table.fresh_listing(dt.UTC), snapshot)
    left = _unsettled(table, listing)
    if not left.any():
        return listing, live_files(listing)
    time.sleep(float(left.max()))
    listing = recognised(table, table.fresh_listing(dt.UTC), snapshot)
    young = _unsettled(table, listing) > 0
    return listing, [file for file, is_young in zip(live_files(listing), young.tolist(), strict=True) if not is_young]


def _unsettled(table: TableSnapshot, listing: Listing) -> np.ndarray:
    """The seconds for which every file may yet change without its time telling; 0 where that is over."""
    now = time.time()
    if table.id is not None:  # what stands in place of times are ids of snapshots
        return np.zeros(len(listing.size))
    is_exact = listing.modified % _SECOND != 0
    left = np.where(is_exact, 0.0, _left(listing.modified, MOST_WAIT, now))
    return np.maximum(left, _left(listing.witness, TICK, now))


def _left(moments: np.ndarray, wait: float, now: float) -> np.ndarray:
    """The seconds until moments in nanoseconds are so long ago; 0 where they are, or lie in the future."""
    left = moments / _SECOND + wait - now
    return np.where(left > wait, 0.0, np.maximum(left, 0.0))


def with_witnesses_of(listing: Listing, segments: Segments) -> Segments:
    """The segments with the witnesses that their files have now, where these were recognised under other ones."""
    entries = segments.files
    file = alike(listing, entries)
    same = (file >= 0) & (entries.witness == listing.known_as[file])
    witness = np.where(same, listing.witness[file], entries.witness)
    if np.array_equal(witness, entries.witness):
        return segments
    return replace(segments, files=replace(entries, witness=witness))


def indexed_files(files: FileTable) -> list[FileIdentity]:
    """The identities of the files of all segments, in their order."""
    return files.identities()
