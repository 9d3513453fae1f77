"""The demo, on a thousandth of its data: everything it claims holds, and its pictures are there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.spark
def test_demo(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "secateur.cli", "demo", "--scale-factor", "0.001", "--json"]
    done = subprocess.run(
        [*command, "--directory", str(tmp_path / "demo")], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["sound"]
    assert [check["claim"] for check in answer["checks"] if not check["holds"]] == []
    assert len(answer["trials"]) == 20
    for picture in answer["pictures"]:
        assert Path(picture).stat().st_size > 10_000
