"""Log every plan of this process as a line of JSON: the predicate, and what had to be read."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
from collections.abc import Callable, Mapping

from secateur.io.storage.line_log import append_line
from secateur.io.storage.redaction import redacted_location, without_secrets
from secateur.pruning.report import Counts, Report
from secateur.pruning.reporters import Matches

PATH_VARIABLE = "SECATEUR_LOG"  # environment variable: the file to append to
LITERALS_VARIABLE = "SECATEUR_LOG_LITERALS"  # environment variable: 1 writes literals as they are
_log = logging.getLogger("secateur")
_chosen: str | None = None
_warned: set[str] = set()  # paths that could not be written; each is reported once


def log_to(path: str | os.PathLike[str] | None) -> None:
    """Log the plans of this process to a file, whatever the environment says; None: as the environment says."""
    global _chosen
    _chosen = None if path is None else os.path.abspath(path)


def log_path() -> str | None:
    """Return the file to which plans are logged; None if they are not."""
    return _chosen or os.environ.get(PATH_VARIABLE) or None


def log_plan(report: Report) -> None:
    """Append a line about a plan to the log, if there is one. A log that cannot be written fails no query."""
    path = log_path()
    if path is not None:
        _append(path, record_of(report))


def log_read(report: Report, measure: Callable[[], Matches | None]) -> None:
    """Append a line about what a read of a plan has found, if there is a log and that is known."""
    path = log_path()
    matches = None if path is None else measure()
    if path is not None and matches is not None:
        matched = {
            "blocks": [matches.blocks, matches.matched_blocks],
            "bytes": [matches.bytes, matches.matched_bytes],
        }
        _append(path, {**_asked(report), "matched": matched})


def _append(path: str, record: Mapping[str, object]) -> None:
    try:
        append_line(path, json.dumps(record, ensure_ascii=False, separators=(",", ":")))
    except OSError as error:
        if path not in _warned:
            _warned.add(path)
            _log.warning("plans are not logged: cannot append to %s: %s", path, error)


def _asked(report: Report) -> dict[str, object]:
    """Return what tells a plan's question: when, of which table, in which shape. Literals are hashed unless the
    environment asks for them.
    """
    shape, as_they_are = report.shape, os.environ.get(LITERALS_VARIABLE) == "1"
    return {
        "at": dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"),
        "table": without_secrets(redacted_location(report.table)),
        "snapshot": report.snapshot_id,
        "shape": shape.text,
        "literals": shape.literals if as_they_are else shape.hashed(),
        "order": report.order,
    }


def record_of(report: Report) -> dict[str, object]:
    """Return the log record of a plan; see docs/howto.md."""
    first, last = report.stages[0].before, report.stages[-1].after
    return {
        **_asked(report),
        "planning_ms": round(report.planning_seconds * 1000, 3),
        "index_bytes": report.reads.stored_bytes + report.reads.cached_bytes,
        "degraded": bool(report.degraded),
        "kept": report.kept,
        **_both(first, last),
        "stages": [
            {"name": stage.name, "ms": round(stage.seconds * 1000, 3), **_both(stage.before, stage.after)}
            for stage in report.stages
        ],
    }


def _both(before: Counts, after: Counts) -> dict[str, list[int | None]]:
    return {unit: [getattr(before, unit), getattr(after, unit)] for unit in ("files", "blocks", "rows", "bytes")}
