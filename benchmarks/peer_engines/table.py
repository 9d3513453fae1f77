"""The rows that all peers are asked about: the orders of the read benchmarks, and literals that some rows hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.peer_engines.questions import Question, questions
from benchmarks.reading.read_table import read_table
from benchmarks.setting import Setting

FILES = 200
REQUEST = re.compile(r"request=(\w+)")


@dataclass(frozen=True)
class Orders:
    """The directory of the files, and what they hold."""

    data: Path
    rows: int
    files: int
    row_groups: int
    bytes: int


def orders(setting: Setting) -> tuple[Orders, list[Question]]:
    """Make the table where it is missing; return it with its questions."""
    table = read_table(setting, files=FILES)
    files = sorted((table.directory / "data").glob("*.parquet"))
    row_groups = sum(pq.read_metadata(file).num_row_groups for file in files)
    size = sum(file.stat().st_size for file in files)
    chosen = [
        pq.read_table(file, columns=["user_id", "message"]).slice(7, 10) for file in files[:: len(files) // 6 + 1]
    ]
    users = [user for some in chosen for user in some["user_id"].to_pylist()]
    parts = [match[1] for some in chosen if (match := REQUEST.search(some["message"][0].as_py()))]
    spread = users[::10] + users[1::10] + users[2::10] + users[3::10] + users[4::10]
    asked = questions(table.rows, spread, parts)
    return Orders(table.directory / "data", table.rows, len(files), row_groups, size), asked
