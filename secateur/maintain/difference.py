"""The difference between an index and its table: new, changed and removed files, and missing index files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import truths
from secateur.index.build.build import FOLDER as SEGMENTS_FOLDER
from secateur.index.filters.transpose import FOLDER as FILTERS_FOLDER
from secateur.index.identity import FileIdentity
from secateur.index.read.coverage import file_of_entry
from secateur.index.segments.segment_file import SIZE_CLASS
from secateur.index.segments.segment_table import Directory, FileTable, Segments
from secateur.index.segments.snapshot import Snapshot
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.listing import Listing
from secateur.maintain.entries import chosen_files


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


def difference(
    store: FileStore, snapshot: Snapshot, listing: Listing, usable: np.ndarray, broken: Collection[str] = ()
) -> Difference:
    """Return which of the `usable` live files must be indexed and what is kept; `broken` index files are missing."""
    stored = (file for folder in (SEGMENTS_FOLDER, FILTERS_FOLDER) for file in store.files(folder))
    sizes = {file.name: file.size for file in stored if file.name not in broken}
    before = snapshot.as_segments()
    entries = before.files
    file = file_of_entry(listing, entries, snapshot.by_path)
    known = file >= 0  # even if the segment is lost
    is_live = known & _are_there(sizes, before)[entries.segment]
    is_live[is_live] = usable[file[is_live]]
    stays = np.bincount(entries.segment[is_live], minlength=len(before)) > 0
    of_kept = stays[entries.segment]
    new, indexed = usable.copy(), np.zeros(len(usable), bool)
    new[file[known & of_kept]] = False
    indexed[file[known]] = True
    unknown = new & ~indexed
    changed = int(_among(listing.paths.filter(pa.array(unknown)), entries.path).sum())
    return Difference(
        kept=_without_lost_filters(sizes, before.take(np.flatnonzero(stays))),
        is_live=is_live[of_kept],
        new=chosen_files(listing, new),
        added=int(unknown.sum()) - changed,
        changed=changed,
        removed=_removed(entries, of_kept, listing.paths.filter(pa.array(usable))),
        lost=int((new & indexed).sum()),
    )


def _removed(entries: FileTable, of_kept: np.ndarray, live: pa.Array) -> int:
    """Count the paths of entries that are no longer live and leave the index."""
    leaving = entries.path.filter(pa.array(~of_kept))
    gone = pc.unique(leaving.filter(pa.array(~_among(leaving, live))))
    return int((~_among(gone, entries.path.filter(pa.array(of_kept)))).sum())


def _among(paths: pa.Array, others: pa.Array) -> np.ndarray:
    """Return which paths are among others: bool of shape (n_paths,). Hashes whichever are fewer."""
    paths, others = paths.cast(pa.large_string()), others.cast(pa.large_string())
    if len(paths) < len(others):
        others = others.filter(pc.is_in(others, value_set=paths))
    return truths(pc.is_in(paths, value_set=others))


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
