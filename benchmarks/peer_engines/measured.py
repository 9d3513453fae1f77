"""Ask a peer all questions, and measure: time, CPU time, bytes and reads. Runs in the peer's process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from benchmarks.peer_engines.questions import Question

SLOW = 2.0  # seconds: a slower call is made once for each literal
CALLS = 3  # at least, of a quicker one
HERE = (os.getpid(),)  # the processes of an engine that works in this one


@dataclass(frozen=True)
class Preparation:
    """What was made before the questions: an index, or a copy of the rows in the peer's own form."""

    what: str
    seconds: float
    cpu_seconds: float | None  # None where other processes do the work
    index_bytes: int  # beside the rows
    copy_bytes: int | None = None  # of the rows, where the peer has a copy


@dataclass(frozen=True)
class Left:
    """What planning leaves to read, as far as the peer says it."""

    files: int | None = None
    row_groups: int | None = None
    rows: int | None = None  # that the scan hands on


class Engine(Protocol):
    """A peer with its table open."""

    version: str
    preparation: Preparation
    processes: Sequence[int]  # that work for it: what they read and compute is counted

    def read(self, question: Question, condition: str) -> Any:
        """Answer, all rows read: this is timed."""

    def fingerprint(self, question: Question, condition: str, answer: Any) -> tuple[int, int]:
        """Return the number of rows and the sum of their `order_id`."""

    def plan(self, question: Question, condition: str) -> None:
        """Plan and read no rows: this is timed. Raises NotImplementedError where the peer has no such step."""

    def left(self, question: Question, condition: str, answer: Any) -> Left:
        """Say what the last answer left to read."""


def ask(engine: Engine, question: Question) -> dict[str, Any]:
    """Ask with every literal, after a first time with the first; return medians, and the counts of the last call."""
    first = question.conditions[0]
    answer = engine.read(question, first)
    rows, checksum = engine.fingerprint(question, first, answer)
    spent = partial(_spent, engine.processes)
    calls = [spent(lambda: engine.read(question, first))]
    enough = 1 if calls[0].seconds > SLOW else -(-CALLS // len(question.conditions))
    others = [*question.conditions[1:], *question.conditions * (enough - 1)]
    calls += [spent(partial(engine.read, question, condition)) for condition in others]
    left = engine.left(question, first, answer)
    return {
        "name": question.name,
        "rows": rows,
        "checksum": checksum,
        "ms": 1000 * median(call.seconds for call in calls),
        "cpu_ms": 1000 * median(call.cpu_seconds for call in calls),
        "bytes": calls[0].bytes,
        "reads": calls[0].reads,
        "plan_ms": _planning(engine, question),
        "files": left.files,
        "row_groups": left.row_groups,
        "scanned_rows": left.rows,
    }


def _planning(engine: Engine, question: Question) -> float | None:
    try:
        engine.plan(question, question.conditions[0])
        times = [
            _spent(engine.processes, partial(engine.plan, question, condition)) for condition in question.conditions
        ]
    except NotImplementedError:
        return None
    return 1000 * median(call.seconds for call in times)


@dataclass(frozen=True)
class Spent:
    """What a call took. What is mapped into memory is in no read."""

    seconds: float
    cpu_seconds: float
    bytes: int
    reads: int


def _spent(processes: Sequence[int], call: Callable[[], object]) -> Spent:
    before = _counters(processes)
    started = time.perf_counter()
    call()
    seconds = time.perf_counter() - started
    cpu, size, reads = (b - a for a, b in zip(before, _counters(processes), strict=True))
    return Spent(seconds, cpu, int(size), int(reads))


def _counters(processes: Sequence[int]) -> tuple[float, int, int]:
    """CPU seconds, bytes read and reads of some processes, since they began."""
    cpu, size, reads = 0.0, 0, 0
    for process in processes:
        home = Path(f"/proc/{process}")
        counts = dict(line.split(": ") for line in (home / "io").read_text().splitlines())
        cpu += time.process_time() if process in HERE else _ticks(home) / os.sysconf("SC_CLK_TCK")
        size, reads = size + int(counts["rchar"]), reads + int(counts["syscr"])
    return cpu, size, reads


def _ticks(home: Path) -> int:
    user, system = (home / "stat").read_text().rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


def bytes_in(*directories: Path) -> int:
    """Return the bytes of all files in some directories."""
    return sum(file.stat().st_size for folder in directories for file in folder.rglob("*") if file.is_file())


def fingerprint_of(question: Question, answer: Any) -> tuple[int, int]:
    """Return the fingerprint of an Arrow table."""
    import pyarrow.compute as pc

    if question.counts:
        return int(answer.column(0)[0].as_py()), 0
    return answer.num_rows, int(pc.sum(answer["order_id"]).as_py() or 0)
