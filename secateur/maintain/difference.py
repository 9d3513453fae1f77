"""The difference between an index and its table: new, changed and removed files, and missing index files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy
from secateur.index.build.build import FOLDER as SEGMENTS_FOLDER
from secateur.index.filters.transpose import FOLDER as FILTERS_FOLDER
from secateur.index.identity import FileIdentity
from secateur.index.read.coverage import file_of_entry
from secateur.index.segments.path_search import among
from secateur.index.segments.segment_file import SIZE_CLASS
from secateur.index.segments.segment_files import SegmentFiles
from secateur.index.segments.segment_table import Directory, Segments
from secateur.index.segments.snapshot import Snapshot
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.listing import Listing
from secateur.maintain.entries import chosen_files
from secateur.ragged import offsets_of


@dataclass(frozen=True)
class Difference:
    """What is kept of an index, and which files must be indexed.

    A segment with at least one live file keeps all its entries. Entries of removed files are useless but harmless, and
    are dropped when the segment is merged.
    """

    kept: Segments
    is_live: np.ndarray  # which entries of the kept segments have a live file: bool of shape (n_entries,)
    new: Sequence[FileIdentity]
    added: int
    changed: int
    removed: int
    lost: int
    is_whole: bool  # whether every entry is kept, and is that of a live file of its own


def difference(
    store: FileStore, snapshot: Snapshot, listing: Listing, usable: np.ndarray, broken: Collection[str] = ()
) -> Difference:
    """Return which of the `usable` live files must be indexed and what is kept; `broken` index files are missing."""
    stored = (file for folder in (SEGMENTS_FOLDER, FILTERS_FOLDER) for file in store.files(folder))
    sizes = {file.name: file.size for file in stored if file.name not in broken}
    before = snapshot.as_segments()
    entries = before.files
    file = file_of_entry(listing, entries)
    known = file >= 0  # even if the segment is lost
    is_live, there = known, _are_there(sizes, before)
    if not there.all():
        is_live = is_live & there[entries.segment]
    if not usable.all():
        is_live = is_live & usable[file]
    stays = np.diff(offsets_of(is_live)[offsets_of(entries.count)]) > 0
    of_kept = np.repeat(stays, entries.count)
    new, indexed = usable.copy(), np.zeros(len(usable), bool)
    new[file[known & of_kept]] = False
    indexed[file[known]] = True
    unknown = new & ~indexed
    changed = int(entries.holds(listing.paths.take(from_numpy(np.flatnonzero(unknown))).cast(pa.large_string())).sum())
    return Difference(
        kept=_without_lost_filters(sizes, before.take(np.flatnonzero(stays))),
        is_live=is_live[of_kept],
        new=chosen_files(listing, new),
        added=int(unknown.sum()) - changed,
        changed=changed,
        removed=_removed(entries, of_kept, listing, usable),
        lost=int((new & indexed).sum()),
        is_whole=bool(is_live.all()) and int(indexed.sum()) == len(file),
    )


def _removed(entries: SegmentFiles, of_kept: np.ndarray, listing: Listing, usable: np.ndarray) -> int:
    """Count the paths of entries that are no longer live and leave the index."""
    if of_kept.all():
        return 0
    leaving, live = entries.path.filter(pa.array(~of_kept)), listing.paths.filter(pa.array(usable))
    gone = pc.unique(leaving.filter(pa.array(~among(leaving, live))))
    return int((~among(gone, entries.path.filter(pa.array(of_kept)))).sum())


def _are_there(sizes: Mapping[str, int], segments: Segments) -> np.ndarray:
    """Return which segments have a file of the right size: bool of shape (n_segments,)."""
    as_recorded = [sizes.get(name) == size for name, size in zip(segments.name, segments.size.tolist(), strict=True)]
    return np.array(as_recorded, bool)


def _without_lost_filters(sizes: Mapping[str, int], segments: Segments) -> Segments:
    """Return the segments without the filters that have a missing or truncated file."""
    bloom_matrices, directory = dict(segments.bloom_matrices), dict(segments.directory)
    for f, matrices in segments.bloom_matrices.items():
        named = zip(matrices.file_name, matrices.file_size.tolist(), strict=True)
        lost = {name for name, size in named if sizes.get(name) != size}
        if lost:
            bloom_matrices[f], harmed = matrices.without_files(lost)
            size_classes = directory[SIZE_CLASS, f]
            size = size_classes.size.copy()
            size[harmed] = 0
            directory[SIZE_CLASS, f] = Directory(size_classes.at, size, size_classes.crc)
    return replace(segments, bloom_matrices=bloom_matrices, directory=directory)
