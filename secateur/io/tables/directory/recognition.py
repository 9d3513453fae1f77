"""Recognise files whose witness has changed since they were indexed, by the checksum of their last bytes.

Copying a table with its index while keeping the times (`cp -a`, `rsync -a`), moving it to another disk, or linking to
its files changes their change times and nothing else. Such a file is opened once, and is recognised if the checksum of
its end equals the one in its index entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from secateur.concurrency import at_once
from secateur.errors import SecateurError
from secateur.index.read.coverage import alike
from secateur.index.segments.snapshot import Snapshot
from secateur.io.storage.object_file import FOOTER_THREADS
from secateur.io.storage.witness import end_of
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.listing import Listing
from secateur.io.tables.table import TableSnapshot


@dataclass(frozen=True)
class _Recognised:
    """A listing with the witnesses that the index has for the files."""

    listing: Listing

    @property
    def nbytes(self) -> int:
        """Bytes in memory, without those of the original listing."""
        return self.listing.known_as.nbytes


def recognised(table: TableSnapshot, listing: Listing, snapshot: Snapshot | None) -> Listing:
    """Return the listing with the index's witnesses for those files whose last bytes prove them the same.

    Formats that never rewrite a file need none of this. Raises IndexFault.
    """
    if snapshot is None or not isinstance(table, ParquetDirectory) or listing.id == snapshot.listing_id:
        return listing
    key = ("recognised", snapshot.number, snapshot.created, listing.id)
    return table.cache.get(key, lambda: _Recognised(_recognised(table, listing, snapshot))).listing


def _recognised(table: ParquetDirectory, listing: Listing, snapshot: Snapshot) -> Listing:
    entries = snapshot.segment_files
    file = alike(listing, entries)
    differs = (file >= 0) & (entries.end != 0)
    differs[differs] = entries.witness[differs] != listing.witness[file[differs]]
    differs[differs] = listing.stamp[file[differs]] != 0  # else there is no time, and any file of the size matches
    doubtful = np.flatnonzero(differs)
    if not len(doubtful):
        return listing
    ends = np.array(at_once(lambda i: _end(table, listing, i), file[doubtful].tolist(), FOOTER_THREADS), np.int64)
    same = doubtful[ends == entries.end[doubtful]]
    known_as = listing.witness.copy()
    known_as[file[same]] = entries.witness[same]
    return replace(listing, recognised=known_as)


def _end(table: ParquetDirectory, listing: Listing, ordinal: int) -> int:
    """Return the checksum of a file's end; 0, never a checksum, if it cannot be read or is not the listed file."""
    path = listing.paths[ordinal].as_py()
    key = ("end", path, *listing.identity(ordinal))

    def read() -> int:
        listed = table.listed(listing, ordinal)
        with listed.filesystem.open_input_file(listed.path) as file:
            end = end_of(file)
            listed.require(file)
        return end

    try:
        return table.cache.get(key, read)
    except (OSError, SecateurError):
        return 0
