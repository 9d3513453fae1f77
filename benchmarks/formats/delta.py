"""Opening a Delta table of 100,000 files, and planning over it, against the library `deltalake` and Delta in Spark.

The log has statistics of every file, but only the files that a query looks for exist. Its checkpoint is written by
deltalake, and its files are named in no order, as writers name them.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
import shutil
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.planning.scale_tables import changing
from benchmarks.results import Kept, Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.spark.sessions import delta_session, delta_trouble
from benchmarks.timing import Contender, Timing, race
from conformance.delta_log import Action, DeltaLog, metadata, protocol, schema_text
from secateur.io.tables.delta.log_files import LOG_DIRECTORY, commit_name

FILES = 100_000
ROWS = 1_000  # of a file
COLUMNS = 8  # besides the one in the predicate
FORMS = ("commit", "checkpoint")
CLOCKS = {"elapsed": time.perf_counter, "processor time": time.process_time}
GROWN = "deltalake: update_incremental(), paths only"
ONE_IN = 100  # goal: times as fast
SCATTERED = {"c0": 2**0.5 % 1, "c1": 3**0.5 % 1, "c2": 5**0.5 % 1}  # columns in no order: steps, of all files
SHARE = 0.01  # of the files, that one range keeps
CALLS = 400  # until ranges come again
DELTALAKE, DELTA = "fragments of deltalake's open dataset", "Delta's own planning in Spark"


def open_delta(setting: Setting) -> Result:
    """The live files by columns, from one commit or a checkpoint: in full, looked at again, and grown by a commit.

    Each by the clock, and by the processor time of all threads.
    """
    n = setting.scaled(FILES)
    ratios: list[Ratio] = []
    for form in FORMS:
        path = setting.prepared(f"delta-log-{form}-{n}", partial(_write, n=n, form=form))
        with TemporaryDirectory() as directory:
            contenders = [*_opened(str(path)), *_grown(path, Path(directory))]
            for clock, of_clock in CLOCKS.items():
                ours, again, theirs, ours_grown, theirs_grown = race(contenders, setting.repetitions, clock=of_clock)
                reference = f"deltalake: paths only, from a {form}"
                ratios += [
                    timed(f"opened, from a {form}, {clock}", ours, reference, theirs),
                    timed(f"looked at again, from a {form}, {clock}", again, reference, theirs),
                    timed(f"grown by a commit, from a {form}, {clock}", ours_grown, GROWN, theirs_grown),
                ]
    return Result({"files": n}, tuple(ratios))


def _opened(path: str) -> list[Contender]:
    """Open a table, look at an open one again, and open it with deltalake."""
    handle = sec.open_table(path)
    return [
        lambda: sec.open_table(path).snapshot().listing(dt.UTC),
        lambda: handle.snapshot().listing(dt.UTC),
        lambda: deltalake.DeltaTable(path).file_uris(),
    ]


def _grown(path: Path, directory: Path) -> list[Contender]:
    """Add a file by a commit, and look at an open table: here, and with deltalake; each in a copy of the log."""
    copies = [directory / name for name in ("secateur", "deltalake")]
    for copy in copies:
        shutil.copytree(path / LOG_DIRECTORY, copy / LOG_DIRECTORY)
    handle, theirs = sec.open_table(str(copies[0])), deltalake.DeltaTable(str(copies[1]))
    versions = [itertools.count(theirs.version() + 1) for _ in copies]

    def grow(copy: int) -> None:
        version = next(versions[copy])
        added = json.dumps(_add(copies[copy], FILES + version, {"id": version}, is_there=False))
        (copies[copy] / LOG_DIRECTORY / commit_name(version)).write_text(added)

    def ours() -> object:
        grow(0)
        return handle.snapshot().listing(dt.UTC)

    def with_deltalake() -> object:
        grow(1)
        theirs.update_incremental()
        return theirs.file_uris()

    return [ours, with_deltalake]


def plan_delta(setting: Setting) -> Result:
    """Files kept by the log's statistics, without an index: by one value, and by three ranges in no order.

    Another value and other ranges in every call; with the table open, and once from its directory.
    """
    n = setting.scaled(FILES)
    path = str(setting.prepared(f"delta-log-checkpoint-{n}", partial(_write, n=n, form="checkpoint")))
    handle, dataset = sec.open_table(path), deltalake.DeltaTable(path).to_pyarrow_dataset()
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    with delta_session() as spark:
        trouble = delta_trouble(spark)
        for name, windows in (("one value", _value), ("three ranges", _ranges)):

            def planned(call: int, windows: Windows = windows) -> int:
                return len(sec.prune(handle, _in_sql(windows(n, call))).files)

            def cold(call: int, windows: Windows = windows) -> int:
                return len(sec.prune(sec.open_table(path), _in_sql(windows(n, call))).files)

            def fragments(call: int, windows: Windows = windows) -> int:
                return len(list(dataset.get_fragments(filter=_in_arrow(windows(n, call)))))

            def scanned(call: int, windows: Windows = windows) -> int:
                frame = spark.read.format("delta").load(path).where(_in_sql(windows(n, call)))
                return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())

            raced = [planned, cold, fragments, *([] if trouble else [scanned])]
            ours, ours_cold, *peers = race([changing(contender) for contender in raced], setting.repetitions)
            ratios += _beside(name, ours, ours_cold, peers)
            counts = {"secateur": planned(0), "deltalake": fragments(0)}
            kept.append(Kept("delta", _in_sql(windows(n, 0)), "files", n, _ideal(n, windows(n, 0)), counts))
    return Result({"files": n}, tuple(ratios), tuple(kept), (trouble,) if trouble else ())


def _beside(name: str, plan: Timing, cold: Timing, peers: list[Timing]) -> list[Ratio]:
    """The ratios of a plan to every peer that was raced."""
    named = list(zip((DELTALAKE, DELTA), peers, strict=False))
    open_table = [timed(f"prune() of an open table, {name}", plan, peer, time, 1 / ONE_IN) for peer, time in named]
    return [*open_table, *(timed(f"open_table() and prune(), {name}", cold, peer, time) for peer, time in named)]


Windows = Callable[[int, int], dict[str, tuple[int, int]]]


def _value(n: int, call: int) -> dict[str, tuple[int, int]]:
    """A value of `id` in every call, all in one file."""
    value = _asked(n) * ROWS + call % ROWS
    return {"id": (value, value)}


def _ranges(n: int, call: int) -> dict[str, tuple[int, int]]:
    """A range of every column in no order, each around the values of one file."""
    half = int(n * ROWS * SHARE / 2)
    middles = {name: int(_lowers(name, n)[_asked(n)]) + ROWS // 2 for name in SCATTERED}
    return {name: (middle - half - call % CALLS, middle + half - call % CALLS) for name, middle in middles.items()}


def _in_sql(windows: dict[str, tuple[int, int]]) -> str:
    return " AND ".join(f"{name} BETWEEN {low} AND {high}" for name, (low, high) in windows.items())


def _in_arrow(windows: dict[str, tuple[int, int]]) -> ds.Expression:
    first, *others = [(ds.field(name) >= low) & (ds.field(name) <= high) for name, (low, high) in windows.items()]
    for other in others:
        first &= other
    return first


def _ideal(n: int, windows: dict[str, tuple[int, int]]) -> int:
    """How many files have bounds that meet all windows."""
    return int(_meeting(n, windows).sum())


def _meeting(n: int, windows: dict[str, tuple[int, int]]) -> np.ndarray:
    """Which files have bounds that meet all windows: bool of shape (n,)."""
    kept = np.ones(n, bool)
    for name, (low, high) in windows.items():
        lower = _lowers(name, n)
        kept &= (lower <= high) & (lower + ROWS - 1 >= low)
    return kept


@cache
def _lowers(name: str, n: int) -> np.ndarray:
    """The least value of a column in every file: multiples of a step with no divisor in common with their number."""
    step = 1
    if name in SCATTERED:
        step = next(step for step in itertools.count(max(1, round(SCATTERED[name] * n))) if math.gcd(step, n) == 1)
    return np.arange(n) * step % n * ROWS


def _asked(n: int) -> int:
    """The number of the file that is looked for."""
    return n // 2


def _write(path: Path, n: int, form: str) -> None:
    names = ["id", *(f"c{i}" for i in range(COLUMNS))]
    schema = pa.schema([(name, pa.int64()) for name in names])
    log = DeltaLog(path)
    log.commit(protocol(), metadata(schema_text(schema)))
    lowers = {name: _lowers(name, n).tolist() for name in names}
    looked_for = np.any(
        [_meeting(n, windows(n, call)) for windows in (_value, _ranges) for call in range(CALLS)], axis=0
    )
    numbers = np.random.default_rng(7).permutation(n).tolist()
    log.commit(
        *(
            _add(path, number, {name: column[i] for name, column in lowers.items()}, is_there=bool(looked_for[i]))
            for i, number in enumerate(numbers)
        )
    )
    if form == "checkpoint":
        deltalake.DeltaTable(str(path)).create_checkpoint()
        for version in range(log.version):
            log.path(version).unlink()


def _add(path: Path, number: int, lower: dict[str, int], *, is_there: bool) -> Action:
    name = f"part-{number:06d}-3f2c1a9e-7b7e-4e3b-9d0b.snappy.parquet"
    size = 1_000_000
    if is_there:
        pq.write_table(pa.table({column: range(low, low + ROWS) for column, low in lower.items()}), path / name)
        size = (path / name).stat().st_size
    upper = {column: low + ROWS - 1 for column, low in lower.items()}
    stats = {"numRecords": ROWS, "minValues": lower, "maxValues": upper, "nullCount": dict.fromkeys(lower, 0)}
    entry = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
    return {"add": {**entry, "stats": json.dumps(stats)}}
