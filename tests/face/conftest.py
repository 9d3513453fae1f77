"""What tests of the public face share."""

from __future__ import annotations

from pathlib import Path

import pytest

from secateur import plan_log


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to which plans are logged."""
    path = tmp_path / "plans.jsonl"
    monkeypatch.setenv(plan_log.PATH_VARIABLE, str(path))
    return path
