"""The files below a directory of any filesystem of pyarrow, listed by many threads at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from secateur.arrays import strings

FileSystem: TypeAlias = pafs.FileSystem
Asked: TypeAlias = "pafs.FileSelector | Sequence[str]"  # what one thread asks the filesystem for: a directory, or paths

THREADS = 16  # stores are waited for; on local disks two threads are as fast as sixteen, network mounts are like stores
WIDE = 2 * THREADS  # so many directories are each listed whole: enough that a large one among them does not come last
CHUNK = 4096  # names of one local directory that one thread looks up

# Spark's HadoopFSUtils.shouldFilterOutPathName, of any part of a path, in the syntax of RE2
_HIDDEN = r"(^|/)(\.|_[^/=]*(/|$))|\._COPYING_(/|$)"


@dataclass(frozen=True)
class Files:
    """Files of one moment: arrays of shape (n_files,), ordered by path."""

    paths: pa.Array  # below the directory
    size: np.ndarray  # bytes
    modified: np.ndarray  # nanoseconds since the epoch; 0 where the filesystem does not know

    def equals(self, other: Files) -> bool:
        """Whether these are the same files, unchanged."""
        return (
            self.paths.equals(other.paths)
            and np.array_equal(self.size, other.size)
            and np.array_equal(self.modified, other.modified)
        )


@dataclass(frozen=True)
class _Found:
    """What one answer of the filesystem held."""

    paths: list[str]
    size: list[int]
    modified: list[int]
    directories: list[str]


def list_files(filesystem: FileSystem, root: str, *, wide: int = WIDE) -> Files:
    """The files below a directory that Spark would read: no part of their paths is hidden.

    Directories are listed level by level, those of a level at once, until a level has `wide` of them: each of these
    is then asked for with all that is below it, which takes an object store one request per thousand files, not one
    per directory. What is no file or directory (a link to nothing, a socket) is left out; links are followed.

    Raises OSError where a directory cannot be listed, UnicodeError for a name that is no UTF-8.
    """
    found: list[_Found] = []
    level = [root]
    with ThreadPoolExecutor(THREADS) as threads:
        while level:
            whole = len(level) >= wide
            answers = list(_answers(filesystem, level, whole, threads))
            found += answers
            below = [path for answer in answers for path in answer.directories]
            level = [] if whole else _without_hidden(below, root)
    return _gathered(found, root)


def _answers(
    filesystem: FileSystem, directories: Sequence[str], whole: bool, threads: ThreadPoolExecutor
) -> Iterator[_Found]:
    """What is in some directories, or with `whole` anywhere below them."""
    local = isinstance(filesystem, pafs.LocalFileSystem)
    read: Callable[[Sequence[pafs.FileInfo]], _Found] = _read_local if local else _read
    asked: Iterable[Asked] = (pafs.FileSelector(path, recursive=whole) for path in directories)
    if local and not whole:  # few directories, perhaps with very many files each
        asked = (chunk for paths in threads.map(_paths_in, directories) for chunk in _chunks(paths))
    return threads.map(lambda ask: read(filesystem.get_file_info(ask)), asked)


def _paths_in(directory: str) -> list[str]:
    prefix = directory.rstrip("/") + "/"
    return [prefix + name.decode() for name in os.listdir(directory.encode())]


def _chunks(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    return (paths[i : i + CHUNK] for i in range(0, len(paths), CHUNK))


def _read(infos: Sequence[pafs.FileInfo]) -> _Found:
    types = [info.type for info in infos]
    files = [info for info, type_ in zip(infos, types, strict=True) if type_ == pafs.FileType.File]
    directories = [info.path for info, type_ in zip(infos, types, strict=True) if type_ == pafs.FileType.Directory]
    return _found(files, directories)


def _read_local(infos: Sequence[pafs.FileInfo]) -> _Found:
    """As :func:`_read`: on local disks only files have a size, which is quicker to ask for than the type."""
    files = [info for info in infos if info.size is not None]
    others = [info for info in infos if info.size is None] if len(files) < len(infos) else []
    return _found(files, [info.path for info in others if info.type == pafs.FileType.Directory])


def _found(files: Sequence[pafs.FileInfo], directories: list[str]) -> _Found:
    modified = [info.mtime_ns or 0 for info in files]
    return _Found([info.path for info in files], [info.size for info in files], modified, directories)


def _gathered(found: Sequence[_Found], root: str) -> Files:
    paths = _below(chain.from_iterable(part.paths for part in found), root)
    size = np.array(list(chain.from_iterable(part.size for part in found)), np.int64)
    modified = np.array(list(chain.from_iterable(part.modified for part in found)), np.int64)
    order = pc.sort_indices(paths)
    order = order.filter(_visible(paths).take(order))
    at = np.from_dlpack(order)
    size, modified = size[at], modified[at]
    for array in (size, modified):  # a listing is shared by all queries that it serves
        array.setflags(write=False)
    return Files(paths.take(order), size, modified)


def _below(paths: Iterable[str], root: str) -> pa.Array:
    prefix = root.rstrip("/") + "/"
    return strings([path.removeprefix(prefix) for path in paths])


def _without_hidden(directories: Sequence[str], root: str) -> list[str]:
    return strings(directories).filter(_visible(_below(directories, root))).to_pylist()


def _visible(paths: pa.Array) -> pa.Array:
    return pc.invert(pc.match_substring_regex(paths, _HIDDEN))
