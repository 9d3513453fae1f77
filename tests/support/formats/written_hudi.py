"""Hudi tables written by the specification, without Spark: for trouble that no writer at hand makes."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema([("rid", pa.int64()), ("s", pa.string())])
AVRO = {
    "type": "record",
    "name": "t",
    "fields": [{"name": "rid", "type": "long"}, {"name": "s", "type": ["null", "string"]}],
}
_TIMELINE = {5: ".hoodie", 6: ".hoodie", 9: ".hoodie/timeline"}
_TEXTS = {"type": "map", "values": ["null", "string"]}
_STAT = {
    "type": "record",
    "name": "Stat",
    "fields": [{"name": name, "type": ["null", "string"]} for name in ("fileId", "path", "prevCommit")],
}
_COMMIT = {  # the part of Hudi's own schema that matters
    "type": "record",
    "name": "HoodieReplaceCommitMetadata",
    "fields": [
        {"name": "partitionToWriteStats", "type": {"type": "map", "values": {"type": "array", "items": _STAT}}},
        {"name": "partitionToReplaceFileIds", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
        {"name": "extraMetadata", "type": _TEXTS},
        {"name": "operationType", "type": ["null", "string"]},
    ],
}


def at(second: int) -> int:
    """An instant: seconds after the tenth minute of the year 2026."""
    return 20260101001000000 + second * 1000


@dataclass
class WrittenTable:
    """A table whose file groups are named `a`, `b`, ...; commits take a second each."""

    directory: Path
    version: int = 6
    properties: Mapping[str, str] = field(default_factory=dict)
    second: int = 0
    newest: dict[str, int] = field(default_factory=dict)  # instant of the newest base file, by file group

    def __post_init__(self) -> None:
        self.timeline.mkdir(parents=True)
        values = {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": str(self.version),
            "hoodie.timeline.layout.version": "1" if self.version < 8 else "2",
            "hoodie.populate.meta.fields": "false",
            "hoodie.table.timeline.timezone": "UTC",
            **self.properties,
        }
        lines = "".join(f"{name}={value}\n" for name, value in values.items())
        (self.directory / ".hoodie/hoodie.properties").write_text(lines)
        self.mark("")

    @property
    def timeline(self) -> Path:
        return self.directory / _TIMELINE[self.version]

    def mark(self, partition: str) -> None:
        """Makes a directory one of the table's partitions."""
        (self.directory / partition).mkdir(exist_ok=True)
        (self.directory / partition / ".hoodie_partition_metadata").touch()

    def base(self, group: str, instant: int) -> str:
        """The path of a base file."""
        partition, _, name = group.rpartition("/")
        return f"{partition}/{name}_1-0-1_{instant}.parquet".lstrip("/")

    def log(self, group: str, instant: int, number: int = 1) -> str:
        """The path of a log file."""
        partition, _, name = group.rpartition("/")
        return f"{partition}/.{name}_{instant}.log.{number}_1-0-1".lstrip("/")

    def put(self, path: str, rids: Sequence[int] = ()) -> None:
        """Writes a base file, or a log file that cannot be read."""
        if not path.endswith(".parquet"):
            (self.directory / path).write_bytes(b"#HUDI#")
            return
        rows = pa.table([list(rids), [f"text {rid}" for rid in rids]], schema=SCHEMA)
        pq.write_table(rows, self.directory / path, row_group_size=2)

    def write(self, groups: Mapping[str, Sequence[int]], action: str = "commit", **more: Any) -> int:
        """Commits base files with ids; the instant."""
        self.second += 1
        instant = at(self.second)
        stats = []
        for group, rids in groups.items():
            path = self.base(group, instant)
            self.put(path, rids)
            stats.append(stat(path, self.newest.get(group)))
            self.newest[group] = instant
        return self.commit(instant, stats, action, **more)

    def append(self, groups: Sequence[str]) -> int:
        """Commits log files; the instant. In the older layout they are named after the base file before them."""
        self.second += 1
        instant = at(self.second)
        stats = []
        for group in groups:
            named = instant if self.version >= 8 else self.newest.get(group, instant)
            path = self.log(group, named, self.second)
            self.put(path)
            stats.append(stat(path, self.newest.get(group)))
        return self.commit(instant, stats, "deltacommit")

    def commit(
        self,
        instant: int,
        stats: Sequence[Mapping[str, Any]],
        action: str = "commit",
        replaced: Sequence[str] = (),
        done: int | None = None,
    ) -> int:
        """Writes the file of a complete commit, which ends half a second after its instant, or at `done`."""
        by_partition: dict[str, list[Any]] = {}
        for entry in stats:
            by_partition.setdefault(entry["path"].rpartition("/")[0], []).append(entry)
        gone: dict[str, list[str]] = {}
        for group in replaced:
            gone.setdefault(group.rpartition("/")[0], []).append(group.rpartition("/")[2])
        said = {
            "partitionToWriteStats": by_partition,
            "partitionToReplaceFileIds": gone,
            "extraMetadata": {"schema": json.dumps(AVRO)},
            "operationType": "UPSERT",
        }
        self.commit_file(instant, action, done).write_bytes(self.encoded(said))
        return instant

    def commit_file(self, instant: int, action: str = "commit", done: int | None = None) -> Path:
        """The file of a complete commit."""
        ended = f"_{done or instant + 500}" if self.version >= 8 else ""
        return self.timeline / f"{instant}{ended}.{action}"

    def encoded(self, said: Mapping[str, Any]) -> bytes:
        """A commit's metadata as the version of the table has it."""
        if self.version < 8:
            return json.dumps(said).encode()
        import fastavro

        buffer = io.BytesIO()
        fastavro.writer(buffer, fastavro.parse_schema(_COMMIT), [said])
        return buffer.getvalue()


def stat(path: str, previous: int | None = None) -> dict[str, Any]:
    """What a commit says of a file that it wrote."""
    name = path.rpartition("/")[2].lstrip(".")
    return {"fileId": name.partition("_")[0], "path": path, "prevCommit": str(previous or "null")}
