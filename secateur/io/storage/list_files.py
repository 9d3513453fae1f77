"""List the files below a directory of any pyarrow filesystem, with many threads."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from secateur.arrays import strings
from secateur.concurrency import at_once
from secateur.io.storage.filesystem_settings import innermost
from secateur.io.storage.witness import drawn, fsspec_of, version_of

FileSystem: TypeAlias = pafs.FileSystem
Wanted = TypeVar("Wanted")
Result = TypeVar("Result")

THREADS = 16  # for stores and network mounts, which have latency; on local disks two threads are as fast
WIDE = 2 * THREADS  # this many directories are each listed recursively: enough that a large one does not finish last
_MISSING = os.strerror(errno.ENOENT)
CHUNK = 1024  # names of one local directory that one thread looks up

# Spark's HadoopFSUtils.shouldFilterOutPathName, of any part of a path, in the syntax of RE2
_HIDDEN = r"(^|/)(\.|_[^/=]*(/|$))|\._COPYING_(/|$)"


@dataclass(frozen=True)
class ListedFiles:
    """Files at one moment: arrays of shape (n_files,), ordered by path."""

    paths: pa.Array  # below the directory
    size: np.ndarray  # bytes
    modified: np.ndarray  # nanoseconds since the epoch; 0 if the filesystem does not know
    witness: np.ndarray  # cannot be set back by tools; see :mod:`secateur.io.storage.witness`

    def take(self, chosen: np.ndarray) -> ListedFiles:
        """Return some of the files, by their ordinals, ascending."""
        paths = self.paths.take(pa.array(chosen, pa.int64()))
        return ListedFiles(paths, self.size[chosen], self.modified[chosen], self.witness[chosen])

    def equals(self, other: ListedFiles) -> bool:
        """Return whether these are the same files, unchanged."""
        return (
            self.paths.equals(other.paths)
            and np.array_equal(self.size, other.size)
            and np.array_equal(self.modified, other.modified)
            and np.array_equal(self.witness, other.witness)
        )


NO_FILES = ListedFiles(strings([]), *(np.zeros(0, np.int64) for _ in range(3)))


@dataclass(eq=False)
class _Listed:
    """The contents of one response of a filesystem."""

    paths: list[str]
    size: list[int]
    modified: list[int]
    witness: list[int]  # 0 if unknown
    directories: list[str]


def list_files(filesystem: FileSystem, root: str, *, wide: int = WIDE, hidden: str = _HIDDEN) -> ListedFiles:
    """List the files below a directory that Spark would read: no part of their path is hidden.

    `hidden` is another regular expression, in the syntax of RE2, for paths that are left out.

    Directories are listed level by level, those of a level in parallel, until a level has `wide` of them. Each of these
    is then listed recursively, which takes an object store one request per thousand files instead of one per directory.
    Anything that is not a file or directory (a dangling link, a socket) is left out; links are followed.

    Raises OSError if a directory cannot be listed, UnicodeError for a name that is not UTF-8.
    """
    filesystem, root = innermost(filesystem, root)
    if (fsspec := fsspec_of(filesystem)) is not None:
        fsspec.invalidate_cache()  # cached listings, which some filesystems keep forever
    parts: list[_Listed] = []
    level = [root]
    with ThreadPoolExecutor(THREADS) as threads:
        while level:
            whole = len(level) >= wide
            answers = list(_answers(filesystem, level, whole, threads))
            parts += answers
            below = [path for answer in answers for path in answer.directories]
            level = [] if whole else _without_hidden(below, root, hidden)
    return _gathered(parts, root, hidden)


def list_directories(filesystem: FileSystem, directories: Sequence[str]) -> list[ListedFiles]:
    """List the files directly in some directories, which are listed in parallel: one listing for each.

    Names that Spark passes over are left out. A directory that does not exist has no files. Raises as
    :func:`list_files`.
    """
    if (fsspec := fsspec_of(innermost(filesystem, "")[0])) is not None:
        fsspec.invalidate_cache()
    return at_once(lambda directory: _directly_in(*innermost(filesystem, directory)), directories, THREADS)


def _directly_in(filesystem: FileSystem, directory: str) -> ListedFiles:
    try:
        if isinstance(filesystem, pafs.LocalFileSystem):
            return _gathered([_looked_up(_paths_in(directory))], directory)
        return _gathered([_infos(filesystem, directory, False)], directory)
    except OSError as error:
        if not is_missing(error):
            raise
        return _gathered([], directory)


def is_missing(error: OSError) -> bool:
    """Return whether a file or directory is not there; pyarrow's GCS filesystem says so in the error's text alone."""
    return isinstance(error, FileNotFoundError | NotADirectoryError) or str(error).startswith(_MISSING)


def joined(listings: Sequence[ListedFiles], prefixes: Sequence[str]) -> ListedFiles:
    """Return the files of several listings as one, each with a prefix before its paths."""
    prefixed = [
        pc.binary_join_element_wise(a, listing.paths, "") for a, listing in zip(prefixes, listings, strict=True)
    ]
    paths = pa.concat_arrays(prefixed)
    order = pc.sort_indices(paths)
    at = np.from_dlpack(order)
    size = np.concatenate([listing.size for listing in listings])
    modified = np.concatenate([listing.modified for listing in listings])
    witness = np.concatenate([listing.witness for listing in listings])
    return ListedFiles(paths.take(order), size[at], modified[at], witness[at])


def _answers(
    filesystem: FileSystem, directories: Sequence[str], whole: bool, threads: ThreadPoolExecutor
) -> Iterator[_Listed]:
    """Yield the entries of some directories, or with `whole` everything below them."""
    if not isinstance(filesystem, pafs.LocalFileSystem):
        return _mapped(lambda path: _infos(filesystem, path, whole), directories, threads)
    if whole:
        return _mapped(_below_local, directories, threads)
    paths = _mapped(_paths_in, directories, threads)  # few directories, perhaps with very many files
    return _mapped(_looked_up, [chunk for level in paths for chunk in _chunks(level)], threads)


def _mapped(
    function: Callable[[Wanted], Result], wanted: Sequence[Wanted], threads: ThreadPoolExecutor
) -> Iterator[Result]:
    """Map in parallel; a single call is made here, since starting a thread takes longer than listing a directory."""
    return map(function, wanted) if len(wanted) == 1 else threads.map(function, wanted)


def _paths_in(directory: str) -> list[str]:
    prefix = directory.rstrip("/") + "/"
    return [prefix + name.decode() for name in os.listdir(directory.encode())]


def _chunks(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    return (paths[i : i + CHUNK] for i in range(0, len(paths), CHUNK))


def _below_local(directory: str) -> _Listed:
    """List everything below a directory of a local disk."""
    listed, level = _Listed([], [], [], [], []), [directory]
    while level:
        part = _looked_up(_paths_in(level.pop()))
        for name in ("paths", "size", "modified", "witness"):
            getattr(listed, name).extend(getattr(part, name))
        level += part.directories
    return listed


def _looked_up(paths: Sequence[str]) -> _Listed:
    """Look up some paths of a local disk. pyarrow does not return change times."""
    listed = _Listed([], [], [], [], [])
    for path in paths:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):  # gone by now, or a dangling link
            continue
        except OSError as error:
            if error.errno == errno.ELOOP:
                continue
            raise
        if stat.S_ISREG(status.st_mode):
            listed.paths.append(path)
            listed.size.append(status.st_size)
            listed.modified.append(status.st_mtime_ns)
            listed.witness.append(status.st_ctime_ns)
        elif stat.S_ISDIR(status.st_mode):
            listed.directories.append(path)
    return listed


def _infos(filesystem: FileSystem, directory: str, whole: bool) -> _Listed:
    """List a directory of another filesystem."""
    infos, versions = infos_with_versions(filesystem, pafs.FileSelector(directory, recursive=whole))
    files = [info for info in infos if info.type == pafs.FileType.File]
    modified = [info.mtime_ns or 0 for info in files]
    witness = [versions.get(info.path) or time for info, time in zip(files, modified, strict=True)]
    directories = [info.path for info in infos if info.type == pafs.FileType.Directory]
    return _Listed([info.path for info in files], [info.size for info in files], modified, witness, directories)


def infos_with_versions(
    filesystem: FileSystem, selector: pafs.FileSelector
) -> tuple[list[pafs.FileInfo], dict[str, int]]:
    """List as pyarrow does; also return the versions of fsspec's files by path, which its handler for them leaves out.

    Raises OSError.
    """
    versions: dict[str, int] = {}
    fsspec = fsspec_of(filesystem)
    if fsspec is None:
        return filesystem.get_file_info(selector), versions

    class Telling(pafs.FSSpecHandler):  # type: ignore[misc]
        def _create_file_info(self, path: str, info: Mapping[str, Any]) -> pafs.FileInfo:
            if (version := version_of(info)) is not None:
                versions[path] = version
            return super()._create_file_info(path, info)

    return Telling(fsspec).get_file_info_selector(selector), versions


def _gathered(parts: Sequence[_Listed], root: str, hidden: str = _HIDDEN) -> ListedFiles:
    paths = _below(chain.from_iterable(listed.paths for listed in parts), root)
    size = np.array(list(chain.from_iterable(listed.size for listed in parts)), np.int64)
    modified = np.array(list(chain.from_iterable(listed.modified for listed in parts)), np.int64)
    witness = np.array(list(chain.from_iterable(listed.witness for listed in parts)), np.int64)
    witness = np.where(witness != 0, witness, drawn(len(witness)))
    order = pc.sort_indices(paths)
    order = order.filter(_visible(paths, hidden).take(order))
    at = np.from_dlpack(order)
    size, modified, witness = size[at], modified[at], witness[at]
    for array in (size, modified, witness):  # a listing is shared by many queries
        array.setflags(write=False)
    return ListedFiles(paths.take(order), size, modified, witness)


def _below(paths: Iterable[str], root: str) -> pa.Array:
    prefix = root.rstrip("/") + "/"
    return strings([path.removeprefix(prefix) for path in paths])


def _without_hidden(directories: Sequence[str], root: str, hidden: str) -> list[str]:
    return strings(directories).filter(_visible(_below(directories, root), hidden)).to_pylist()


def is_visible(path: str) -> bool:
    """Return whether Spark reads a file of this path below a table's directory as a part of the table."""
    return bool(_visible(strings([path]), _HIDDEN)[0].as_py())


def _visible(paths: pa.Array, hidden: str) -> pa.Array:
    return pc.invert(pc.match_substring_regex(paths, hidden))
