"""Executors that are processes of their own: with this package, and without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import cluster_work
from tests.support.tables import write_file

pytestmark = pytest.mark.spark  # it starts a JVM of its own


def run(python: Path | str, root: Path) -> dict[str, Any]:
    """What came of the work on executors with this Python."""
    write_file(root / "lake" / "a.parquet", {"id": list(range(100))}, row_group_size=10)
    command = [sys.executable, cluster_work.__file__, str(python), str(root / "lake")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_executors_that_have_the_package(tmp_path: Path) -> None:
    assert run(sys.executable, tmp_path) == {"build": 100, "local": 1, "native": 1, "blocks": 1}


def test_executors_that_lack_it_end_before_their_work(tmp_path: Path) -> None:
    """Of Spark's own Python alone: what needs no Python there works, the rest ends before its work."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {Path(sys.base_prefix) / "bin" / Path(sys.executable).name} -S "$@"\n')
    bare.chmod(0o755)
    found = run(bare, tmp_path)
    assert (found["local"], found["native"]) == (1, 1)
    for work in ("build", "blocks"):
        assert found[work].startswith("PackageMissing: the executors of this Spark application cannot import ")
        assert "--archives" in found[work]
