"""How an index differs from what it should be: files that came, changed and went, and index files that are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from secateur.index.build.build import FOLDER as SEGMENTS_FOLDER
from secateur.index.filters.transpose import FOLDER as FILTERS_FOLDER
from secateur.index.identity import FileIdentity
from secateur.index.segments.segment_file import CODE
from secateur.index.segments.segment_table import Directory, Segments
from secateur.index.segments.snapshot import Snapshot
from secateur.io.storage.index_store import FileStore
from secateur.maintain.entries import indexed_files


@dataclass(frozen=True)
class Difference:
    """What stays of an index, and which files are to be indexed.

    Of segments that hold a live file all entries stay: those of files that are gone serve nothing and do no harm, and
    go when the segment is merged.
    """

    kept: Segments
    live: set[FileIdentity]
    new: Sequence[FileIdentity]
    added: int
    changed: int
    removed: int
    lost: int


def difference(
    store: FileStore, snapshot: Snapshot, files: Sequence[FileIdentity], broken: Collection[str] = ()
) -> Difference:
    """What is to be indexed of the live `files`, and what stays; index files that are `broken` count as gone."""
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
    """Which segments have their file, of the size that it should have: bool of shape (n_segments,)."""
    found = [sizes.get(name) == size for name, size in zip(segments.name, segments.size.tolist(), strict=True)]
    return np.array(found, bool)


def _without_lost_filters(sizes: Mapping[str, int], segments: Segments) -> Segments:
    """The segments as if they did not have the filters of which a file is gone, or cut off."""
    slabs, directory = dict(segments.slabs), dict(segments.directory)
    for f, found in segments.slabs.items():
        named = zip(found.file_name, found.file_size.tolist(), strict=True)
        lost = {name for name, size in named if sizes.get(name) != size}
        if lost:
            slabs[f], harmed = found.without_files(lost)
            codes = directory[CODE, f]
            size = codes.size.copy()
            size[harmed] = 0
            directory[CODE, f] = Directory(codes.at, size, codes.crc)
    return replace(segments, slabs=slabs, directory=directory)
