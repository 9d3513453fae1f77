"""An index grown by small appends, and the same optimized, against one built at once."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.results import Kept, Ratio, Result, timed, unpaired
from benchmarks.setting import Setting
from benchmarks.timing import once, race
from secateur.io.tables.directory.table import ParquetDirectory

APPENDS = 1000
ROWS = 1000  # of a file, in two row groups
KINDS = ("appended", "optimized", "built at once")


def appends(setting: Setting) -> Result:
    """Files of a thousand rows, each overlapping its neighbours in time, indexed one by one."""
    n = setting.scaled(APPENDS, least=8)
    root = setting.prepared_index(f"appends-{n}", partial(_write, n=n))
    tables = {kind: _opened(root, kind) for kind in KINDS}
    shutil.rmtree(root / "_optimized again", ignore_errors=True)
    shutil.copytree(root / "_appended", root / "_optimized again")
    shutil.rmtree(root / "_built again", ignore_errors=True)
    optimizing, _ = once(lambda: sec.optimize_index(_opened(root, "optimized again")))
    building, _ = once(lambda: _build(_opened(root, "built again")))
    ratios: list[Ratio] = [unpaired("optimize_index() after all appends", optimizing, "a build at once", building)]
    kept = []
    middle = n // 2 * ROWS
    for predicate in (f"ts BETWEEN {middle} AND {middle + 10}", f"id = {_ids(n // 2)[7]}", f"name = 'n{_ids(1)[3]}'"):
        grown, optimized, built = race(
            [partial(sec.prune, tables[kind], predicate) for kind in KINDS], setting.repetitions
        )
        ratios += [
            timed(f"prune(), {predicate}, after appends", grown, "the same index built at once", built, goal=2.0),
            timed(f"prune(), {predicate}, optimized", optimized, "the same index built at once", built, goal=1.2),
        ]
        left = {kind: len(sec.prune(table, predicate).blocks) for kind, table in tables.items()}
        matching = sec.prune(tables["built at once"], predicate, use_index=False).to_arrow(columns=["id"])
        assert {sec.prune(table, predicate).count() for table in tables.values()} == {len(matching)}
        left["secateur"] = left.pop("optimized")
        kept.append(Kept("appends", predicate, "blocks", 2 * n, None, left))
    segments = {kind: sec.describe_index(table).segments for kind, table in tables.items()}
    notes = tuple(f"{kind}: {number:,} segments" for kind, number in segments.items())
    return Result({"files": n, "rows": n * ROWS}, tuple(ratios), tuple(kept), notes)


def _opened(root: Path, kind: str) -> ParquetDirectory:
    table = sec.open_table(str(root), index_location=str(root / f"_{kind}"), freshness=float("inf"))
    assert isinstance(table, ParquetDirectory)
    return table


def _build(table: ParquetDirectory) -> None:
    sec.build_index(table, sort_key=["ts"], bloom=["id"], postings=["name"])


def _ids(i: int) -> np.ndarray:
    return np.random.default_rng(i).integers(0, 2**40, ROWS)


def _write(path: Path, n: int) -> None:
    grown = _opened(path, "appended")
    for i in range(n):
        ids = _ids(i)
        rows = {"ts": i * ROWS + np.arange(ROWS) * 3 // 2, "id": ids, "name": [f"n{number}" for number in ids]}
        pq.write_table(pa.table(rows), path / f"{i:06}.parquet", row_group_size=ROWS // 2)
        _build(grown) if not i else sec.refresh_index(grown)
    shutil.copytree(path / "_appended", path / "_optimized")
    sec.optimize_index(_opened(path, "optimized"))
    sec.vacuum_index(_opened(path, "optimized"), grace_seconds=-1)  # a query lists the snapshots
    _build(_opened(path, "built at once"))
