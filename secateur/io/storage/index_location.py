"""Where the index of a table is: beside its data, or at a location that the user gives."""

from __future__ import annotations

import posixpath

from secateur.io.storage.index_store import FileStore
from secateur.io.storage.list_files import FileSystem
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
