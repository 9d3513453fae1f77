"""Removing index files: those that nothing needs any more, or all."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator

from secateur.index.build import FOLDERS
from secateur.index.model import StoredFile
from secateur.index.snapshot import FOLDER as SNAPSHOTS_FOLDER
from secateur.index.snapshot import Snapshot, open_snapshot, snapshot_files, snapshot_name
from secateur.io.store import FileStore
from secateur.io.table import Table
from secateur.maintain.describe import filter_files
from secateur.maintain.entries import require_snapshot

DEFAULT_GRACE_SECONDS = 3600.0
_BUILD = re.compile(r"[0-9a-f]{12}(?=[-.])")  # with which the names of the files of a build begin


def vacuum_index(
    table: Table, *, dry_run: bool = False, grace_seconds: float = DEFAULT_GRACE_SECONDS
) -> list[StoredFile]:
    """Remove what no snapshot needs that is current or was so within the last `grace_seconds`.

    Those are files of older snapshots, and left-overs of builds that were killed. A build that is under way is left
    alone: its files count as old as the youngest of them, and if it writes none for longer than the grace period, it
    finds them gone and says so instead of publishing. Returns the files removed, or with `dry_run` those that would be.

    Raises IndexMissing, and IndexFault: a snapshot that cannot be read may name any file.
    """
    require_snapshot(table)
    store, old = table.store, time.time() - grace_seconds
    needed = {name for number in _recent(store, old) for name in used_files(open_snapshot(store, number))}
    files = [file for folder in (SNAPSHOTS_FOLDER, *FOLDERS) for file in store.files(folder)]
    youngest: dict[str, float] = {}
    for file in files:
        youngest[_build_of(file)] = max(file.modified, youngest.get(_build_of(file), 0.0))
    unused = [file for file in files if file.name not in needed and youngest[_build_of(file)] <= old]
    if not dry_run:
        _remove(store, unused)
    return unused


def _recent(store: FileStore, old: float) -> Iterator[int]:
    """The snapshots that are current, or were when or after it was `old`: followed by one that is younger."""
    files = snapshot_files(store)
    numbers = sorted(files)
    for number, following in zip(numbers, [*numbers[1:], None], strict=True):
        if following is None or files[following].modified > old:
            yield number


def _build_of(file: StoredFile) -> str:
    """The build that wrote a file; of what no build wrote, the file itself."""
    found = _BUILD.match(file.name.rpartition("/")[2])
    return file.name if found is None else found[0]


def used_files(snapshot: Snapshot) -> set[str]:
    """The files that a snapshot needs. Raises IndexFault."""
    manifests = [] if snapshot.made_of is None else [snapshot.made_of.manifests]
    return {snapshot_name(snapshot.number), *snapshot.segments.name, *filter_files(snapshot), *manifests}


def drop_index(table: Table, *, dry_run: bool = False) -> list[StoredFile]:
    """Remove the whole index; the files removed, or with `dry_run` those that would be.

    Old snapshots go first, then the current one, then what they name: a reader sees the current index or, from one
    moment on, none. Where there is no index, nothing is removed.
    """
    store = table.store
    files = [file for folder in (SNAPSHOTS_FOLDER, *FOLDERS) for file in store.files(folder)]
    if not dry_run:
        _remove(store, files)
    return files


def _remove(store: FileStore, files: Iterable[StoredFile]) -> None:
    for file in files:
        store.delete(file.name)
