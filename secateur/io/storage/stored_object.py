"""Paths of pyarrow's filesystems as objects for obstore's client."""

from __future__ import annotations

import pyarrow.fs as pafs

from secateur.io.storage.azure_object import azure_object
from secateur.io.storage.filesystem_settings import innermost
from secateur.io.storage.gcs_object import gcs_object
from secateur.io.storage.object_client import StoredObject, is_cut_off
from secateur.io.storage.s3_object import s3_object

_BY_TYPE = {"s3": s3_object, "abfs": azure_object, "gcs": gcs_object}


def stored_object(filesystem: pafs.FileSystem, path: str) -> StoredObject | None:
    """Return a path of S3, Azure or Google's storage as an object.

    None for another filesystem, for settings that obstore does not support, and in a process whose clients do not work.
    """
    filesystem, path = innermost(filesystem, path)
    make = _BY_TYPE.get(filesystem.type_name)
    return None if make is None or is_cut_off() else make(filesystem, path)
