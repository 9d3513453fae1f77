"""Whatever happens to the files of an index, the rows stay right; `strict` says what happened."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import secateur as sc
from secateur.errors import IndexFault
from secateur.index.codec import ROW_CHECKSUM, SEGMENT, read_contents
from secateur.index.reader import IndexCatalog
from tests.make_golden import GOLDEN, stamp

# Reads the tree, zone maps, bloom filters of all sizes, pages, and partition values.
PREDICATE = "id IN (3, 17, 52) OR wide = 7900000000000000000000 OR (part = 1 AND ratio < 6 AND name > 'name-040')"
IDS = [3, 17, 41, 52, 79]
STRIDE = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 61  # bytes between two flips


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    root = tmp_path / "golden"
    shutil.copytree(GOLDEN / "v1", root)
    stamp(root)
    return root


def index_files(root: Path) -> list[Path]:
    return sorted(path for path in (root / "_secateur").rglob("*") if path.is_file())


def ask(root: Path) -> tuple[list[int], tuple[str, ...]]:
    """The ids found, and the reasons for degradation; the index is opened anew, past any cache."""
    plan = sc.prune(sc.open_table(str(root)), PREDICATE)
    return sorted(plan.to_arrow(columns=["id"])["id"].to_pylist()), plan.report.degraded


def is_refused(root: Path) -> bool:
    try:
        sc.prune(sc.open_table(str(root)), PREDICATE, strict=True)
    except IndexFault:
        return True
    return False


def test_the_whole_index_answers(golden: Path) -> None:
    assert ask(golden) == (IDS, ())
    assert len(sc.prune(sc.open_table(str(golden)), "id = 1000").blocks) == 0


@pytest.mark.parametrize("position", range(3), ids=["first segment", "second segment", "snapshot"])
def test_any_byte_may_be_flipped(golden: Path, position: int) -> None:
    """A flipped byte is noticed wherever the query reads, and never costs a row."""
    file = index_files(golden)[position]
    data = file.read_bytes()
    noticed = 0
    for at in range(0, len(data), STRIDE):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        ids, degraded = ask(golden)
        assert ids == IDS, f"byte {at} of {file.name}"
        assert bool(degraded) == is_refused(golden), f"byte {at} of {file.name}"
        noticed += bool(degraded)
    assert noticed > len(data) / STRIDE / 10


@pytest.mark.parametrize("position", range(3), ids=["first segment", "second segment", "snapshot"])
def test_any_length_may_be_cut_off(golden: Path, position: int) -> None:
    """What a query does not read of a segment it does not miss; verification does."""
    file = index_files(golden)[position]
    data = file.read_bytes()
    is_snapshot = file.suffix == ".snapshot"
    noticed = []
    for length in [*range(0, len(data), STRIDE * 5), len(data) - 1]:
        file.write_bytes(data[:length])
        ids, degraded = ask(golden)
        assert ids == IDS, length
        assert bool(degraded) == is_refused(golden), length
        assert not sc.verify_index(sc.open_table(str(golden))).sound, length
        noticed.append(bool(degraded))
    assert noticed == sorted(noticed, reverse=True)  # the more is gone, the more is missed
    assert all(noticed) == is_snapshot
    assert sum(noticed) > len(noticed) / 4


def swap_segments(root: Path) -> None:
    first, second, _ = index_files(root)
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)


def segment_as_snapshot(root: Path) -> None:
    first, _, snapshot = index_files(root)
    snapshot.write_bytes(first.read_bytes())


def snapshot_under_another_number(root: Path) -> None:
    snapshot = index_files(root)[-1]
    snapshot.rename(snapshot.with_name("0000000007.snapshot"))


def remove(position: int) -> Callable[[Path], None]:
    return lambda root: index_files(root)[position].unlink()


@pytest.mark.parametrize(
    "harm",
    [swap_segments, segment_as_snapshot, snapshot_under_another_number, remove(0), remove(1)],
    ids=["segments swapped", "segment as snapshot", "snapshot renumbered", "first segment gone", "second segment gone"],
)
def test_files_may_be_swapped_or_gone(golden: Path, harm: Callable[[Path], None]) -> None:
    harm(golden)
    ids, degraded = ask(golden)
    assert ids == IDS
    assert degraded
    assert is_refused(golden)


def test_without_a_snapshot_there_is_no_index(golden: Path) -> None:
    remove(2)(golden)
    assert ask(golden) == (IDS, ())


@pytest.mark.parametrize("chunk", ["blocks", "zone/0", "page/0", "bloom/0", "rows of bloom/0"])
def test_trouble_with_one_segment_leaves_the_other_of_use(golden: Path, chunk: str) -> None:
    """C4: what could not be read keeps its blocks, and only its blocks."""

    def blocks_of_second_part() -> list[int]:
        blocks = sc.prune(sc.open_table(str(golden)), PREDICATE).blocks.to_pylist()
        return [block["row_group"] for block in blocks if block["file"].startswith("part=1")]

    before = blocks_of_second_part()
    file = index_files(golden)[0]
    file.write_bytes(harmed(file.read_bytes(), chunk))
    ids, degraded = ask(golden)
    assert ids == IDS
    assert degraded
    assert all(file.name in reason for reason in degraded)
    assert is_refused(golden)
    assert blocks_of_second_part() == before


def harmed(data: bytes, chunk: str) -> bytes:
    """A segment file with one bit flipped in a chunk, or in every row of its bloom filters."""
    contents = read_contents("segment", SEGMENT, len(data), lambda at, size: data[at : at + size])
    if chunk in contents.chunks:
        place = contents.chunks[chunk]
        bits = [place.at + place.size // 2]
    else:
        matrices = [m for name, m in contents.matrices.items() if name.startswith(chunk.split()[-1] + "/")]
        bits = [m.at + row * (m.width + ROW_CHECKSUM) for m in matrices for row in range(m.rows)]
    found = bytearray(data)
    for at in bits:
        found[at] ^= 1
    return bytes(found)


@pytest.mark.parametrize("predicate", [PREDICATE, "id >= 0", "part = 1 AND id > 50"])
def test_a_fault_that_no_part_of_a_stage_confines(
    golden: Path, predicate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which none is known: all blocks come from footers then."""
    expected = sc.prune(sc.open_table(str(golden)), predicate).to_arrow(columns=["id"])

    def broken(*_: object) -> None:
        raise IndexFault("broken")

    monkeypatch.setattr(IndexCatalog, "runs", broken)
    plan = sc.prune(sc.open_table(str(golden)), predicate)
    assert plan.report.degraded == ("broken",)
    assert plan.to_arrow(columns=["id"]).sort_by("id") == expected.sort_by("id")
    with pytest.raises(IndexFault, match="broken"):
        sc.prune(sc.open_table(str(golden)), predicate, strict=True)


def test_verify_names_the_fault(golden: Path) -> None:
    file = index_files(golden)[0]
    data = bytearray(file.read_bytes())
    data[40] ^= 1
    file.write_bytes(bytes(data))
    found = sc.verify_index(sc.open_table(str(golden)))
    assert not found.sound
    assert "checksum" in found.faults[0]
    assert file.name in found.faults[0]
