"""Damage the files of an index, and ask a question that must still be answered."""

from __future__ import annotations

from pathlib import Path

import secateur as sec
from secateur.errors import IndexFault

# Reads the tree, zone maps, bloom filters of three columns, ordered postings of two, pages, and partition values.
PREDICATE = "id IN (3, 17, 52) OR wide = 7900000000000000000000 OR (part = 1 AND ratio < 6 AND name > 'name-040')"


TEXTS = "name LIKE 'name-03_é%' AND price < 9 OR price = 12.75"  # reads n-grams, tokens and postings


IDS = {PREDICATE: [3, 17, 41, 52, 79], TEXTS: [31, 32, 33, 34, 35, 51]}


def index_files(root: Path) -> dict[str, Path]:
    """Two segments, the filters of five columns or kinds, and the snapshot."""
    files = {}
    for name, folder in (("filter", "filters"), ("segment", "segments"), ("snapshot", "snapshots")):
        paths = sorted((root / "_secateur" / folder).iterdir())
        files |= {f"{name} {i}": path for i, path in enumerate(paths)}
    return files


def ask(root: Path, predicate: str = PREDICATE) -> tuple[list[int], tuple[str, ...]]:
    """The ids found, and the reasons for degradation; the index is opened anew, past any cache."""
    plan = sec.prune(sec.open_table(str(root)), predicate)
    return sorted(plan.to_arrow(columns=["id"])["id"].to_pylist()), plan.report.degraded


def is_refused(root: Path, predicate: str = PREDICATE) -> bool:
    try:
        sec.prune(sec.open_table(str(root)), predicate, strict=True)
    except IndexFault:
        return True
    return False
