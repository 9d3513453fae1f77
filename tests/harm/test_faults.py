"""Whatever happens to the files of an index, the rows stay right; `strict` says what happened."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import secateur as sec
from secateur.errors import IndexFault
from secateur.index.container.index_file import SEGMENT, read_contents
from secateur.index.read.index_view import IndexView
from secateur.pruning.stages import filters, zone_maps
from secateur.pruning.stages.survivors import LeftBlocks
from secateur.scan import Scan
from tests.support.profiles import by_profile
from tests.support.programs.make_golden import GOLDEN, stamp
from tests.support.stores.filter_files import without_bands
from tests.support.stores.index_faults import IDS, PREDICATE, TEXTS, ask, index_files, is_refused

STRIDE = by_profile(quick=397, full=61, nightly=1, fast=1601)  # bytes between two flips, at most
LEAST_FLIPS = 20  # of a file, however small


def stride_in(data: bytes) -> int:
    return min(STRIDE, -(-len(data) // LEAST_FLIPS))


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    root = tmp_path / "golden"
    shutil.copytree(GOLDEN / "v1", root)
    stamp(root)
    return root


@pytest.mark.parametrize("predicate", [PREDICATE, TEXTS])
def test_the_whole_index_answers(golden: Path, predicate: str) -> None:
    assert ask(golden, predicate) == (IDS[predicate], ())
    assert len(sec.prune(sec.open_table(str(golden)), "id = 1000").blocks) == 0


READ = [
    *((name, PREDICATE) for name in ("segment 0", "segment 1", "snapshot 0", "filter 0", "filter 2")),
    *((name, TEXTS) for name in ("segment 0", "snapshot 0", "filter 3", "filter 4")),
]
read = pytest.mark.parametrize(("name", "predicate"), READ, ids=[f"{n}-{'T' if p == TEXTS else 'P'}" for n, p in READ])


@read
def test_any_byte_may_be_flipped(golden: Path, name: str, predicate: str) -> None:
    """A flipped byte is noticed wherever the query reads, and never costs a row."""
    file = index_files(golden)[name]
    data = file.read_bytes()
    noticed, stride = 0, stride_in(data)
    for at in range(0, len(data), stride):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        ids, degraded = ask(golden, predicate)
        assert ids == IDS[predicate], f"byte {at} of {file.name}"
        assert bool(degraded) == is_refused(golden, predicate), f"byte {at} of {file.name}"
        noticed += bool(degraded)
    assert noticed > len(data) / stride / 10


@read
def test_any_length_may_be_cut_off(golden: Path, name: str, predicate: str) -> None:
    """What a query does not read of a file it does not miss; verification does."""
    file = index_files(golden)[name]
    data = file.read_bytes()
    noticed = []
    for length in [*range(0, len(data), stride_in(data) * 5), len(data) - 1]:
        file.write_bytes(data[:length])
        ids, degraded = ask(golden, predicate)
        assert ids == IDS[predicate], length
        assert bool(degraded) == is_refused(golden, predicate), length
        assert not sec.verify_index(sec.open_table(str(golden))).sound, length
        noticed.append(bool(degraded))
    assert noticed == sorted(noticed, reverse=True)  # the more is gone, the more is missed
    assert all(noticed) == (file.suffix == ".snapshot")
    assert sum(noticed) > len(noticed) / 4


def swap(one: str, other: str) -> Callable[[Path], None]:
    def harm(root: Path) -> None:
        first, second = index_files(root)[one], index_files(root)[other]
        held = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(held)

    return harm


def segment_as_snapshot(root: Path) -> None:
    files = index_files(root)
    files["snapshot 0"].write_bytes(files["segment 0"].read_bytes())


def snapshot_under_another_number(root: Path) -> None:
    snapshot = index_files(root)["snapshot 0"]
    snapshot.rename(snapshot.with_name("0000000007.snapshot"))


def remove(name: str) -> Callable[[Path], None]:
    return lambda root: index_files(root)[name].unlink()


HARMS = {
    "segments swapped": swap("segment 0", "segment 1"),
    "filters swapped": swap("filter 0", "filter 2"),
    "segment as snapshot": segment_as_snapshot,
    "snapshot renumbered": snapshot_under_another_number,
    "first segment gone": remove("segment 0"),
    "second segment gone": remove("segment 1"),
    "filters gone": remove("filter 0"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_files_may_be_swapped_or_gone(golden: Path, harm: str) -> None:
    HARMS[harm](golden)
    ids, degraded = ask(golden)
    assert ids == IDS[PREDICATE]
    assert degraded
    assert is_refused(golden)


def test_without_a_snapshot_there_is_no_index(golden: Path) -> None:
    remove("snapshot 0")(golden)
    assert ask(golden) == (IDS[PREDICATE], ())


@pytest.mark.parametrize(
    ("chunk", "predicate"),
    [
        ("blocks", PREDICATE),
        ("zone/0", PREDICATE),
        ("page/0", PREDICATE),
        ("posting/3", TEXTS),
        ("rows of posting/3", TEXTS),
    ],
)
def test_c04_trouble_with_one_segment_leaves_the_other_of_use(golden: Path, chunk: str, predicate: str) -> None:
    """What could not be read keeps its blocks, and only its blocks."""

    def blocks_of_second_part() -> list[int]:
        blocks = sec.prune(sec.open_table(str(golden)), predicate).blocks.to_pylist()
        return [block["row_group"] for block in blocks if block["file"].startswith("part=1")]

    before = blocks_of_second_part()
    file = index_files(golden)["segment 0"]
    file.write_bytes(harmed(file.read_bytes(), chunk))
    ids, degraded = ask(golden, predicate)
    assert ids == IDS[predicate]
    assert degraded
    assert all(file.name in reason for reason in degraded)
    assert is_refused(golden, predicate)
    assert blocks_of_second_part() == before


def test_c04_trouble_with_one_filter_leaves_the_others_of_use(golden: Path) -> None:
    """Of the two columns that are looked up one rules the block out alone."""
    file = index_files(golden)["filter 0"]
    file.write_bytes(without_bands(file.name, file.read_bytes()))
    plan = sec.prune(sec.open_table(str(golden)), "id = 17 AND wide = 1700000000000000000001")
    assert len(plan.blocks) == 0
    assert len(plan.report.degraded) == 1
    assert file.name in plan.report.degraded[0]


def harmed(data: bytes, chunk: str) -> bytes:
    """A segment file with one bit flipped in a chunk, or in every band of rows."""
    contents = read_contents("segment", SEGMENT, len(data), lambda at, size: data[at : at + size])
    if chunk not in contents.chunks:
        return without_bands("segment", data, SEGMENT, chunk.split()[-1])
    place = contents.chunks[chunk]
    at = place.at + place.size // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("predicate", [PREDICATE, "id >= 0", "part = 1 AND id > 50"])
def test_a_fault_that_no_part_of_a_stage_confines(
    golden: Path, predicate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which none is known: all blocks come from footers then."""
    expected = sec.prune(sec.open_table(str(golden)), predicate).to_arrow(columns=["id"])

    def broken(*_: object) -> None:
        raise IndexFault("broken")

    monkeypatch.setattr(IndexView, "runs", broken)
    plan = sec.prune(sec.open_table(str(golden)), predicate)
    assert plan.report.degraded == ("broken",)
    assert plan.to_arrow(columns=["id"]).sort_by("id") == expected.sort_by("id")
    with pytest.raises(IndexFault, match="broken"):
        sec.prune(sec.open_table(str(golden)), predicate, strict=True)


