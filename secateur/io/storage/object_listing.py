"""List the objects directly in a directory of an object store, with their tags, which pyarrow's listings leave out.

S3 lists times in whole seconds, so that by size and time alone an object is not told from another of its size that has
replaced it within the second. The tag (ETag) differs.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.fs as pafs

from secateur.io.storage.object_client import reading_client
from secateur.io.storage.stored_object import stored_object


@dataclass(frozen=True)
class ListedObject:
    """One object of a listing."""

    name: str  # in the directory
    size: int
    modified: float  # seconds since the epoch
    tag: str  # empty if the store gives none


def objects_in(filesystem: pafs.FileSystem, directory: str) -> list[ListedObject] | None:
    """Return the objects directly in a directory by name.

    None if the store has no client (see :func:`.stored_object.stored_object`), or does not answer it: pyarrow then
    lists, and says what is wrong.
    """
    target = stored_object(filesystem, directory)
    if target is None:
        return None
    import obstore
    from obstore.exceptions import BaseError

    prefix = target.key.rstrip("/") + "/"
    try:
        result = obstore.list_with_delimiter(reading_client(target), prefix)["objects"]
    except (BaseError, OSError, ValueError):
        return None
    listed = [
        ListedObject(
            meta["path"].removeprefix(prefix), int(meta["size"]), meta["last_modified"].timestamp(), meta["e_tag"] or ""
        )
        for meta in result
        if meta["path"].startswith(prefix)  # not the object that stands for the directory
    ]
    return sorted(listed, key=lambda item: item.name)
