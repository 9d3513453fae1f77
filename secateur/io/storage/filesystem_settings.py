"""What a filesystem of pyarrow was made with: the arguments that its pickle would carry, credentials among them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

import pyarrow.fs as pafs


def settings_of(filesystem: pafs.FileSystem) -> Mapping[str, Any]:
    """The settings of a filesystem of S3, GCS, Azure or HDFS, by the names of their classes' arguments."""
    settings: Mapping[str, Any] = filesystem.__reduce__()[1][0]
    return settings


def innermost(filesystem: pafs.FileSystem, path: str) -> tuple[pafs.FileSystem, str]:
    """The filesystem in which another shows a part, and the path there; itself where it shows all."""
    while isinstance(filesystem, pafs.SubTreeFileSystem):
        filesystem, path = filesystem.base_fs, posixpath.join(filesystem.base_path, path)
    return filesystem, path
