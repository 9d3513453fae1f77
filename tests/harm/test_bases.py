"""Whatever happens to a base, the rows stay right; what it claims is believed only where it agrees with the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.errors import IndexFault
from secateur.index.container.index_file import SNAPSHOT
from secateur.index.segments import base_file
from secateur.index.segments.base_file import base_described, described_base, write_base
from secateur.index.segments.file_table import FileTable, StoredFiles
from secateur.index.segments.segment_files import SegmentFiles
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.profiles import by_profile
from tests.support.stores.index_faults import is_refused
from tests.support.stores.index_files import with_arrays
from tests.support.stores.memory_store import MemoryStore

ASKED = "id IN (3, 41, 67) OR id BETWEEN 22 AND 24"
WANTED = [3, 22, 23, 24, 41, 67]
STRIDE = by_profile(quick=97, full=17, nightly=1, fast=397)  # bytes between two flips


@pytest.fixture(autouse=True)
def few_own_files() -> Iterator[None]:
    """More than two files make a base."""
    with patch.object(base_file, "MOST_OWN", 2):
        yield


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Seven files of ten rows: five of them in a base, two that came one by one."""
    for number in (5, 2, 0, 6, 3):  # the order by path is not that of the ids
        append(tmp_path, number)
    sec.build_index(opened(tmp_path), sort_key=["id"], bloom=["id"], segment_blocks=1)
    for number in (4, 1):
        append(tmp_path, number)
        sec.refresh_index(opened(tmp_path))
    return tmp_path


def append(root: Path, number: int) -> None:
    ids = range(10 * number, 10 * number + 10)
    pq.write_table(pa.table({"id": ids}), root / f"{(number * 7) % 10}.parquet", row_group_size=5)


def opened(root: Path) -> ParquetDirectory:
    table = sec.open_table(str(root))
    assert isinstance(table, ParquetDirectory)
    return table


def ask(root: Path) -> tuple[list[int], tuple[str, ...]]:
    plan = sec.prune(opened(root), ASKED)
    return sorted(plan.to_arrow(columns=["id"])["id"].to_pylist()), plan.report.degraded


def bases(root: Path) -> list[Path]:
    return sorted((root / "_secateur" / "bases").iterdir())


def current(root: Path) -> Path:
    return max((root / "_secateur" / "snapshots").iterdir())


def test_a_base_is_shared_by_snapshots(lake: Path) -> None:
    """Until too many files are in none: then there is another one."""
    assert ask(lake) == (WANTED, ())
    assert len(sec.prune(opened(lake), ASKED, strict=True).blocks) == 4
    assert len(bases(lake)) == 1
    append(lake, 9)
    done = sec.refresh_index(opened(lake))
    assert (done.index.files, done.files_added) == (8, 1)
    assert len(bases(lake)) == 2
    assert ask(lake) == (WANTED, ())
    assert sec.verify_index(opened(lake)).sound


def test_a_base_of_little_use_is_replaced(lake: Path) -> None:
    for path in sorted(lake.glob("*.parquet")):
        if pq.read_table(path)["id"][0].as_py() in (0, 20, 30, 50):
            path.unlink()
    sec.refresh_index(opened(lake))
    assert len(bases(lake)) == 2
    assert ask(lake) == ([41, 67], ())
    assert sec.verify_index(opened(lake)).sound


def test_any_byte_of_a_base_may_be_flipped(lake: Path) -> None:
    (file,) = bases(lake)
    data = file.read_bytes()
    noticed = 0
    for at in range(16, len(data), STRIDE):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        ids, degraded = ask(lake)
        assert ids == WANTED, at
        assert bool(degraded) == is_refused(lake, ASKED), at
        noticed += bool(degraded)
    assert noticed
    assert not sec.verify_index(opened(lake)).sound


def test_any_length_of_a_base_may_be_cut_off(lake: Path) -> None:
    (file,) = bases(lake)
    data = file.read_bytes()
    for length in [*range(0, len(data), STRIDE), len(data) - 1]:
        file.write_bytes(data[:length])
        assert ask(lake)[0] == WANTED, length
        assert not sec.verify_index(opened(lake)).sound, length


def test_a_base_may_be_gone(lake: Path) -> None:
    """It costs time; a refresh says what is missing, and a build makes the index anew."""
    (file,) = bases(lake)
    file.unlink()
    ids, degraded = ask(lake)
    assert ids == WANTED
    assert any(file.name in reason for reason in degraded)
    append(lake, 8)
    with pytest.raises(IndexFault, match=file.name):
        sec.refresh_index(opened(lake))
    sec.build_index(opened(lake), sort_key=["id"])
    assert ask(lake) == (WANTED, ())


