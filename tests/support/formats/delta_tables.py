"""Delta tables written by the protocol, in the forms that no writer at hand makes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from conformance.delta_log import Action, DeltaLog, metadata, protocol, schema_text

FEATURES = ("deletionVectors", "columnMapping", "timestampNtz", "v2Checkpoint")


def statistics(rows: pa.Table, **more: Any) -> str:
    """Statistics of integers and short texts, as a log has them."""
    lower, upper, nulls = {}, {}, {}
    for name in rows.column_names:
        column = rows[name]
        nulls[name] = column.null_count
        if (pa.types.is_integer(column.type) or pa.types.is_string(column.type)) and column.null_count < len(column):
            bounds = pc.min_max(column)
            lower[name], upper[name] = bounds["min"].as_py(), bounds["max"].as_py()
    logged = {"numRecords": len(rows), "minValues": lower, "maxValues": upper, "nullCount": nulls, **more}
    return json.dumps(logged)


@dataclass
class LoggedTable:
    """A table of columns `rid` and others, and the rows that it holds."""

    directory: Path
    schema: pa.Schema
    features: Sequence[str] = FEATURES
    log: DeltaLog = field(init=False)
    numbers: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.log = DeltaLog(self.directory)
        self.log.commit(protocol(*self.features), metadata(schema_text(self.schema)))

    def file(self, rows: pa.Table, groups: int = 4, **stats: Any) -> Action:
        """Writes a file; the action that adds it."""
        name = f"part-{next(self.numbers):05}.parquet"
        pq.write_table(rows, self.directory / name, row_group_size=groups)
        size = (self.directory / name).stat().st_size
        added = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
        return {"add": {**added, "stats": statistics(rows, **stats)}}

    def append(self, *tables: pa.Table) -> list[Action]:
        """Adds files in one commit."""
        actions = [self.file(rows) for rows in tables]
        self.log.commit(*actions)
        return actions

    def delete(self, add: Action, vector: Mapping[str, Any]) -> Action:
        """Gives a file a deletion vector; the action that adds it anew."""
        new = {"add": {**add["add"], "deletionVector": dict(vector)}}
        gone = {"path": add["add"]["path"], "deletionTimestamp": 0, "dataChange": True}
        if "deletionVector" in add["add"]:
            gone["deletionVector"] = add["add"]["deletionVector"]
        self.log.commit({"remove": gone}, new)
        return new


def numbered(start: int, stop: int) -> pa.Table:
    """Rows with ids, and a text."""
    ids = list(range(start, stop))
    return pa.table({"rid": pa.array(ids, pa.int64()), "s": pa.array([f"text {i % 7}" for i in ids], pa.string())})
