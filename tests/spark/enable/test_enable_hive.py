"""A session with Hive's catalog: Parquet tables under ``sec.enable`` and by name, and clients of a Thrift server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark  # the program that it starts does

PROGRAM = Path(__file__).parents[2] / "support" / "programs" / "hive_session.py"
MOST_SECONDS = 540


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program saw: a JVM with Hive's catalog cannot be the other tests'."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("hive")
    command = [sys.executable, str(PROGRAM), str(home), str(port)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-5000:]
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


def test_hive_tables_in_parquet_prune(session: dict[str, Any]) -> None:
    for query, seen in session["queries"].items():
        assert seen["on"] == seen["off"] != [], query
        assert seen["pruning"] == [seen["expected"]], query


def test_tables_of_the_metastore_are_read_by_their_names(session: dict[str, Any]) -> None:
    """With partitions at other places, and without what the metastore does not have."""
    assert len(session["named"]) > 30
    assert [what for what, is_right in session["named"].items() if not is_right] == []


def test_clients_by_jdbc_get_pruned_queries(session: dict[str, Any]) -> None:
    assert session["jdbc"]["rows"] == ["5 name-5"]
    assert "IndexPruning: 1 of 10 row groups" in session["jdbc"]["plan"]
    assert "IndexPruning" not in session["jdbc"]["plan when off"]