def test_another_base_in_its_place_is_refused(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Even one of a table with the same names."""
    other = tmp_path_factory.mktemp("other")
    for path in lake.glob("*.parquet"):
        pq.write_table(pa.table({"id": range(100, 110)}), other / path.name, row_group_size=5)
    sec.build_index(opened(other), sort_key=["id"], segment_blocks=1)
    bases(lake)[0].write_bytes(bases(other)[0].read_bytes())
    ids, degraded = ask(lake)
    assert ids == WANTED and degraded


def test_a_vacuum_keeps_the_base_and_a_drop_removes_it(lake: Path) -> None:
    (before,) = bases(lake)
    append(lake, 9)
    sec.refresh_index(opened(lake))
    (after,) = {*bases(lake)} - {before}
    sec.vacuum_index(opened(lake), grace_seconds=-1)
    assert bases(lake) == [after]
    assert ask(lake) == (WANTED, ())
    sec.drop_index(opened(lake))
    assert not [path for path in (lake / "_secateur").rglob("*") if path.is_file()]


IN_BASE: list[Callable[[np.ndarray], np.ndarray]] = [
    lambda at: np.where(at == 1, 0, at),
    lambda at: np.where(at == 4, 5, at),
    lambda at: np.where(at == 4, 2**40, at),
    lambda at: np.where(at == 4, 2**63 - 1, at),
    lambda at: np.where(at == 4, -1, at),
    lambda at: np.where(at < 0, -2, at),
    lambda at: at[:-1],
    lambda at: at.astype("<i4"),
    lambda at: np.broadcast_to(np.int64(0), 2**40),
]


@pytest.mark.parametrize("lie", range(len(IN_BASE)))
def test_places_in_a_base_may_lie(lake: Path, lie: int) -> None:
    """Twice the same file, files that the base lacks, or places of too few segments: all is refused."""
    path = current(lake)
    lies = {"in-base": lambda arrays: [IN_BASE[lie](arrays[0])]}
    path.write_bytes(with_arrays(path.read_bytes(), SNAPSHOT, lies).data)
    ids, degraded = ask(lake)
    assert ids == WANTED and degraded
    assert is_refused(lake, ASKED)


def arrays_of(n: int) -> list[np.ndarray]:
    """What a base says of n files of a thousand bytes."""
    size, zeros = np.full(n, 1000), np.zeros(n, np.int64)
    return [size, zeros, zeros, zeros, np.ones(n, np.int64), zeros, zeros, np.arange(n)]


ARRAYS: list[Callable[[list[np.ndarray]], None]] = [
    lambda arrays: arrays.__setitem__(7, np.array([0, 0, 2])),
    lambda arrays: arrays.__setitem__(7, np.array([0, 1, 3])),
    lambda arrays: arrays.__setitem__(7, np.array([0, 1, -1])),
    lambda arrays: arrays.__setitem__(7, np.broadcast_to(np.int64(0), 3)),
    lambda arrays: arrays.__setitem__(7, np.arange(2)),
    lambda arrays: arrays.__setitem__(4, np.array([1, 1, 143])),
    lambda arrays: arrays.__setitem__(4, np.array([1, 1, -1])),
    lambda arrays: arrays.__setitem__(0, np.array([1000, 1000])),
]


@pytest.mark.parametrize("lie", range(len(ARRAYS)))
def test_arrays_of_a_base_may_lie(lie: int) -> None:
    arrays = arrays_of(3)
    ARRAYS[lie](arrays)
    files = StoredFiles(3, lambda: pa.array(["a", "b", "c"], pa.large_string()), lambda: arrays, "bases/x.base")
    with pytest.raises(IndexFault):
        files.column("size")


def test_the_number_of_paths_may_lie() -> None:
    files = StoredFiles(3, lambda: pa.array(["a", "b"], pa.large_string()), lambda: arrays_of(3), "bases/x.base")
    with pytest.raises(IndexFault, match="2 paths of 3 files"):
        _ = files.path


def test_the_order_of_paths_may_lie() -> None:
    """Files would take each other's paths; equal ones have no order."""
    texts = ["b", "a", "c"]
    files = StoredFiles(3, lambda: pa.array(texts, pa.large_string()), lambda: arrays_of(3), "bases/x.base")
    with pytest.raises(IndexFault, match="not in their order"):
        _ = files.path
    texts = ["a", "a", "c"]
    assert files.path.to_pylist() == texts


def base_in(store: MemoryStore, columns: list[np.ndarray]) -> base_file.Base:
    """A base of one file, in a store."""
    table = FileTable(pa.array(["a"], pa.large_string()), *columns, segment=np.zeros(1, np.int32))
    base = write_base(store, "0" * 12, SegmentFiles.of(table, 1)).base
    assert base is not None
    return base


DESCRIPTIONS: list[tuple[str, object]] = [
    ("name", "bases/../0123456789ab.base"),
    ("name", "segments/0123456789ab-000000.segment"),
    ("size", 10),
    ("files", -1),
    ("files", 2**40),
    ("chunks", {"paths": [16, 2**40, 0], "files": [16, 8, 0]}),
    ("chunks", {"paths": [-16, 8, 0], "files": [16, 8, 0]}),
]


@pytest.mark.parametrize(("name", "value"), DESCRIPTIONS)
def test_what_a_snapshot_says_of_a_base_may_lie(name: str, value: object) -> None:
    store = MemoryStore()
    base = base_in(store, arrays_of(1)[:7])
    described = described_base(base)
    assert base_described(described, store, "here").files.path.to_pylist() == ["a"]
    with pytest.raises(IndexFault):
        base_described({**described, name: value}, store, "here")


def test_a_base_with_other_bytes_is_not_what_was_kept() -> None:
    """A cache keeps bases by all that a snapshot says of them."""
    store = MemoryStore()
    kept: dict[object, base_file.Base] = {}

    def keep(key: object, load: Callable[[], base_file.Base]) -> base_file.Base:
        return kept.setdefault(key, load())

    for size in (1000, 2000):
        base = base_in(store, [np.full(1, size), *arrays_of(1)[1:7]])
        opened_again = base_described(described_base(base), store, "here", keep)
        assert opened_again.files.column("size").tolist() == [size]
