"""The base files and log files below a Hudi table, by what their names tell.

Source: Hudi's technical specification, "Base File" and "Log File Format"; ``FSUtils``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags, from_numpy, truths
from secateur.io.storage.index_location import INDEX_DIRECTORY
from secateur.io.storage.list_files import FileSystem, ListedFiles, list_files
from secateur.io.tables.hudi.instants import numbers_of
from secateur.io.tables.hudi.properties import HOODIE

NOT_DATA = rf"^({HOODIE.replace('.', '[.]')}|{INDEX_DIRECTORY})(/|$)"  # a partition may be hidden to other engines
_MARK = r"(^|/)\.hoodie_partition_metadata[^/]*$"  # in every directory with files of the table
_BASE = r"^(?P<directory>.*/)?(?P<id>[^/_.][^/_]*)_(?P<token>[^/_]*)_(?P<instant>\d{14}|\d{17})\.parquet$"
_LOG = r"^(?P<directory>.*/)?\.(?P<id>[^/]+)_(?P<instant>\d{14}|\d{17})\.log\.\d+(?:_[^/]*)?$"
UNTOLD = int(np.iinfo(np.int64).max)  # the instant of a log file whose name tells none
_ANY_LOG = r"(^|/)\.[^/]*\.log\.[^/]*$"
_NO_ROWS = r"(-cdc|\.crc)$"  # ends the names of logs of changes, and of checksums that local filesystems keep


@dataclass(frozen=True)
class NamedFiles:
    """Files whose names have a file group and an instant: arrays of shape (n_files,)."""

    paths: pa.Array  # below the table
    group: pa.Array  # partition and id
    instant: np.ndarray

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, chosen: np.ndarray) -> NamedFiles:
        """Return some of the files, by their ordinals or by a mask."""
        at = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return NamedFiles(self.paths.take(from_numpy(at)), self.group.take(from_numpy(at)), self.instant[at])


@dataclass(frozen=True)
class FilesBelow:
    """What lies below a table at one moment."""

    listed: ListedFiles

    @cached_property
    def in_partitions(self) -> pa.Array:
        """The paths that lie in a directory which Hudi has marked as one of the table."""
        paths = self.listed.paths
        directories = pc.replace_substring_regex(paths, "[^/]*$", "")
        marked = directories.filter(pc.match_substring_regex(paths, _MARK))
        return paths.filter(pc.is_in(directories, value_set=marked))

    @property
    def base_files(self) -> NamedFiles:
        """The base files, of any commit."""
        return base_files_among(self.in_partitions)

    @property
    def log_files(self) -> NamedFiles:
        """The log files, of any commit."""
        return log_files_among(self.in_partitions)


def find_files(filesystem: FileSystem, root: str) -> FilesBelow:
    """List the files below a table. Raises OSError, UnicodeError."""
    return FilesBelow(list_files(filesystem, root, hidden=NOT_DATA))


def base_files_among(paths: pa.Array) -> NamedFiles:
    """Return the base files among some paths."""
    return _named(paths, _BASE)


def log_files_among(paths: pa.Array) -> NamedFiles:
    """Return the log files among some paths, without those of changes. One that tells no instant has the last there is.

    So it counts as newer than every base file.
    """
    logs = paths.filter(pc.match_substring_regex(paths, _ANY_LOG))
    logs = logs.filter(pc.invert(pc.match_substring_regex(logs, _NO_ROWS)))
    named = _named(logs, _LOG)
    others = logs.filter(pc.invert(pc.is_in(logs, value_set=named.paths)))
    groups = pa.concat_arrays([named.group, others])
    instants = np.append(named.instant, np.full(len(others), UNTOLD))
    return NamedFiles(pa.concat_arrays([named.paths, others]), groups, instants)


def _named(paths: pa.Array, pattern: str) -> NamedFiles:
    parts = pc.extract_regex(paths, pattern)
    is_named = truths(pc.is_valid(parts))
    parts = parts.filter(flags(is_named))
    directory, id_ = (pc.struct_field(parts, name) for name in ("directory", "id"))
    group = pc.binary_join_element_wise(directory, id_, "")
    return NamedFiles(paths.filter(flags(is_named)), group, numbers_of(pc.struct_field(parts, "instant")))
