"""One query in a process of its own, for the times of a cold start: ``python -m benchmarks.cold ENGINE DIRECTORY N I``.

Prints JSON: seconds of importing the engine, seconds of opening the index and answering, and blocks kept. Nothing of
the process is warm but the operating system's file cache.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ColdStart:
    """What one process measured of itself."""

    importing: float
    answering: float
    kept: int


def start_cold(engine: str, directory: Path, n: int, question: int) -> ColdStart:
    """Ask one question in a new process."""
    command = [sys.executable, "-m", "benchmarks.cold", engine, str(directory), str(n), str(question)]
    root = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return ColdStart(**json.loads(done.stdout))


def _secateur(directory: Path, n: int, question: int) -> Callable[[], int]:
    import secateur as sc
    from benchmarks.peers import questions
    from benchmarks.synthetic import Shape, open_synthetic

    table, sql = open_synthetic(directory / "index", Shape(n)), questions(n)[question].sql
    return lambda: len(sc.prune(table, sql, strict=True, session_time_zone="UTC").survivors.fully_matching)


def _pyarrow(directory: Path, n: int, question: int) -> Callable[[], int]:
    from benchmarks.peers import arrow_keeps, fragments, questions

    condition = questions(n)[question].arrow
    return lambda: arrow_keeps(fragments(directory / "row_groups"), condition)


def _duckdb(directory: Path, n: int, question: int) -> Callable[[], int]:
    from benchmarks.peers import duckdb_keeps, open_duckdb, questions

    condition = questions(n)[question].duckdb
    return lambda: duckdb_keeps(open_duckdb(directory / "bounds.duckdb"), condition)


_PACKAGE_OF = {"secateur": "secateur", "pyarrow": "pyarrow.dataset", "duckdb": "duckdb"}
_QUERY_OF = {"secateur": _secateur, "pyarrow": _pyarrow, "duckdb": _duckdb}


def main(engine: str, directory: str, n: str, question: str) -> None:
    """Measure this process."""
    started = time.perf_counter()
    __import__(_PACKAGE_OF[engine])
    imported = time.perf_counter()
    query = _QUERY_OF[engine](Path(directory), int(n), int(question))
    ready = time.perf_counter()
    kept = query()
    answering = time.perf_counter() - ready
    print(json.dumps({"importing": imported - started, "answering": answering, "kept": kept}))


if __name__ == "__main__":
    main(*sys.argv[1:])