def left_by_filters(plan: Scan) -> set[tuple[int, int]]:
    """The blocks that filters left: file and row group."""
    (left,) = (step for step in plan.trail if step.stage == "filters")
    assert isinstance(left, LeftBlocks)
    return set(zip(left.blocks.file.tolist(), left.blocks.row_group.tolist(), strict=True))


@pytest.mark.parametrize("predicate", ["id = 52", "part = 1 AND id >= 0 AND id IN (3, 17, 41, 52, 79)"])
def test_what_filters_left_stays_known_when_the_index_is_given_up(
    golden: Path, predicate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are numbered in the index, and mean others, or none, once it is given up."""

    def broken(*_: object) -> None:
        raise IndexFault("broken")

    monkeypatch.setattr(filters, "SELECTIVE", 1.0)
    sound = sec.prune(sec.open_table(str(golden)), predicate)
    monkeypatch.setattr(zone_maps, "_of_chosen", broken)
    plan = sec.prune(sec.open_table(str(golden)), predicate)
    assert plan.report.degraded == ("broken",)
    assert left_by_filters(plan) == left_by_filters(sound) == left_by_filters(pickle.loads(pickle.dumps(plan)))
    assert all(plan.why(block).survives for block in plan.blocks.to_pylist())
    assert plan.to_arrow(columns=["id"]) == sound.to_arrow(columns=["id"])


@pytest.mark.parametrize("name", ["segment 0", "segment 1", "filter 0", "filter 4", "snapshot 0"])
def test_verify_names_the_fault(golden: Path, name: str) -> None:
    file = index_files(golden)[name]
    data = bytearray(file.read_bytes())
    data[40] ^= 1
    file.write_bytes(bytes(data))
    verification = sec.verify_index(sec.open_table(str(golden)))
    assert not verification.sound
    assert "checksum" in verification.faults[0]
    assert file.name in verification.faults[0]
