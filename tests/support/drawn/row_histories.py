"""Tables with random histories, of every format, that remember by which commit each row was written last.

Of every row they know its birth: the commit that wrote it as new data. A compaction moves rows, and leaves their births
as they are; an overwrite gives all rows that it writes a new one.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as PyIcebergTable

import secateur as sec
from conformance.delta_log import Action, inline_vector
from secateur.io.tables.table import Table
from tests.support.formats.delta_tables import LoggedTable, numbered
from tests.support.formats.iceberg_deletes import delete_positions
from tests.support.formats.iceberg_tables import catalog_in

Births = dict[int, int]  # by row id
APPEND, OVERWRITE, REMOVE, COMPACT, DELETE = "append", "overwrite", "remove", "compact", "delete"


class Writer(Protocol):
    """Writes one table; a file is known by a number."""

    steps: Sequence[str]  # that the format tells apart
    may_be_empty: bool

    @property
    def path(self) -> str:
        """Where the table lies."""

    def commit(self, added: Mapping[int, Sequence[int]], removed: Sequence[int], *, moves: bool) -> int:
        """Adds files with these row ids and removes others in one commit; the snapshot that it made."""

    def delete(self, file: int, rids: Sequence[int]) -> int:
        """Deletes rows of a file, which stays; the snapshot."""

    def open(self) -> Table: ...


@dataclass
class RowHistory:
    """A table, the births of its rows, and its snapshots."""

    writer: Writer
    draw: random.Random
    live: dict[int, Births] = field(default_factory=dict)  # by file
    written: dict[int, set[int]] = field(default_factory=dict)  # births in every file, also of rows deleted since
    snapshots: list[int] = field(default_factory=list)  # by commit
    kinds: list[str] = field(default_factory=list)  # of every commit
    states: list[list[int]] = field(default_factory=list)  # the rows after every commit
    log: list[str] = field(default_factory=list)
    rid: int = 0
    numbers: Any = field(default_factory=itertools.count)

    def step(self, steps: Sequence[str] = ()) -> None:
        """One random commit."""
        kind = self.draw.choice(steps or [APPEND, *self.writer.steps])
        chosen = self.draw.sample(sorted(self.live), min(len(self.live), self.draw.choice([1, 2, 2])))
        if not chosen or (len(chosen) == len(self.live) and kind == REMOVE and not self.writer.may_be_empty):
            kind = APPEND
        if kind == DELETE and len(self.live[chosen[0]]) < 2:
            kind = APPEND
        self.log.append(f"{len(self.snapshots)}: {kind} {chosen}")
        self.kinds.append(kind)
        commit = len(self.snapshots)
        match kind:
            case "append":
                new = [self._new(commit) for _ in range(self.draw.choice([1, 1, 2]))]
                self._commit(dict(zip(self.numbers, new, strict=False)), [])
            case "overwrite":
                kept = [rid for file in chosen for rid in self.live[file] if self.draw.random() < 0.6]
                self._commit({next(self.numbers): dict.fromkeys(kept, commit) | self._new(commit)}, chosen)
            case "remove":
                self._commit({}, chosen)
            case "compact":
                moved = {rid: birth for file in chosen for rid, birth in self.live[file].items()}
                self._commit({next(self.numbers): moved}, chosen, moves=True)
            case "delete":
                births = self.live[chosen[0]]
                gone = self.draw.sample(sorted(births), self.draw.randrange(1, len(births)))
                self.snapshots.append(self.writer.delete(chosen[0], gone))
                for rid in gone:
                    del births[rid]
        self.states.append(self.rids)

    def _new(self, commit: int) -> Births:
        n = self.draw.choice([1, 3, 9])
        self.rid += n
        return dict.fromkeys(range(self.rid - n, self.rid), commit)

    def _commit(self, added: Mapping[int, Births], removed: Sequence[int], *, moves: bool = False) -> None:
        rows = {file: sorted(births) for file, births in added.items()}
        self.snapshots.append(self.writer.commit(rows, removed, moves=moves))
        moved = {birth for file in removed for birth in self.written[file]} if moves else set()
        self.written |= {file: moved or set(births.values()) for file, births in added.items()}
        self.live = {file: births for file, births in {**self.live, **added}.items() if file not in removed}

    def after(self, commit: int) -> list[int] | None:
        """The rows that were born after a commit; None if such rows and others were written into one file."""
        sides = [{birth > commit for birth in self.written[file]} for file in self.live]
        if any(len(files) > 1 for files in sides):
            return None
        return sorted(rid for births in self.live.values() for rid, birth in births.items() if birth > commit)

    def appended(self, after: int, upto: int) -> list[int]:
        """The rows that the appends among some commits added."""
        commits = [i for i in range(after + 1, upto + 1) if self.kinds[i] == APPEND]
        return sorted(rid for i in commits for rid in set(self.states[i]) - set(self.states[i - 1]))

    def now_and_before(self, kind: str) -> list[tuple[Table, list[int]]]:
        """The table, unless it is empty, and one of its snapshots where its format has them; each with its rows."""
        tables = [(self.writer.open(), self.rids)] if self.live else []
        if kind == "directory":
            return tables
        commit = self.draw.randrange(len(self.snapshots))
        which = {"version" if kind == "delta" else "snapshot_id": self.snapshots[commit]}
        source = self.writer.path if kind == "delta" else self.writer.catalog.load_table("db.t")
        return [*tables, (sec.open_table(source, **which), self.states[commit])]

    @property
    def rids(self) -> list[int]:
        """All live rows."""
        return sorted(rid for births in self.live.values() for rid in births)


def rows(rids: Sequence[int]) -> pa.Table:
    """The rows of some ids."""
    return pa.concat_tables([numbered(rid, rid + 1) for rid in rids] or [numbered(0, 0)])


@dataclass
class DirectoryWriter:
    """A directory, whose index is refreshed after every commit."""

    directory: Path
    steps: Sequence[str] = (APPEND, OVERWRITE, REMOVE)
    may_be_empty: bool = False

    def commit(self, added: Mapping[int, Sequence[int]], removed: Sequence[int], *, moves: bool) -> int:
        for file in removed:
            (self.directory / f"part-{file}.parquet").unlink()
        for file, rids in added.items():
            self.directory.mkdir(exist_ok=True)
            pq.write_table(rows(rids), self.directory / f"part-{file}.parquet", row_group_size=2)
        return self.publish()

    @property
    def path(self) -> str:
        return str(self.directory)

    def publish(self) -> int:
        """Brings the index up to date; its snapshot."""
        table = self.open()
        known = [] if not (self.directory / "_secateur").exists() else [sec.refresh_index(table).index]
        return (known or [sec.build_index(table)])[0].number

    def delete(self, file: int, rids: Sequence[int]) -> int:
        raise AssertionError("rows are deleted with their file")

    def open(self) -> Table:
        return sec.open_table(self.directory)


@dataclass
class DeltaWriter:
    """A Delta table whose log is written by the protocol."""

    table: LoggedTable
    actions: dict[int, Action] = field(default_factory=dict)
    rids: dict[int, list[int]] = field(default_factory=dict)
    gone: dict[int, list[int]] = field(default_factory=dict)
    steps: Sequence[str] = (APPEND, OVERWRITE, REMOVE, COMPACT, COMPACT, DELETE)
    may_be_empty: bool = True

    def commit(self, added: Mapping[int, Sequence[int]], removed: Sequence[int], *, moves: bool) -> int:
        removal = {"deletionTimestamp": 0, "dataChange": not moves}
        actions = []
        for file in removed:
            add = self.actions[file]["add"]
            vector = {name: add[name] for name in ("deletionVector",) if name in add}
            actions.append({"remove": {"path": add["path"], **removal, **vector}})
        for file, rids in added.items():
            self.rids[file], self.gone[file] = list(rids), []
            add = self.table.file(rows(rids))
            self.actions[file] = {"add": {**add["add"], "dataChange": not moves}}
            actions.append(self.actions[file])
        self.table.log.commit(*actions)
        return self.version

    def delete(self, file: int, rids: Sequence[int]) -> int:
        self.gone[file] += [self.rids[file].index(rid) for rid in rids]
        self.actions[file] = self.table.delete(self.actions[file], inline_vector(sorted(self.gone[file])))
        return self.version

    @property
    def path(self) -> str:
        return str(self.table.directory)

    @property
    def version(self) -> int:
        return len(list((self.table.directory / "_delta_log").glob("*.json"))) - 1

    def open(self) -> Table:
        return sec.open_table(self.table.directory)


@dataclass
class IcebergWriter:
    """An Iceberg table that PyIceberg writes; a compaction is an overwrite whose snapshot says `replace`."""

    catalog: Catalog
    table: PyIcebergTable
    files: dict[int, DataFile] = field(default_factory=dict)
    rids: dict[int, list[int]] = field(default_factory=dict)
    steps: Sequence[str] = (APPEND, OVERWRITE, REMOVE, COMPACT, COMPACT, DELETE)
    may_be_empty: bool = True

    def commit(self, added: Mapping[int, Sequence[int]], removed: Sequence[int], *, moves: bool) -> int:
        with self.table.transaction() as transaction:
            update = transaction.update_snapshot()
            with update.overwrite() if removed else update.fast_append() as producer:
                for file in removed:
                    producer.delete_data_file(self.files[file])
                for file, rids in added.items():
                    written = _dataframe_to_data_files(transaction.table_metadata, rows(rids), self.table.io)
                    (self.files[file],) = written
                    self.files[file].spec_id = 0
                    self.rids[file] = list(rids)
                    producer.append_data_file(self.files[file])
        if moves:
            self._say_replace()
        return self._committed()

    def _committed(self) -> int:
        self.table = self.catalog.load_table("db.t")
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    @property
    def path(self) -> str:
        return str(self.table.location()).removeprefix("file://")

    def _say_replace(self) -> None:
        """PyIceberg has no compaction: the snapshot's operation is written by hand."""
        path = Path(self.table.metadata_location.removeprefix("file://"))
        metadata = json.loads(path.read_text())
        current = next(s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"])
        current["summary"]["operation"] = "replace"
        path.write_text(json.dumps(metadata))

    def delete(self, file: int, rids: Sequence[int]) -> int:
        positions = [self.rids[file].index(rid) for rid in rids]
        delete_positions(self.table, self.files[file].file_path, sorted(positions))
        return self._committed()

    def open(self) -> Table:
        return sec.open_table(self.catalog.load_table("db.t"))


def directory_history(at: Path, draw: random.Random) -> RowHistory:
    """A directory."""
    return RowHistory(DirectoryWriter(at / "t"), draw)


def delta_history(at: Path, draw: random.Random) -> RowHistory:
    """A Delta table; its first version has no rows."""
    made = RowHistory(DeltaWriter(LoggedTable(at / "t", numbered(0, 0).schema)), draw)
    made.snapshots, made.kinds, made.states = [0], [APPEND], [[]]
    return made


def iceberg_history(at: Path, draw: random.Random) -> RowHistory:
    """An Iceberg table of version 2."""
    catalog = catalog_in(at)
    return RowHistory(IcebergWriter(catalog, catalog.create_table("db.t", numbered(0, 0).schema)), draw)


HISTORIES: Mapping[str, Callable[[Path, random.Random], RowHistory]] = {
    "directory": directory_history,
    "delta": delta_history,
    "iceberg": iceberg_history,
}
