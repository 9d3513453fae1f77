"""Remove index files: those no longer needed, or all."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from secateur.errors import IndexFault, IndexMissing
from secateur.index.build.build import FOLDERS
from secateur.index.file_names import build_of
from secateur.index.model import StoredFile
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.snapshot_files import FOLDER as SNAPSHOTS_FOLDER
from secateur.index.segments.snapshot_files import open_snapshot, snapshot_files, snapshot_name
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.maintain.describe import filter_files
from secateur.maintain.removal_marks import FOLDER as REMOVALS_FOLDER
from secateur.maintain.removal_marks import marked_for_removal

if TYPE_CHECKING:
    from secateur.io.tables.open import Source

DEFAULT_GRACE_SECONDS = 3600.0


def vacuum_index(
    table: Table | Source, *, dry_run: bool = False, grace_seconds: float = DEFAULT_GRACE_SECONDS
) -> list[StoredFile]:
    """Remove the files that are needed by no snapshot that was current within the last `grace_seconds`.

    These are files of older snapshots and leftovers of killed builds, a first build included. A running build is not
    touched: its files count as old as the youngest one. If it writes none for longer than the grace period, it
    finds them gone, and raises instead of publishing.

    Parameters
    ----------
    dry_run
        Remove nothing.
    grace_seconds
        Keep what a snapshot of this time needs, and what was written in it; readers and builds may still use it.

    Returns
    -------
    list of StoredFile
        The files removed, or with `dry_run` those that would be.

    Raises
    ------
    IndexMissing
        If there is no file of an index.
    IndexFault
        If a snapshot cannot be read, as it may name any file.
    IndexNotWritable
    """
    table = as_table(table)
    store, old = table.store, time.time() - grace_seconds
    needed = _needed(store, old)
    files = _all_files(store)
    if not files:
        raise IndexMissing(f"{table.location} has no index at {store.location}: build one with build_index()")
    youngest: dict[str, float] = {}
    for file in files:
        youngest[_unit_of(file)] = max(file.modified, youngest.get(_unit_of(file), 0.0))
    unused = [file for file in files if file.name not in needed and youngest[_unit_of(file)] <= old]
    if dry_run or not unused:
        return unused
    with marked_for_removal(store, _builds(unused) - {build_of(name) for name in needed}):
        needed = _needed(store, old)  # includes what was published meanwhile
        unused = [file for file in unused if file.name not in needed]
        _remove(store, unused)
    return unused


def _all_files(store: FileStore) -> list[StoredFile]:
    """List snapshots first, old ones before the current one, then the files they name."""
    return [file for folder in (SNAPSHOTS_FOLDER, *FOLDERS, REMOVALS_FOLDER) for file in store.files(folder)]


def _needed(store: FileStore, old: float) -> set[str]:
    """Return the files of the snapshots that are current, or were at or after time `old`. Raises IndexFault."""
    return {name for number in _recent(store, old) for name in _used_by(store, number)}


def _recent(store: FileStore, old: float) -> Iterator[int]:
    """Yield the snapshots that are current, or were at or after time `old`: their successor is younger."""
    files = snapshot_files(store)
    numbers = sorted(files)
    for number, following in zip(numbers, [*numbers, None][1:], strict=True):
        if following is None or files[following].modified > old:
            yield number


def _used_by(store: FileStore, number: int) -> set[str]:
    """Return the files that a snapshot needs; none if another vacuum or a drop has just removed it."""
    try:
        return used_files(open_snapshot(store, number))
    except IndexFault:
        if number in snapshot_files(store):
            raise
        return set()


def _unit_of(file: StoredFile) -> str:
    """Return the build that wrote a file; the file itself if no build did."""
    return build_of(file.name) or file.name


def _builds(files: Iterable[StoredFile]) -> set[str]:
    """Return the builds that wrote any of some files."""
    return {build for file in files if (build := build_of(file.name)) is not None}


def used_files(snapshot: Snapshot) -> set[str]:
    """Return the files that a snapshot needs. Raises IndexFault."""
    manifests = [] if snapshot.made_of is None else snapshot.made_of.names
    bases = [] if snapshot.base is None else [snapshot.base.name]
    return {snapshot_name(snapshot.number), *snapshot.segments.name, *filter_files(snapshot), *manifests, *bases}


def drop_index(table: Table | Source, *, dry_run: bool = False) -> list[StoredFile]:
    """Remove the whole index.

    Old snapshots go first, then the current one, then the files they name: a reader sees the current index or none. A
    build that is running then raises instead of publishing, unless it wrote its first file after the drop began.

    Returns
    -------
    list of StoredFile
        The files removed, or with `dry_run` those that would be; empty if there is no index.

    Raises
    ------
    IndexNotWritable
    """
    table = as_table(table)
    store = table.store
    files = _all_files(store)
    if dry_run or not files:
        return files
    snapshots = [file for file in files if file.name.startswith(SNAPSHOTS_FOLDER)]
    _remove(store, snapshots)
    builds = _builds(files)
    with marked_for_removal(store, builds):
        late = [file for number, file in snapshot_files(store).items() if _names_any(store, number, builds)]
        _remove(store, late)
        _remove(store, files[len(snapshots) :])
    return [*files, *late]


def _names_any(store: FileStore, number: int, builds: set[str]) -> bool:
    """Return whether a snapshot names a file of some builds, or cannot be read."""
    try:
        return any(build_of(name) in builds for name in _used_by(store, number))
    except IndexFault:
        return True


def _remove(store: FileStore, files: Iterable[StoredFile]) -> None:
    for file in files:
        store.delete(file.name)
