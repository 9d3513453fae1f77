"""A predicate asked in other processes, with and without what earlier ones keep on local disk.

``python -m benchmarks.planning.repeat_elsewhere DATA INDEX SQL`` asks twice, and prints JSON. What the process imports,
and the listing of the table, are there before the clock starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import secateur as sec
from benchmarks.results import Ratio, timed
from benchmarks.timing import Timing
from secateur.io.scan.kept import answers
from secateur.io.scan.kept.verdict_memory import DIRECTORY_VARIABLE, MEMORY

ROOT = Path(__file__).parents[2]
NOTHING, VERDICTS, ANSWERS = "nothing kept", "verdicts on disk", "answers on disk"
IMPORTS = "user_id < 0"  # which bounds rule out
FIRST, LATER = ("first plan", "first answer"), ("later plan", "later answer")

Said = Mapping[str, float]


def asked_elsewhere(data: Path, index: str, sql: str, repetitions: int) -> tuple[tuple[Ratio, ...], dict[str, Said]]:
    """Ask in new processes, in turn with nothing kept, with verdicts, and with answers; also what was said by each."""
    with tempfile.TemporaryDirectory() as directory:
        kept: dict[str, dict[str, str]] = {
            NOTHING: {},
            VERDICTS: {DIRECTORY_VARIABLE: f"{directory}/verdicts"},
            ANSWERS: {answers.BYTES_VARIABLE: "100MB", answers.DIRECTORY_VARIABLE: f"{directory}/answers"},
        }
        for settings in kept.values():
            _leave(settings, data, index, sql)
        said = [[_ask(settings, data, index, sql) for settings in kept.values()] for _ in range(repetitions)]
    times = {
        (what, figure): Timing(tuple(turn[at][figure] for turn in said))
        for at, what in enumerate(kept)
        for figure in (*FIRST, *LATER)
    }
    ratios = [
        timed(f"another process, {figure}: {what}", times[what, figure], NOTHING, times[NOTHING, figure])
        for what in (VERDICTS, ANSWERS)
        for figure in (*FIRST, *LATER)
    ]
    return tuple(ratios), dict(zip(kept, said[-1], strict=True))


def _leave(settings: Mapping[str, str], data: Path, index: str, sql: str) -> None:
    """Ask in this process, as one that knows nothing."""
    with patch.dict(os.environ, {**dict.fromkeys(_VARIABLES, ""), **settings}):
        table = sec.open_table(str(data), index_location=index)
        MEMORY.forget(table.location)
        sec.prune(table, sql, session_time_zone="UTC").to_arrow()


def _ask(settings: Mapping[str, str], data: Path, index: str, sql: str) -> Said:
    command = [sys.executable, "-m", "benchmarks.planning.repeat_elsewhere", str(data), index, sql]
    environment = {name: value for name, value in os.environ.items() if name not in _VARIABLES} | dict(settings)
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=environment)
    said: Said = json.loads(done.stdout)
    return said


_VARIABLES = {DIRECTORY_VARIABLE, answers.BYTES_VARIABLE, answers.DIRECTORY_VARIABLE}


def _asked(arguments: Sequence[str]) -> Said:
    data, index, sql = arguments
    table = sec.open_table(data, index_location=index, freshness=600)
    sec.prune(table, IMPORTS).to_arrow()
    said: dict[str, float] = {}
    for plan_named, answer_named in (FIRST, LATER):
        started = time.perf_counter()
        plan = sec.prune(table, sql, session_time_zone="UTC")
        planned = time.perf_counter()
        rows = plan.to_arrow()
        ended = time.perf_counter()
        said |= {plan_named: planned - started, answer_named: ended - started, "rows": rows.num_rows}
        said.setdefault("blocks", len(plan.survivors.blocks))
    return said


if __name__ == "__main__":
    print(json.dumps(_asked(sys.argv[1:])))
