"""Pages, headers and page indexes that are harmed or lie: refused by name, or read with as many rows as were asked for.

With checksums in the pages, every changed byte of their values is noticed. See ``harmed_pages.py``.
"""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import numpy as np
import pytest

from secateur.errors import InvalidParquet
from secateur.io.parquet.row_selection import chosen_rows
from tests.support.profiles import NIGHTLY, takes_seconds
from tests.support.programs import harmed_pages
from tests.support.programs.harmed_pages import Whole, files

PROGRAM = Path(harmed_pages.__file__)


def harmed(*arguments: object) -> dict[str, int]:
    """How often what became of harmed files, where nothing went wrong."""
    done = subprocess.run([sys.executable, PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    counts: dict[str, int] = literal_eval(done.stdout)
    return counts


@takes_seconds
def test_changed_bytes_and_truncated_files() -> None:
    """What a read knows already is harmed, and what it still has to read."""
    counts = harmed("flips", 0, 1 if NIGHTLY else 97)
    assert all(
        counts[outcome] for outcome in ("known right", "known refused", "read right", "read refused", "refused footer")
    )


@takes_seconds
def test_headers_and_indexes_that_lie() -> None:
    """Sizes, counts, kinds, encodings; where pages lie, and which rows they have."""
    counts = harmed("lies", 1, 30_000 if NIGHTLY else 1000)
    assert counts["lies right"] and counts["lies refused"]


@pytest.fixture(scope="module")
def whole() -> Whole:
    return files()[0]


def test_rows_that_a_row_group_does_not_have_are_refused(whole: Whole) -> None:
    names = whole.rows.schema.names
    with pytest.raises(InvalidParquet, match="row 120 of row group 0 of it is asked for, which has 120 rows"):
        list(whole.reader.read(0, names, chosen_rows(np.array([3, 120]))))
