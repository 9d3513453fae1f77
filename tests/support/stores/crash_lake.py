"""A small table with known rows, on any filesystem, and checks of its index that must hold after any crash."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

import secateur as sec
from secateur.index.build.build import FOLDERS
from secateur.index.segments.snapshot_files import FOLDER as SNAPSHOTS
from secateur.index.segments.snapshot_files import open_snapshot, snapshot_numbers
from secateur.io.storage.index_location import INDEX_DIRECTORY
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.maintain.removal_marks import FOLDER as REMOVALS
from secateur.maintain.vacuum import used_files

ROWS = 12
# Files of other rows are as long as these, and so are their pages: what is read by old offsets is no error.
LOCATIONS: dict[str, Any] = {"row_group_size": 4, "use_dictionary": False, "compression": "none"}
Row = Mapping[str, Any]
QUESTIONS: list[tuple[str, Callable[[Row], bool]]] = [  # one that looks up, and one that finds nearly all
    ("user = 21 OR (word = 'w3' AND id > 9)", lambda row: row["user"] == 21 or (row["word"] == "w3" and row["id"] > 9)),
    ("id >= 3 OR user = 999", lambda row: row["id"] >= 3),
]
POSTINGS = {"word": "blocks", "id": "ordered"}
BUILD: dict[str, Any] = {"sort_key": ["id"], "bloom": ["user"], "postings": POSTINGS, "segment_blocks": 4}
OTHERWISE: dict[str, Any] = {"bloom": ["word"], "ngram": {"word": 2}, "segment_blocks": 7}


def rows_of(first: int, salt: int = 0) -> list[dict[str, Any]]:
    """Rows of one file; another salt gives others with the same ids."""
    ids = range(first, first + ROWS)
    return [{"id": i, "user": (i * 7 + salt) % 50, "word": f"w{(i + salt) % 5}"} for i in ids]


def _footer(data: bytes) -> bytes:
    """The footer of a file, whose length stands before the last four bytes."""
    return data[-8 - int.from_bytes(data[-8:-4], "little") :]


@dataclass
class Lake:
    """A directory of Parquet files, and their rows."""

    filesystem: pafs.FileSystem
    root: str
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def store(self) -> FileStore:
        return FileStore(self.filesystem, posixpath.join(self.root, INDEX_DIRECTORY))

    def open(self, store: FileStore | None = None) -> ParquetDirectory:
        """The table opened anew, its index in a store that may fail."""
        if isinstance(self.filesystem, pafs.LocalFileSystem):
            table = sec.open_table(self.root)
        else:
            table = sec.open_table(self.root, filesystem=self.filesystem)
        assert isinstance(table, ParquetDirectory)
        if store is None:
            return table
        return ParquetDirectory(table.location, table.filesystem, table.root, store)

    def write(self, name: str, rows: list[dict[str, Any]]) -> None:
        """A file, appended or in the place of another: whole from one moment on, as writers of tables do it."""
        self.filesystem.create_dir(self.root, recursive=True)
        aside = posixpath.join(self.root, f"_{name}")
        pq.write_table(pa.Table.from_pylist(rows), aside, **LOCATIONS, filesystem=self.filesystem)
        self.filesystem.move(aside, posixpath.join(self.root, name))
        self.rows[name] = rows

    def disguise(self, name: str, choices: Sequence[list[dict[str, Any]]], *, in_place: bool) -> bool:
        """Overwrites a file by the first rows of which size and time are, and the footer is not, those that it had.

        In place, the file stays the one that it was to the filesystem; else another is moved there. Gives whether there
        are such rows.
        """
        path, aside = posixpath.join(self.root, name), posixpath.join(self.root, f"_{name}")
        before = self._bytes(path)
        for rows in choices:
            pq.write_table(pa.Table.from_pylist(rows), aside, **LOCATIONS, filesystem=self.filesystem)
            data = self._bytes(aside)
            if len(data) == len(before) and _footer(data) != _footer(before):
                break
        else:
            self.filesystem.delete_file(aside)
            return False
        stat = os.stat(path) if isinstance(self.filesystem, pafs.LocalFileSystem) else None
        if in_place:
            with self.filesystem.open_output_stream(path) as stream:
                stream.write(data)
            self.filesystem.delete_file(aside)
        else:
            self.filesystem.move(aside, path)
        if stat is not None:
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self.rows[name] = rows
        return True

    def _bytes(self, path: str) -> bytes:
        with self.filesystem.open_input_file(path) as file:
            return bytes(file.read())

    def remove(self, name: str) -> None:
        self.filesystem.delete_file(posixpath.join(self.root, name))
        del self.rows[name]

    def index_files(self) -> set[str]:
        """All files below the index's directory, whatever they are."""
        files = self.filesystem.get_file_info(pafs.FileSelector(self.store.root, recursive=True, allow_not_found=True))
        return {info.path.removeprefix(self.store.root + "/") for info in files if info.type == pafs.FileType.File}

    def saved(self) -> dict[str, bytes]:
        """The bytes of the index."""
        return {name: self.store.read(name, 0, self.store.size(name)) for name in sorted(self.index_files())}

    def restore(self, saved: Mapping[str, bytes]) -> None:
        """The index as it was saved; data files are what they are."""
        for name in self.index_files():
            self.store.delete(name)
        for name, data in saved.items():
            self.store.put_aside(name, data)


