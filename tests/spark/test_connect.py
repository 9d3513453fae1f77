"""Spark Connect: every read path that it has gives the rows and the schema of Spark's own reader."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur as sec
from tests.support.profiles import one_in
from tests.support.programs.connect_read_paths import LOST_BY_PUSH_DOWN, PREDICATES, READ_PATHS


@pytest.mark.spark
def test_every_read_path_of_connect_gives_the_rows_of_sparks_own_reader(tmp_path: Path) -> None:
    n, start = 1_000, datetime(2026, 1, 1, tzinfo=UTC)
    data = pa.table(
        {
            "id": pa.array([None if i % 97 == 0 else i for i in range(n)], pa.int64()),
            "name": [f"n{i}" for i in range(n)],
            "price": pa.array([Decimal(i % 11) for i in range(n)], pa.decimal128(9, 2)),
            "ts": pa.array([start + timedelta(hours=i) for i in range(n)], pa.timestamp("us", "UTC")),
            "local": pa.array([datetime(2026, 1, 1) + timedelta(hours=i) for i in range(n)], pa.timestamp("us")),
            "tags": pa.array([[f"t{i % 3}"] * (i % 4) for i in range(n)], pa.list_(pa.string())),
            "who": pa.array([{"a": i, "b": [{"c": i}]} for i in range(n)]),
            "x": [float("nan") if i % 50 == 0 else i / n for i in range(n)],
            "a.b": pa.array([f"n{i}" if i % 9 else None for i in range(n)]),
            "m": pa.array([[("k", i)] for i in range(n)], pa.map_(pa.string(), pa.int32())),
        }
    )
    for part in range(4):
        rows = data.slice(part * 250, 250)
        path = tmp_path / f"{part}.parquet"
        pq.write_table(rows, path, row_group_size=100, write_page_index=True, max_rows_per_page=10)
    sec.build_index(sec.open_table(str(tmp_path)), bloom=["name"])
    script = Path(__file__).parents[1] / "support" / "programs" / "connect_read_paths.py"
    asked = one_in(3, PREDICATES)
    done = subprocess.run(
        [sys.executable, script, tmp_path, *asked],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=script.parent,
    )
    assert done.returncode == 0, done.stderr[-20_000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    assert answers.pop("session").startswith("pyspark.sql.connect")
    named = [what for what in answers if what.startswith("named: ")]
    assert len(named) == 5
    assert len(answers) == len(asked) * (2 * len(READ_PATHS) + 2) + len(LOST_BY_PUSH_DOWN) + len(named)
    assert [what for what, equal in answers.items() if not equal] == []
