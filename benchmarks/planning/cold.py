"""One query in a process of its own: ``python -m benchmarks.planning.cold NAME ARGUMENT ...``, which prints JSON.

``secateur DIRECTORY FILES SQL``, ``duckdb FILE CONDITION`` and ``libraries`` measure a start: the seconds of importing
and of answering the first query, blocks kept, and bytes read. ``memory DIRECTORY FILES SQL DIRECTORY FILES`` measures
what a query adds to the memory of a process that has answered it on a second, small table.

Only the operating system's file cache is warm. Listings are made before the clock starts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start_cold(name: str, *arguments: object) -> dict[str, float]:
    """Run a measurement in a new process, and return its figures."""
    return json.loads(_run([sys.executable, "-m", "benchmarks.planning.cold", name, *map(str, arguments)]))


def start_bare() -> float:
    """The seconds of an interpreter that does nothing, from its start to its end."""
    started = time.perf_counter()
    _run([sys.executable, "-c", "pass"])
    return time.perf_counter() - started


def _run(command: list[str]) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _secateur(directory: str, files: str, sql: str) -> dict[str, float]:
    started = time.perf_counter()
    from benchmarks.planning.synthetic_table import table_at
    from secateur import prune

    imported = time.perf_counter()
    table = table_at(Path(directory), int(files))
    before, ready = _bytes_read(), time.perf_counter()
    plan = prune(table, sql, strict=True, session_time_zone="UTC")
    answered, after = time.perf_counter(), _bytes_read()
    return {
        "importing": imported - started,
        "answering": answered - ready,
        "kept": len(plan.survivors.blocks),
        "chunk_bytes": plan.report.reads.stored_bytes,
        "all_bytes": after - before,
    }


def _duckdb(file: str, condition: str) -> dict[str, float]:
    started = time.perf_counter()
    import duckdb

    imported = time.perf_counter()
    with duckdb.connect(file, read_only=True) as connection:
        kept = connection.execute(f"SELECT block FROM zone_maps WHERE {condition}").fetchnumpy()["block"]
    answered = time.perf_counter()
    return {"importing": imported - started, "answering": answered - imported, "kept": len(kept)}


def _libraries() -> dict[str, float]:
    """Import the libraries that every plan needs."""
    started = time.perf_counter()
    import numpy  # noqa: F401
    import pyarrow  # noqa: F401

    return {"importing": time.perf_counter() - started}


def _memory(directory: str, files: str, sql: str, small_directory: str, small_files: str) -> dict[str, float]:
    import secateur as sec
    from benchmarks.planning.synthetic_table import table_at

    sec.prune(table_at(Path(small_directory), int(small_files)), sql, strict=True, session_time_zone="UTC")
    table = table_at(Path(directory), int(files))
    before = _resident()
    plan = sec.prune(table, sql, strict=True, session_time_zone="UTC")
    return {
        "grown": _resident() - before,
        "cached": table.cache.counters.bytes,
        "kept": len(plan.survivors.blocks),
    }


def _resident() -> int:
    """Bytes of this process in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(kilobytes) * 1024


def _bytes_read() -> int:
    """Bytes that this process has read from files, modules included."""
    return int(Path("/proc/self/io").read_text().split()[1])


_MEASUREMENTS: Mapping[str, Callable[..., dict[str, float]]] = {
    "secateur": _secateur,
    "duckdb": _duckdb,
    "libraries": _libraries,
    "memory": _memory,
}

if __name__ == "__main__":
    print(json.dumps(_MEASUREMENTS[sys.argv[1]](*sys.argv[2:])))