def matching(lake: Lake, holds: Callable[[Row], bool]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for rows in lake.rows.values() for row in rows if holds(row))


def answers(table: ParquetDirectory, sql: str, *, strict: bool = True) -> list[tuple[Any, ...]]:
    """The rows that a query finds by the index; of trouble with it an IndexFault, where `strict`."""
    rows = sec.prune(table, sql, strict=strict).to_arrow(columns=["id", "user", "word"])
    return sorted(tuple(row.values()) for row in rows.to_pylist())


def check_answers(lake: Lake, *, strict: bool = True) -> None:
    """The rows of every question are right, and where `strict` the index has no fault."""
    table = lake.open()
    for sql, holds in QUESTIONS:
        assert answers(table, sql, strict=strict) == matching(lake, holds), sql


def check_index(lake: Lake) -> None:
    """The current snapshot is whole, or there is none, and answers are right."""
    check_answers(lake)
    numbers = snapshot_numbers(lake.store)
    if numbers:
        assert sec.verify_index(lake.open()).faults == ()
        assert used_files(open_snapshot(lake.store, numbers[-1])) <= lake.index_files()


def check_leftovers(lake: Lake) -> None:
    """A vacuum without grace leaves what the current snapshot needs and nothing else."""
    numbers = snapshot_numbers(lake.store)
    if lake.index_files():
        removed = {file.name for file in sec.vacuum_index(lake.open(), grace_seconds=0)}
        assert all(name.partition("/")[0] in (SNAPSHOTS, *FOLDERS, REMOVALS) for name in removed)
    used = used_files(open_snapshot(lake.store, numbers[-1])) if numbers else set()
    assert lake.index_files() == used


# ---- what is done to an index ----------------------------------------------------------------------------------------


def build(table: ParquetDirectory, **options: Any) -> None:
    sec.build_index(table, **(options or BUILD))


def rebuild(table: ParquetDirectory) -> None:
    build(table, **OTHERWISE)


def refresh(table: ParquetDirectory) -> None:
    sec.refresh_index(table)


def amend(table: ParquetDirectory) -> None:
    sec.refresh_index(table, postings=["user"], tokens=["word"], gaps=["id"])


def optimize(table: ParquetDirectory) -> None:
    sec.optimize_index(table)


def vacuum(table: ParquetDirectory) -> None:
    sec.vacuum_index(table, grace_seconds=0)


def drop(table: ParquetDirectory) -> None:
    sec.drop_index(table)


def nothing(lake: Lake) -> None:
    """No index."""


def indexed(lake: Lake) -> None:
    """An index of all files."""
    build(lake.open())


def changed(lake: Lake) -> None:
    """An index, since which a file was appended, one removed and one overwritten."""
    indexed(lake)
    change(lake)


def change(lake: Lake) -> None:
    lake.write("3.parquet", rows_of(3 * ROWS))
    lake.remove("0.parquet")
    lake.write("1.parquet", rows_of(ROWS, salt=3))


def refreshed(lake: Lake) -> None:
    """An index of which there were other versions."""
    changed(lake)
    refresh(lake.open())


def grown(lake: Lake) -> None:
    """An index that grew by small appends, and of which a file is gone."""
    indexed(lake)
    for i in range(3, 6):
        lake.write(f"{i}.parquet", rows_of((8 - i) * ROWS))
        refresh(lake.open())
    lake.remove("1.parquet")


def outgrown(lake: Lake) -> None:
    """An index that grew bit by bit, and a file that it does not know."""
    grown(lake)
    lake.write("7.parquet", rows_of(7 * ROWS))


@dataclass(frozen=True)
class Action:
    """Something that writes, and the index that it finds."""

    do: Callable[[ParquetDirectory], None]
    before: Callable[[Lake], None]


ACTIONS = {
    "build": Action(build, nothing),
    "rebuild": Action(rebuild, changed),
    "refresh": Action(refresh, changed),
    "refresh and merge": Action(refresh, outgrown),
    "amend": Action(amend, changed),
    "optimize": Action(optimize, grown),
    "vacuum": Action(vacuum, refreshed),
    "drop": Action(drop, refreshed),
}


def lake_on(filesystem: pafs.FileSystem, root: str, before: Callable[[Lake], None]) -> Lake:
    """A lake of three files, and an index."""
    lake = Lake(filesystem, root)
    for i in range(3):
        lake.write(f"{i}.parquet", rows_of(i * ROWS))
    before(lake)
    return lake
