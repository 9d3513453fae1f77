"""A predicate asked again: what it plans and reads once reads have told where it is TRUE on no row."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.planning.repeat_elsewhere import asked_elsewhere
from benchmarks.results import Kept, Result, against, unpaired
from benchmarks.setting import Setting, index_code
from benchmarks.timing import once, race
from secateur.io.scan.kept import plan_memory
from secateur.io.scan.kept.verdict_memory import BYTES_VARIABLE, MEMORY, MOST_BYTES
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.scan import Scan

FILES, GROUPS, ROWS = 200, 20, 500  # row groups of a file, rows of a row group
ERRORS = 8  # files that hold a match, in one row group each
USER = 77_007
PREDICATE = f"user_id = {USER} AND status = 'refused'"  # which no bounds rule out
PLAN_SECONDS = 0.001  # goal for a plan of what was asked before


@contextmanager
def remembering(most: int) -> Iterator[None]:
    """Let reads leave verdicts, and plans be kept, up to so many bytes; 0 for none, as where these are measured."""
    with patch.dict(os.environ, {BYTES_VARIABLE: str(most), plan_memory.BYTES_VARIABLE: str(most)}):
        yield


def repeat(setting: Setting) -> Result:
    """One predicate over a table, again, and again after a tenth was appended to the table."""
    files = setting.scaled(FILES, least=ERRORS)
    directory = setting.prepared(f"repeat-{files}", partial(_write, files=files))
    appended = [directory / "data" / f"{number:06}.parquet" for number in range(files, files + max(1, files // 10))]
    with remembering(MOST_BYTES):
        try:
            return _asked_again(setting, directory, files, appended)
        finally:
            for path in appended:
                path.unlink(missing_ok=True)


def _asked_again(setting: Setting, directory: Path, files: int, appended: list[Path]) -> Result:
    table = _opened(directory)
    MEMORY.forget(table.location)
    first, before = once(partial(_read, table))
    (plan,) = race([partial(_plan, table)], setting.repetitions)
    again, after = once(partial(_read, table))
    for path in appended:
        _write_file(path)
    grown = _opened(directory)
    _, with_new = once(partial(_read, grown))
    (plan_of_grown,) = race([partial(_plan, grown)], setting.repetitions)
    at_last = _plan(grown)
    elsewhere, said = asked_elsewhere(directory / "data", _index(directory), PREDICATE, setting.repetitions)
    new, matching = GROUPS * len(appended), min(ERRORS, files)
    ratios = (
        against("prune(), asked before", plan, PLAN_SECONDS),
        against("prune(), asked before, a tenth appended since", plan_of_grown, PLAN_SECONDS),
        unpaired("plan and read, the second time", again, "the first time", first),
        *elsewhere,
    )
    total = GROUPS * files
    kept = (
        _kept("asked for the first time", total, matching, before),
        _kept("again", total, matching, after),
        _kept("a tenth appended since", total + new, matching + new, with_new),
        _kept("and again", total + new, matching, at_last),
        *(
            Kept(f"first in another process, {what}", PREDICATE, "blocks", total + new, matching, {"secateur": blocks})
            for what, blocks in ((what, int(of_process["blocks"])) for what, of_process in said.items())
        ),
    )
    return Result({"blocks": total, "files": files, "appended blocks": new}, ratios, kept)


def _opened(directory: Path) -> ParquetDirectory:
    """The table with an index of bounds, brought up to date; one listing serves all plans."""
    location = _index(directory)
    table = sec.open_table(str(directory / "data"), index_location=location, freshness=600)
    assert isinstance(table, ParquetDirectory), "a path of Parquet files is opened as a directory"
    sec.refresh_index(table) if Path(location).exists() else sec.build_index(table)
    return table


def _index(directory: Path) -> str:
    return str(directory / f"index-{index_code()}")


def _plan(table: ParquetDirectory) -> Scan:
    return sec.prune(table, PREDICATE, strict=True, session_time_zone="UTC")


def _read(table: ParquetDirectory) -> Scan:
    """The plan, after its rows were read."""
    plan = _plan(table)
    plan.to_arrow()
    return plan


def _kept(which: str, total: int, needed: int, plan: Scan) -> Kept:
    """The blocks of one plan, beside those that hold a match or that no read has seen."""
    return Kept(which, PREDICATE, "blocks", total, needed, {"secateur": len(plan.survivors.blocks)})


def _write(directory: Path, files: int) -> None:
    (directory / "data").mkdir()
    for number in range(files):
        _write_file(directory / "data" / f"{number:06}.parquet", has_match=number < ERRORS)


def _write_file(path: Path, *, has_match: bool = False) -> None:
    """A file whose row groups have the same bounds; one row of its fourth row group may match."""
    rng = np.random.default_rng(int(path.stem))
    rows = GROUPS * ROWS
    user = rng.integers(0, 1_000_000, rows)
    status = rng.choice(["accepted", "refused", "sent"], rows)
    status[user == USER] = "sent"
    if has_match:
        user[3 * ROWS + 5], status[3 * ROWS + 5] = USER, "refused"
    columns = {"user_id": user, "status": status, "price": rng.random(rows), "note": rng.integers(0, 1 << 60, rows)}
    pq.write_table(pa.table(columns), path, row_group_size=ROWS)
