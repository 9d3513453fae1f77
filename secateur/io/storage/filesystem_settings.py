"""The constructor arguments of a pyarrow filesystem, as in its pickle, including credentials."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

import pyarrow.fs as pafs


def settings_of(filesystem: pafs.FileSystem) -> Mapping[str, Any]:
    """Return the settings of an S3, GCS, Azure or HDFS filesystem, by argument name."""
    settings: Mapping[str, Any] = filesystem.__reduce__()[1][0]
    return settings


def innermost(filesystem: pafs.FileSystem, path: str) -> tuple[pafs.FileSystem, str]:
    """Unwrap a filesystem that shows part of another; return the inner filesystem and the path there."""
    while isinstance(filesystem, pafs.SubTreeFileSystem):
        filesystem, path = filesystem.base_fs, posixpath.join(filesystem.base_path, path)
    return filesystem, path
