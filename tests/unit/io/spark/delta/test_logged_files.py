"""Files of a log that are named for Delta: the actions say what the log says."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest

import secateur as sec
from conformance.delta_log import DeltaLog, inline_vector, metadata, protocol, schema_text, stored_vectors
from secateur.io.spark.delta.logged_files import added_files
from secateur.io.tables.delta.snapshot import DeltaSnapshot

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("q", pa.string())])
PATHS = [
    "part-0.parquet",
    quote("p=a b%2Fc/q=ä:ö+/part 1%.parquet"),
    "s3://bucket/shallow%20clone/part-2.parquet",
    "file:///elsewhere/part-3.parquet",
    "file:/elsewhere/part-4.parquet",
    "/elsewhere/part-5%25.parquet",
]


@pytest.mark.parametrize("checkpoint", [None, "classic", "json"])
def test_files_are_named_as_the_log_names_them(tmp_path: Path, checkpoint: str | None) -> None:
    vectors = [None, inline_vector([1, 5]), *stored_vectors(tmp_path, [[3], [4]]), None, None]
    (absolute,) = stored_vectors(tmp_path, [[0]], absolute=True)
    vectors[4] = absolute
    values = [("a b/c", "ä:ö+"), (None, ""), ("", None), ("x", "y"), ("=", "%"), ("1", "2")]
    logged = {}
    for number, (path, vector, (p, q)) in enumerate(zip(PATHS, vectors, values, strict=True)):
        added = {"path": path, "partitionValues": {"p": p, "q": q}, "size": 100 + number, "modificationTime": number}
        logged[path] = added if vector is None else {**added, "deletionVector": vector}
    log = DeltaLog(tmp_path)
    log.commit(protocol("deletionVectors", "v2Checkpoint"), metadata(schema_text(SCHEMA), ("p", "q")))
    log.commit(*({"add": {**added, "dataChange": True}} for added in logged.values()))
    if checkpoint is not None:
        log.checkpoint(checkpoint)
    snapshot = sec.open_table(str(tmp_path)).snapshot()
    assert isinstance(snapshot, DeltaSnapshot)
    actions = [json.loads(text)["add"] for text in added_files(snapshot, np.arange(len(PATHS)))]
    assert {action["path"]: {**action, "dataChange": None} for action in actions} == {
        path: {**added, "dataChange": None} for path, added in logged.items()
    }
    (third,) = added_files(snapshot, np.array([3]))
    assert json.loads(third)["add"] == actions[3]
