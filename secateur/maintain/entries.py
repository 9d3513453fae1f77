"""Index entries, compared with the files that are live now."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa

from secateur.errors import IndexMissing
from secateur.index.identity import FileIdentity, identities
from secateur.index.read.coverage import alike
from secateur.index.read.memory_cache import ByteCache
from secateur.index.read.open_index import current_snapshot
from secateur.index.segments.segment_table import Segments
from secateur.index.segments.snapshot import Snapshot
from secateur.io.tables.directory.recognition import recognised
from secateur.io.tables.listing import Listing
from secateur.io.tables.table import Table, TableSnapshot

_SECOND = 10**9  # nanoseconds
MOST_WAIT = 2.0  # seconds
TICK = 0.02  # seconds; times on a local disk are up to 10 ms coarse, and this leaves a margin


def require_snapshot(table: Table, cache: ByteCache | None = None) -> Snapshot:
    """Return the current index snapshot, as it was read before if a cache has it. Raises IndexMissing, IndexFault."""
    snapshot = current_snapshot(table.store, cache)
    if snapshot is None:
        raise IndexMissing(f"{table.location} has no index at {table.store.location}: build one with build_index()")
    return snapshot


def glob_of(table: TableSnapshot) -> str | None:
    """Return the glob that the names of a table's files match; None if all of its files are opened."""
    glob: str | None = getattr(table, "glob", None)
    return glob


def usable_files(table: TableSnapshot, snapshot: Snapshot | None = None) -> tuple[Listing, np.ndarray]:
    """Return the live files, and which of them can be indexed or are known to a snapshot: bool of shape (n_files,).

    On a store with times in whole seconds, such as S3, a file overwritten within the same second keeps its time, and
    with an equal size its identity. So files modified in the current second are listed again once it is over by the
    local clock plus one second, because that clock may be ahead by as much. Files that are still too young then wait
    for the next refresh.
    """
    listing = recognised(table, table.fresh_listing(dt.UTC), snapshot)
    left = _unsafe_seconds(table, listing)
    if not left.any():
        return listing, np.ones(len(listing.size), bool)
    time.sleep(float(left.max()))
    listing = recognised(table, table.fresh_listing(dt.UTC), snapshot)
    return listing, _unsafe_seconds(table, listing) == 0


def chosen_files(listing: Listing, chosen: np.ndarray) -> list[FileIdentity]:
    """Return the identities of some of a listing's files, bool of shape (n_files,), ordered by path."""
    at = np.flatnonzero(chosen)
    return identities(listing.paths.take(pa.array(at)), listing.size[at], listing.stamp[at], listing.known_as[at])


def _unsafe_seconds(table: TableSnapshot, listing: Listing) -> np.ndarray:
    """Return, for every file, the seconds during which it may change unnoticed; 0 if that time is over."""
    now = time.time()
    if table.id is not None:  # such tables have snapshot ids in place of times
        return np.zeros(len(listing.size))
    left = np.zeros(len(listing.size))
    since = int((now - MOST_WAIT) * _SECOND)
    recent = np.flatnonzero(np.maximum(listing.stamp, listing.witness) >= since)
    stamp = listing.stamp[recent]
    is_exact = stamp % _SECOND != 0
    by_stamp = np.where(is_exact, 0.0, _left(stamp, MOST_WAIT, now))
    left[recent] = np.maximum(by_stamp, _left(listing.witness[recent], TICK, now))
    return left


def _left(moments: np.ndarray, wait: float, now: float) -> np.ndarray:
    """Return the seconds until each moment (in nanoseconds) is `wait` seconds ago; 0 if it is, or if it is later."""
    left = moments / _SECOND + wait - now
    return np.where(left > wait, 0.0, np.maximum(left, 0.0))


def with_witnesses_of(listing: Listing, segments: Segments) -> Segments:
    """Return the segments with the current witnesses of files that were recognised despite another witness."""
    entries = segments.files
    file = alike(listing, entries)
    same = (file >= 0) & (entries.witness == listing.known_as[file])
    witness = np.where(same, listing.witness[file], entries.witness)
    if np.array_equal(witness, entries.witness):
        return segments
    return replace(segments, files=entries.with_witnesses(witness))
