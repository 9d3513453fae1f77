"""The difference between an index and its table: new, changed and removed files, and missing index files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from secateur.index.build.build import FOLDER as SEGMENTS_FOLDER
from secateur.index.filters.transpose import FOLDER as FILTERS_FOLDER
from secateur.index.identity import FileIdentity
from secateur.index.segments.segment_file import SIZE_CLASS
from secateur.index.segments.segment_table import Directory, Segments
from secateur.index.segments.snapshot import Snapshot
from secateur.io.storage.index_store import FileStore
from secateur.maintain.entries import indexed_files


@dataclass(frozen=True)
class Difference:
    """What is kept of an index, and which files must be indexed.

    A segment with at least one live file keeps all its entries: those of removed files are useless but harmless, and go
    when the segment is merged.
    """

    kept: Segments
    live: AbstractSet[FileIdentity]
    new: Sequence[FileIdentity]
    added: int
    changed: int
    removed: int
    lost: int


def difference(
    store: FileStore, snapshot: Snapshot, files: Sequence[FileIdentity], broken: Collection[str] = ()
) -> Difference:
    """Return which live `files` must be indexed and what is kept; `broken` index files count as missing."""
    stored = (file for folder in (SEGMENTS_FOLDER, FILTERS_FOLDER) for file in store.files(folder))
    sizes = {file.name: file.size for file in stored if file.name not in broken}
    before = snapshot.as_segments()
    live, known = set(files), indexed_files(before.files)
    is_there = _are_there(sizes, before)
    is_live = np.array([file in live for file in known], bool) & is_there[before.files.segment]
    kept = before.take(np.flatnonzero(np.bincount(before.files.segment[is_live], minlength=len(before))))
    covered, indexed = set(indexed_files(kept.files)), set(known)
    new = [file for file in files if file not in covered]
    unknown = [file for file in new if file not in indexed]
    paths = _paths(known)
    changed = sum(file.path in paths for file in unknown)
    return Difference(
        kept=_without_lost_filters(sizes, kept),
        live=live,
        new=new,
        added=len(unknown) - changed,
        changed=changed,
        removed=len(paths - _paths(files) - _paths(covered)),
        lost=len(new) - len(unknown),
    )


def _paths(files: Iterable[FileIdentity]) -> set[str]:
    return {file.path for file in files}


def _are_there(sizes: Mapping[str, int], segments: Segments) -> np.ndarray:
    """Return which segments have their file, with the right size: bool of shape (n_segments,)."""
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
