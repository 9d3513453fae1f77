"""Where the index of a table is: beside its data, or at a location that the user gives."""

from __future__ import annotations

import os
import posixpath

import pyarrow.fs as pafs

from secateur.errors import InvalidOption
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.list_files import FileSystem, is_visible
from secateur.io.storage.locations import resolve_location

# Below the table's location. Engines ignore names that begin with an underscore, and so do Delta's VACUUM and Iceberg's
# removal of orphan files.
INDEX_DIRECTORY = "_secateur"


def index_store(filesystem: FileSystem, root: str, index_location: str | None) -> FileStore:
    """Return the store of the index of the table at `root`. Raises as :func:`.locations.resolve_location`."""
    if index_location is None:
        return FileStore(filesystem, posixpath.join(root, INDEX_DIRECTORY))
    _, elsewhere, index_root = resolve_location(index_location, None)
    return FileStore(elsewhere, index_root)


def directory_index_store(filesystem: FileSystem, root: str, index_location: str | None, glob: str | None) -> FileStore:
    """Return the store of the index of the directory `root`, whose data are all files, or those that match `glob`.

    Raises as :func:`index_store`, and InvalidOption for an index whose files engines would read as data.
    """
    store = index_store(filesystem, root, index_location)
    if index_location is not None and glob is None and store.filesystem.equals(filesystem):
        _require_apart(store, filesystem, root)
    return store


def _require_apart(store: FileStore, filesystem: FileSystem, root: str) -> None:
    place, table = (_plain(filesystem, path) for path in (store.root, root))
    below = "" if place == table else place.removeprefix(f"{table}/")
    if below != place and is_visible(posixpath.join(below, "segments", "0.segment")):
        raise InvalidOption(
            f"the index location {store.location} lies in the table, where engines would read its files as data: name "
            f"a place outside, or one that begins with _, such as {posixpath.join(root, '_index')}"
        )


def _plain(filesystem: FileSystem, path: str) -> str:
    return os.path.realpath(path) if isinstance(filesystem, pafs.LocalFileSystem) else path.rstrip("/")
