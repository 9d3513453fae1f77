"""The demos, small: what they claim holds, and their pages and pictures are there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from secateur.cli import main
from secateur.demo.limits import within
from secateur.demo.lineitem import DemoNotPossible
from secateur.demo.s3_process import BUCKET, remote_server
from secateur.demo.s3a import has_s3a
from tests.support.profiles import FULL

SECONDS = 300


def demo(directory: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "secateur", "demo", "--json", "--directory", str(directory), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["sound"]
    return answer


def test_the_server_is_given_files_of_a_relative_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.parquet").write_bytes(b"1234")
    with remote_server() as server:
        server.put_files("events", Path("lake"))
        asked = Request(f"http://127.0.0.1:{server.port}/{BUCKET}/events/a.parquet", headers={"Range": "bytes=1-2"})
        with urlopen(asked) as answer:
            assert answer.read() == b"23"


@pytest.mark.spark
def test_local(tmp_path: Path) -> None:
    answer = demo(tmp_path / "demo", "--local", "--scale-factor", "0.001")
    assert [check["claim"] for check in answer["checks"] if not check["holds"]] == []
    assert len(answer["trials"]) == 12
    for picture in answer["pictures"]:
        assert Path(picture).stat().st_size > 10_000


@pytest.mark.spark
@pytest.mark.s3
@pytest.mark.skipif(not (FULL and has_s3a()), reason="takes a minute; and make demo fetches Spark's reader of S3")
def test_on_a_lake(tmp_path: Path) -> None:
    answer = demo(tmp_path / "demo", "--files", "20")
    trials = {trial["question"]["name"]: trial for trial in answer["trials"]}
    for name in ("a needle", "a top ten", "a text search", "a join", "an OR", "a function"):
        alone, pruned = trials[name]["spark"], trials[name]["secateur"]
        assert pruned["rows"], name
        assert pruned["files"] < alone["files"] <= 20, name
        assert pruned["requests"] < alone["requests"], name
        assert pruned["round_trips"] <= pruned["requests"], name
        for run in (alone, pruned):
            assert run["arrivals"] == sorted(run["arrivals"]), name
            assert len(run["arrivals"]) == run["requests"] and run["arrivals"][0] < run["seconds"], name
    assert trials["a share of everything"]["secateur"]["files"] == 20
    assert answer["index"]["requests"] > 20
    assert "same answers" in answer["headline"]
    page = Path(answer["page"]).read_text()
    assert page.count('class="runs"') == len(trials)
    assert page.count("<details>") >= len(trials) - 1, "all plans but that of a query that reads everything"
    for name, trial in trials.items():
        row = page[page.index(f'data-question="{name}"') :]
        for unit in ("requests", "round_trips", "bytes", "files"):
            drawn = re.findall(rf'data-unit="{unit}" data-count="([^"]*)"', row)[:2]
            assert [float(height) for height in drawn] == [trial[who][unit] for who in ("spark", "secateur")]


def test_without_a_network_the_local_demo_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Path] = []
    monkeypatch.setattr("secateur.cli.demonstrate.s3_trouble", lambda: "no network")
    monkeypatch.setattr("secateur.cli.demonstrate._show_local", lambda verbose, path, *rest: asked.append(path) or True)
    done = CliRunner().invoke(main, ["demo", "--directory", str(tmp_path)])
    assert done.exit_code == 0
    assert "here is the local one: no network" in done.stderr
    assert asked == [tmp_path]


def test_a_step_that_takes_too_long_is_given_up() -> None:
    from threading import Event

    never = Event()
    with pytest.raises(DemoNotPossible, match=r"waiting took more than 0\.05 s"):
        within(0.05, "waiting", never.wait)
    assert within(5, "adding", lambda: 1 + 1) == 2
    with pytest.raises(ZeroDivisionError):
        within(5, "dividing", lambda: 1 / 0)
