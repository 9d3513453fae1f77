"""Indexes that released versions wrote stay readable, and mean what they meant."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import secateur as sec
from secateur.index.read.blocks import OpenedBlocks
from tests.support.programs.make_golden import GOLDEN, stamp

VERSIONS = sorted(path.name for path in GOLDEN.iterdir())

# predicate, ids of the matching rows, surviving blocks as (part, row group)
CASES = [
    ("id = 17", [17], [(0, 0)]),
    ("id IN (3, 79, 1000)", [3, 79], [(0, 0), (1, 1)]),
    ("id BETWEEN 38 AND 41", [38, 39, 40, 41], [(0, 1), (1, 0)]),
    ("part = 1 AND nested.y = 4 AND id < 50", [44, 49], [(1, 0)]),
    ("ratio > 11.2", [0, 13, 26, 39, 52, 65, 78, 79], [(0, 0), (0, 1), (1, 0), (1, 1)]),
    ("price = 4.25", [17], [(0, 0)]),
    ("wide = 5200000000000000000000", [52], [(1, 0)]),
    ("name IS NULL AND id < 20", [0, 10], [(0, 0)]),
    ("day = DATE '2026-01-06' AND id < 50", [5, 33], [(0, 0), (0, 1)]),
    ("name LIKE 'name-07%'", list(range(71, 80)), [(1, 1)]),
    ("name LIKE '%-033%'", [33], [(0, 1)]),
    ("name LIKE 'name-033%' OR price = 19.5", [33, 78], [(0, 1), (1, 1)]),
    ("has_token(name, 'name')", [i for i in range(80) if i % 10], [(0, 0), (0, 1), (1, 0), (1, 1)]),
    ("has_token(name, 'nam')", [], []),
    ("id = 1000000", [], []),
]


@pytest.fixture(params=VERSIONS)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "golden"
    shutil.copytree(GOLDEN / request.param, root)
    stamp(root)
    return root


@pytest.mark.parametrize(("predicate", "ids", "blocks"), CASES)
def test_golden_index(golden: Path, predicate: str, ids: list[int], blocks: list[tuple[int, int]]) -> None:
    plan = sec.prune(sec.open_table(str(golden)), predicate, strict=True)
    assert plan.report.index == "snapshot 1, 2 segments, covers 2 of 2 files"
    kept = zip(plan.blocks["file"].to_pylist(), plan.blocks["row_group"].to_pylist(), strict=True)
    assert [(int(file[5]), group) for file, group in kept] == blocks
    assert sorted(plan.to_arrow(columns=["id"])["id"].to_pylist()) == ids


def test_golden_row_lists(golden: Path) -> None:
    plan = sec.prune(sec.open_table(str(golden)), "day = DATE '2026-01-06' AND id BETWEEN 20 AND 39", strict=True)
    assert plan.blocks["row_ranges"].to_pylist() == [[{"start": 13, "stop": 14}]]


def test_golden_index_is_sound(golden: Path) -> None:
    assert sec.verify_index(sec.open_table(str(golden))).sound


def test_an_index_without_locations_gets_them(golden: Path) -> None:
    """Readers look at footers until a refresh is asked for them."""
    table = sec.open_table(str(golden))
    assert not sec.describe_index(table).location_bytes
    plan = sec.prune(table, "id = 17", strict=True)
    blocks = plan.survivors.blocks
    assert isinstance(blocks, OpenedBlocks)
    assert blocks.page_locations().blocks == [b""]
    assert (blocks.placed == -1).all()
    assert sec.refresh_index(table).is_current
    assert sec.refresh_index(table, page_locations=True).segments_amended == 2
    blocks = sec.prune(table, "id = 17", strict=True).survivors.blocks
    assert isinstance(blocks, OpenedBlocks)
    assert all(blocks.page_locations().blocks)
    assert sec.verify_index(table).sound


def test_a_newer_version_is_refused_and_costs_only_time(golden: Path) -> None:
    (snapshot,) = (golden / "_secateur" / "snapshots").iterdir()
    data = bytearray(snapshot.read_bytes())
    data[-12] += 1  # the version in the trailer
    snapshot.write_bytes(bytes(data))
    plan = sec.prune(sec.open_table(str(golden)), "id = 17")
    assert "newer than 1" in plan.report.degraded[0]
    assert plan.to_arrow()["id"].to_pylist() == [17]
    with pytest.raises(sec.SecateurError, match="upgrade secateur"):
        sec.prune(sec.open_table(str(golden)), "id = 17", strict=True)


def test_golden_ordered_postings(golden: Path) -> None:
    plan = sec.prune(sec.open_table(str(golden)), "ratio BETWEEN 3.0 AND 3.2 OR name LIKE 'name-07%'", strict=True)
    assert sorted(plan.to_arrow(columns=["id"])["id"].to_pylist()) == [21, 22, *range(71, 80)]
    assert sum(plan.blocks["row_count"].to_pylist()) == 40  # of two blocks
