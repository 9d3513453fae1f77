"""Read what the commits of a Hudi table say: the files that each wrote, and the file groups that it replaced.

Source: Hudi's ``HoodieCommitMetadata``, ``HoodieReplaceCommitMetadata`` and ``HoodieWriteStat``: JSON in the timelines
of older tables, a file of Avro in those of newer ones.
"""

from __future__ import annotations

import io
import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import strings
from secateur.concurrency import at_once
from secateur.errors import TableNotFound, UnsupportedTable
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.redaction import trouble
from secateur.io.tables.hudi.instants import TEXT, number_of
from secateur.io.tables.hudi.timeline import InstantFile, Timeline

THREADS = 16  # for stores, which have latency
NO_INSTANT = -1  # of a file group's first file
_AVRO = b"Obj\x01"
_EXTERNAL = "_hudiext"  # ends the names of files that another format has written


@dataclass(frozen=True)
class Commit:
    """One complete commit: the files that it wrote, and the file groups that it replaced, by partition and id."""

    instant: int
    operation: str
    paths: pa.Array  # below the table, of base files and log files
    previous: np.ndarray  # the instant of the file in whose place each came, or NO_INSTANT
    replaced: pa.Array
    schema: str | None  # in Avro's JSON, without the meta columns


@dataclass(frozen=True)
class CommitReader:
    """Reads the commits of one table."""

    filesystem: FileSystem
    root: str
    timeline: Timeline

    def commits(self, known: Mapping[tuple[int, InstantFile], Commit]) -> dict[tuple[int, InstantFile], Commit]:
        """Return all complete commits of the timeline, oldest first; those `known` are not read again.

        Raises TableNotFound for a file that is missing or broken, UnsupportedTable.
        """
        wanted = list(self.timeline.commits.items())
        read = at_once(lambda item: known.get(item) or self._read(*item), wanted, THREADS)
        return dict(zip(wanted, read, strict=True))

    def rolled_back(self) -> np.ndarray:
        """Return the instants of commits that were rolled back, by the rollbacks in the timeline.

        Raises as :meth:`commits`.
        """
        instants: list[int] = []
        for name in self.timeline.rollbacks:
            with self._naming(name) as place:
                metadata = decoded(self._bytes_of(place))
                named = metadata.get("commitsRollback") or metadata.get("instantsToRollback") or ()
                instants += [number_of(instant) for instant in named]
        return np.array(instants, np.int64)

    def _read(self, instant: int, file: InstantFile) -> Commit:
        with self._naming(file.name) as place:
            return commit_of(instant, decoded(self._bytes_of(place)), f"{self.timeline.location}/{place}")

    def _bytes_of(self, place: str) -> bytes:
        with self.filesystem.open_input_file(posixpath.join(self.root, place)) as opened:
            return bytes(opened.read())

    @contextmanager
    def _naming(self, name: str) -> Iterator[str]:
        """Give the place of a file below the table, and name it in the error raised if it cannot be read."""
        place = posixpath.join(self.timeline.directory, name)
        try:
            yield place
        except (TableNotFound, UnsupportedTable):
            raise
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
            raise trouble(f"cannot read {self.timeline.location}/{place}", error, TableNotFound) from None


def decoded(data: bytes) -> Mapping[str, Any]:
    """Decode what a commit says. Raises ValueError and others if it is broken, UnsupportedTable without fastavro."""
    if data[: len(_AVRO)] != _AVRO:
        metadata = json.loads(data)
    else:
        if find_spec("fastavro") is None:
            raise UnsupportedTable("this table's timeline is in Avro: pip install 'secateur[hudi]'")
        import fastavro

        (metadata,) = fastavro.reader(io.BytesIO(data))
    if not isinstance(metadata, dict):
        raise ValueError("it is no record")
    return metadata


def commit_of(instant: int, metadata: Mapping[str, Any], place: str) -> Commit:
    """Return a commit. Raises UnsupportedTable for files of another format; KeyError, TypeError if it is broken."""
    stats: Sequence[Mapping[str, Any]] = [
        stat for part in metadata["partitionToWriteStats"].values() for stat in part if stat["path"]
    ]
    paths = strings([stat["path"].lstrip("/") for stat in stats])
    if pc.any(pc.match_substring(paths, _EXTERNAL), min_count=0).as_py():
        raise UnsupportedTable(f"{place} names files that another table format has written: open the table as that one")
    replaced = [
        posixpath.join(partition, group)
        for partition, groups in (metadata.get("partitionToReplaceFileIds") or {}).items()
        for group in groups
    ]
    extra = metadata.get("extraMetadata") or {}
    if extra.get("latest_schema"):
        raise UnsupportedTable(f"{place} has a schema that evolves on read, whose renamed columns are not found here")
    previous = np.array([_previous(stat.get("prevCommit")) for stat in stats], np.int64)
    operation = str(metadata.get("operationType") or "").lower()
    return Commit(instant, operation, paths, previous, strings(replaced), extra.get("schema") or None)


def _previous(text: str | None) -> int:
    return number_of(text) if text and TEXT.fullmatch(text) else NO_INSTANT
