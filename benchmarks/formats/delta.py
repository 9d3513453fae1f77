"""Opening a Delta table of 100,000 files, and planning over it, against the library `deltalake`.

The log has statistics of every file, but only the file that a query looks for exists.
"""

from __future__ import annotations

import datetime as dt
import json
from functools import partial
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.results import Kept, Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from conformance.delta_log import Action, DeltaLog, metadata, protocol, schema_text

FILES = 100_000
ROWS = 1_000  # of a file
COLUMNS = 8  # besides the one in the predicate
FORMS = ("commit", "checkpoint")


def open_delta(setting: Setting) -> Result:
    """The live files by columns, from one commit or from a checkpoint: read in full, and when the log has not grown."""
    n = setting.scaled(FILES)
    ratios: list[Ratio] = []
    for form in FORMS:
        path = str(setting.prepared(f"delta-{form}-{n}", partial(_write, n=n, form=form)))
        handle = sec.open_table(path)
        ours, again, theirs = race(
            [
                lambda path=path: sec.open_table(path).snapshot().listing(dt.UTC),  # type: ignore[misc]
                lambda handle=handle: handle.snapshot().listing(dt.UTC),  # type: ignore[misc]
                lambda path=path: deltalake.DeltaTable(path).file_uris(),  # type: ignore[misc]
            ],
            setting.repetitions,
        )
        reference = f"deltalake: paths only, from a {form}"
        ratios += [
            timed(f"opened, from a {form}", ours, reference, theirs),
            timed(f"looked at again, from a {form}", again, reference, theirs),
        ]
    return Result({"files": n}, tuple(ratios))


def plan_delta(setting: Setting) -> Result:
    """One file kept by the log's statistics, without an index: with the table open, and from its directory."""
    n = setting.scaled(FILES)
    path = str(setting.prepared(f"delta-checkpoint-{n}", partial(_write, n=n, form="checkpoint")))
    value = _asked(n) * ROWS + 7
    predicate, expression = f"id = {value}", ds.field("id") == value
    handle = sec.open_table(path)
    dataset = deltalake.DeltaTable(path).to_pyarrow_dataset()
    plan, cold, fragments = race(
        [
            lambda: sec.prune(handle, predicate),
            lambda: sec.prune(sec.open_table(path), predicate),
            lambda: list(dataset.get_fragments(filter=expression)),
        ],
        setting.repetitions,
    )
    kept = {
        "secateur": len(sec.prune(handle, predicate).files),
        "deltalake": len(list(dataset.get_fragments(filter=expression))),
    }
    reference = "fragments of deltalake's open dataset"
    ratios = (
        timed("prune() of an open table", plan, reference, fragments),
        timed("open_table() and prune()", cold, reference, fragments),
    )
    return Result({"files": n}, ratios, (Kept("delta", predicate, "files", n, 1, kept),))


def _asked(n: int) -> int:
    """The number of the file that exists."""
    return n // 2


def _write(path: Path, n: int, form: str) -> None:
    names = ["id", *(f"c{i}" for i in range(COLUMNS))]
    schema = pa.schema([(name, pa.int64()) for name in names])
    log = DeltaLog(path)
    log.commit(protocol(), metadata(schema_text(schema)))
    log.commit(*(_add(path, i, names, is_there=i == _asked(n)) for i in range(n)))
    if form == "checkpoint":
        log.checkpoint("classic")
        for version in range(log.version):
            log.path(version).unlink()


def _add(path: Path, i: int, names: list[str], *, is_there: bool) -> Action:
    name = f"part-{i:06d}-3f2c1a9e-7b7e-4e3b-9d0b.snappy.parquet"
    size = 1_000_000
    if is_there:
        pq.write_table(pa.table({column: range(i * ROWS, (i + 1) * ROWS) for column in names}), path / name)
        size = (path / name).stat().st_size
    lower, upper = dict.fromkeys(names, i * ROWS), dict.fromkeys(names, (i + 1) * ROWS - 1)
    stats = {"numRecords": ROWS, "minValues": lower, "maxValues": upper, "nullCount": dict.fromkeys(names, 0)}
    entry = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
    return {"add": {**entry, "stats": json.dumps(stats)}}
