"""The pages in a browser: what a screenshot of them holds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

import secateur as sec
from secateur.demo.lake import IndexCost, LakeDemo, LakeTrial, QueryRun
from secateur.demo.lake_questions import lake_questions
from secateur.html.lake_page import ALONE, lake_page
from secateur.html.pictures import MOST_ACROSS, QUIET, STRIP_HEIGHT, SURVIVES, colour_of
from tests.support.tables import WriteTable

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for path in map(shutil.which, NAMES) if path), None)
WIDTH, HEIGHT, NARROW = 1_300, 1_400, 800
SECONDS = 120

pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no browser on this machine: none of {', '.join(NAMES)}")


def screenshot(page: str, directory: Path, width: int = WIDTH) -> np.ndarray:
    """A page as it looks in the browser: float of shape (HEIGHT, width, 3)."""
    source, target = directory / "page.html", directory / f"page-{width}.png"
    source.write_text(page, encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1")
    places = (f"--user-data-dir={directory / 'profile'}", f"--window-size={width},{HEIGHT}", f"--screenshot={target}")
    command = [str(BROWSER), *options, *places, source.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert target.exists(), done.stderr
    return imread(target)[:, :, :3]


def is_painted(picture: np.ndarray, colour: str, tolerance: float = 0.02) -> np.ndarray:
    """Which pixels have a colour: bool of shape (height, width)."""
    return (np.abs(picture - np.array(to_rgb(colour))) < tolerance).all(axis=2)


@pytest.fixture
def plan(write_table: WriteTable) -> sec.Scan:
    rng = np.random.default_rng(5)
    files = {}
    for i in range(20):
        row = np.arange(i * 500, (i + 1) * 500)
        files[f"day={i}/part.parquet"] = pa.table({"id": row, "user": rng.permutation(row) * 7919 % 9973})
    table = sec.open_table(str(write_table(files, row_group_size=50)))
    sec.build_index(table, bloom=["user"])
    user = int(files["day=9/part.parquet"]["user"][77].as_py())
    return sec.prune(table, f"day < 12 AND id >= 3000 AND user = {user}", strict=True)


def test_a_plan(plan: sec.Scan, tmp_path: Path) -> None:
    picture = screenshot(plan.to_html(), tmp_path)
    left = (WIDTH - MOST_ACROSS) // 2
    pruned = [stage.name for stage in plan.report.stages if stage.before.blocks != stage.after.blocks]
    assert len(pruned) >= 2
    rows = [int(np.count_nonzero(is_painted(picture, colour_of(name)).any(axis=1))) for name in pruned]
    assert max(rows) >= STRIP_HEIGHT - 2, "the strip of all blocks"
    assert all(rows), dict(zip(pruned, rows, strict=True))
    bright = is_painted(picture, SURVIVES)
    assert bright.any(axis=1).sum() > STRIP_HEIGHT, "what is read shows in the table, the strip and the maps"
    depths = is_painted(picture, QUIET)[:, left + MOST_ACROSS - 120 :]
    assert depths.any(axis=1).sum() > 160, "depth beside the bounds"
    assert (picture[:, :left] == 1).all() and (picture[:, left + MOST_ACROSS :] == 1).all(), "nothing hangs out"


def test_a_plan_in_a_narrow_window(plan: sec.Scan, tmp_path: Path) -> None:
    picture = screenshot(plan.to_html(), tmp_path, NARROW)
    assert (picture[:, -4:] == 1).all(), "nothing is wider than the window"
    assert is_painted(picture, SURVIVES).any() and is_painted(picture, QUIET).any()


def test_the_page_of_the_lake_demo(plan: sec.Scan, tmp_path: Path) -> None:
    index = sec.build_index(plan.opened.table)
    alone = QueryRun(("row",), 4.0, 500, 10_000, 40, 20, tuple(np.linspace(0.1, 3.9, 500).tolist()))
    pruned = QueryRun(("row",), 3.9, 250, 5_000, 20, 10, tuple(np.linspace(0.1, 3.8, 250).tolist()))
    trial = LakeTrial(lake_questions(20)[0], alone, pruned, plan)
    picture = screenshot(lake_page(LakeDemo(20, 10**6, IndexCost(index, 1.0, 30, 10**5), (trial,), 9.0)), tmp_path)
    for colour, least in ((ALONE, 130), (SURVIVES, 60)):
        rows = is_painted(picture, colour, 0.3).any(axis=1)  # the browser smooths a thin line
        longest = max(len(run) for run in "".join("x" if row else " " for row in rows).split())
        assert longest >= least, "a line climbs without a gap"
