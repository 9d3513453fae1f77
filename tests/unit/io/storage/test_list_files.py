"""Listing a directory: what is found, that equal listings are known by their identity, and how old one may be."""

from __future__ import annotations

import datetime as dt
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import IncompatibleSchemas, StalePlan, TableNotFound
from secateur.io.storage.list_files import CHUNK, WIDE, ListedFiles, list_files
from secateur.io.tables.directory.layout import FilesInDirectories
from secateur.io.tables.directory.listing_cache import LatestListing
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.listing import Listing
from secateur.io.tables.partitions import Partitions
from tests.support.profiles import examples

LOCAL = pafs.LocalFileSystem()
BEGAN = 1_600_000_000_123_456_789  # nanoseconds: no float holds it

# A tree: a file by its (size, modified), a directory by its entries, a link by its target outside the tree.
Tree = dict[str, "tuple[int, int] | str | Tree"]
ODD = ["_x", ".x", "_a=1", ".a=1", "a=1", "_", "x._COPYING_", "x._COPYING_y", "_x\n", "._COPYING_\n", "a b", "a-b", "a"]
ODD += [
    "é",
    "日本",
    "😀",
    "%2F=%3D",
    "=",
    "\\",
    "*?[",
    "_temporary",
    "_SUCCESS",
    "day=2026-01-01",
    "p.parquet",
    ":",
    "\t",
]
TARGETS = ["file", "folder", "fifo", "nothing", "itself"]
names = st.sampled_from(ODD) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12
).filter(lambda name: name not in (".", ".."))
files = st.tuples(st.integers(0, 3), st.integers(BEGAN, BEGAN + 3))
trees: st.SearchStrategy[Tree] = st.recursive(
    st.dictionaries(names, files | st.sampled_from(TARGETS), max_size=4),
    lambda inner: st.dictionaries(names, files | st.sampled_from(TARGETS) | inner, max_size=5),
    max_leaves=20,
)


def plant(tree: Tree, at: Path, outside: Path) -> None:
    """Create a tree on disk."""
    at.mkdir()
    for name, entry in tree.items():
        match entry:
            case dict():
                plant(entry, at / name, outside)
            case str():
                (at / name).symlink_to(name if entry == "itself" else outside / entry)
            case (size, modified):
                write(at / name, size, modified)


def write(path: Path, size: int = 1, modified: int = BEGAN) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, ns=(modified, modified))
    return path


def surroundings(at: Path) -> Path:
    """What links lead to."""
    write(at / "file")
    write(at / "folder" / "deep" / "a.parquet", 2)
    write(at / "folder" / "_hidden" / "b.parquet", 2)
    os.mkfifo(at / "fifo")
    return at


def is_data(path: str) -> bool:
    """Spark's rule, word for word."""
    return not any(
        part.startswith(".") or (part.startswith("_") and "=" not in part) or part.endswith("._COPYING_")
        for part in path.split("/")
    )


Row = tuple[str, int, int]


def reference(filesystem: pafs.FileSystem, root: str) -> list[Row]:
    """One recursive selector, filtered and sorted."""
    infos = filesystem.get_file_info(pafs.FileSelector(root, recursive=True))
    entries = [(i.path.removeprefix(root + "/"), i.size, i.mtime_ns or 0) for i in infos if i.is_file]
    return sorted(row for row in entries if is_data(row[0]))


def rows(listing: ListedFiles | Listing) -> list[Row]:
    times = listing.stamp if isinstance(listing, Listing) else listing.modified
    return list(zip(listing.paths.to_pylist(), listing.size.tolist(), times.tolist(), strict=True))


@examples(200)
@given(trees, st.sampled_from([1, 2, 3, WIDE]))
def test_what_one_selector_finds(tree: Tree, wide: int) -> None:
    """On a local disk, and on a filesystem of which nothing is known."""
    with TemporaryDirectory() as name:
        base = Path(name)
        plant(tree, base / "lake", surroundings(base / "outside"))
        root = str(base / "lake")
        assert rows(list_files(LOCAL, root, wide=wide)) == reference(LOCAL, root)
        other = pafs.SubTreeFileSystem(name, LOCAL)
        assert rows(list_files(other, "lake", wide=wide)) == reference(other, "lake") == reference(LOCAL, root)


@examples(50)
@given(trees, st.sampled_from([1, 2, WIDE]))
def test_what_one_selector_finds_in_memory(tree: Tree, wide: int) -> None:
    """A filesystem written in Python, which knows no time of modification."""
    memory = fsspec.filesystem("memory", skip_instance_cache=True)
    memory.store, memory.pseudo_dirs = {}, [""]
    memory.mkdir("/lake")

    def put(tree: Tree, at: str) -> None:
        for name, entry in tree.items():
            if isinstance(entry, dict):
                memory.mkdir(f"{at}/{name}")
                put(entry, f"{at}/{name}")
            elif isinstance(entry, tuple):
                memory.pipe_file(f"{at}/{name}", b"x" * entry[0])

    put(tree, "/lake")
    filesystem = pafs.PyFileSystem(pafs.FSSpecHandler(memory))
    assert rows(list_files(filesystem, "/lake", wide=wide)) == reference(filesystem, "/lake")


def test_a_directory_of_more_files_than_one_thread_takes(tmp_path: Path) -> None:
    for i in range(CHUNK + 10):
        (tmp_path / f"{i % 7}-{i}").touch()
    assert rows(list_files(LOCAL, str(tmp_path))) == reference(LOCAL, str(tmp_path))


def test_more_directories_than_are_listed_one_by_one(tmp_path: Path) -> None:
    for i in range(WIDE + 5):
        write(tmp_path / f"a={i}" / "b=1" / "file", i)
        write(tmp_path / f"a={i}" / "_temporary" / "file", i)
    entries = rows(list_files(LOCAL, str(tmp_path)))
    assert entries == reference(LOCAL, str(tmp_path))
    assert len(entries) == WIDE + 5


def test_a_link_to_the_directory_around_it(tmp_path: Path) -> None:
    """It is followed as far as the system goes, as by pyarrow."""
    write(tmp_path / "file")
    (tmp_path / "around").symlink_to(".")
    assert rows(list_files(LOCAL, str(tmp_path))) == reference(LOCAL, str(tmp_path))


@pytest.mark.parametrize("fault", ["gone", "a file", "no UTF-8"])
def test_what_cannot_be_listed(tmp_path: Path, fault: str) -> None:
    root = tmp_path / "lake"
    root.mkdir()
    table = sec.open_table(str(root))
    if fault == "no UTF-8":
        Path(os.fsdecode(bytes(root) + b"/\xff")).touch()
    else:
        root.rmdir()
    if fault == "a file":
        root.touch()
    with pytest.raises(TableNotFound, match=f"cannot list {root}: "):
        table.listing(dt.UTC)


# Identity

listed = st.lists(
    st.tuples(names, st.integers(0, 3), st.integers(BEGAN, BEGAN + 3)), max_size=5, unique_by=lambda r: r[0]
)


def listing_of(entries: list[Row]) -> Listing:
    paths, size, modified = zip(*entries, strict=True) if entries else ((), (), ())
    text = pa.array(paths, pa.string())
    return Listing(
        text, np.array(size, np.int64), np.array(modified, np.int64), np.array(modified, np.int64), Partitions((), ())
    )


@examples(300)
@given(listed, listed)
def test_equal_identity_means_equal_files(one: list[Row], other: list[Row]) -> None:
    assert (listing_of(one).id == listing_of(other).id) == (one == other)


@examples(100)
@given(listed, st.data())
def test_a_part_of_longer_arrays_is_known_as_itself(entries: list[Row], data: st.DataObject) -> None:
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(entries))] * 2)))
    whole = listing_of(entries)
    part = Listing(
        whole.paths.slice(start, stop - start),
        whole.size[start:stop],
        whole.stamp[start:stop],
        whole.witness[start:stop],
        whole.partitions,
    )
    assert part.id == listing_of(entries[start:stop]).id


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for day in ("2026-01-01", "2026-01-02"):
        write(tmp_path / "lake" / f"day={day}" / "a.parquet")
    return tmp_path / "lake"


CHANGES: dict[str, Callable[[Path], object]] = {
    "another time": lambda file: os.utime(file, ns=(BEGAN, BEGAN + 1)),
    "another size": lambda file: write(file, 2),
    "another name": lambda file: file.rename(file.with_name("b.parquet")),
    "another directory": lambda file: file.rename(file.parent.parent / "day=2026-01-02" / "c.parquet"),
    "gone": lambda file: file.unlink(),
    "one more": lambda file: write(file.with_name("b.parquet")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_another_listing(root: Path, change: str) -> None:
    table = sec.open_table(str(root))
    before = table.listing(dt.UTC)
    assert table.listing(dt.UTC) is before
    CHANGES[change](root / "day=2026-01-01" / "a.parquet")
    after = table.listing(dt.UTC)
    assert after.id != before.id
    assert rows(after) == reference(LOCAL, str(root))
    assert table.listing(dt.UTC) is after
    assert sec.open_table(str(root)).listing(dt.UTC).id == after.id


def test_what_is_no_data_changes_nothing(root: Path) -> None:
    table = sec.open_table(str(root))
    before = table.listing(dt.UTC)
    write(root / "_secateur" / "snapshots" / "1")
    write(root / "day=2026-01-01" / ".a.parquet.crc")
    assert table.listing(dt.UTC) is before


def test_partitions_are_read_once_for_all_zones_unless_zones_matter(root: Path) -> None:
    table = sec.open_table(str(root))
    paris = ZoneInfo("Europe/Paris")
    assert table.listing(paris) is table.listing(dt.UTC)
    write(root / "day=2026-01-02 12:00:00" / "a.parquet")
    assert table.listing(paris) is table.listing(paris)
    assert table.listing(paris) is not table.listing(dt.UTC)
    assert table.listing(paris).id == table.listing(dt.UTC).id
    noon = [table.listing(zone).partitions.values[0][1].as_py().hour for zone in (paris, dt.UTC)]
    assert noon == [11, 12]


def test_arrays_that_are_shared_cannot_be_written(root: Path) -> None:
    listing = sec.open_table(str(root)).listing(dt.UTC)
    for array in (listing.size, listing.stamp, listing.witness):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


# Freshness


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the time; it stands still otherwise."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def set_to(seconds: float) -> None:
        now[0] = 1000.0 + seconds

    return set_to


@pytest.mark.parametrize("freshness", [10, 10.0, dt.timedelta(seconds=10)])
def test_a_listing_serves_for_so_long(root: Path, clock: Callable[[float], None], freshness: float) -> None:
    table = sec.open_table(str(root), freshness=freshness)
    before = table.listing(dt.UTC)
    write(root / "day=2026-01-01" / "b.parquet")
    clock(9.99)
    assert table.listing(dt.UTC) is before
    assert table.listing(ZoneInfo("Asia/Tokyo")) is before
    clock(10)
    after = table.listing(dt.UTC)
    assert len(after.size) == 3
    (root / "day=2026-01-01" / "b.parquet").unlink()
    clock(19.99)
    assert table.listing(dt.UTC) is after
    clock(20)
    assert table.listing(dt.UTC).id == before.id


def test_a_listing_that_finds_the_same_serves_anew(root: Path, clock: Callable[[float], None]) -> None:
    table = sec.open_table(str(root), freshness=10)
    before = table.listing(dt.UTC)
    clock(10)
    assert table.listing(dt.UTC) is before
    write(root / "day=2026-01-01" / "b.parquet")
    clock(19.99)
    assert table.listing(dt.UTC) is before
    clock(20)
    assert table.listing(dt.UTC) is not before


@pytest.mark.parametrize("freshness", [None, 0, dt.timedelta(0)])
def test_without_freshness_every_call_lists(root: Path, clock: Callable[[float], None], freshness: None) -> None:
    """Even where the clock stands still, as a coarse one may between two calls."""
    table = sec.open_table(str(root), freshness=freshness)
    assert len(table.listing(dt.UTC).size) == 2
    write(root / "day=2026-01-01" / "b.parquet")
    assert len(table.listing(dt.UTC).size) == 3


def test_a_fresh_listing_is_asked_for(root: Path, clock: Callable[[float], None]) -> None:
    table = sec.open_table(str(root), freshness=float("inf"))
    before = table.listing(dt.UTC)
    write(root / "day=2026-01-01" / "b.parquet")
    clock(1e9)
    assert table.listing(dt.UTC) is before
    after = table.fresh_listing(dt.UTC)
    assert len(after.size) == 3
    assert table.listing(dt.UTC) is after


@pytest.mark.parametrize("freshness", [-1, -0.001, float("nan"), dt.timedelta(microseconds=-1)])
def test_negative_freshness_is_refused(root: Path, freshness: float) -> None:
    with pytest.raises(ValueError, match=r"freshness is .*0 or more"):
        sec.open_table(str(root), freshness=freshness)


def test_errors_leave_what_was_listed_before(root: Path, clock: Callable[[float], None]) -> None:
    table = sec.open_table(str(root), freshness=10)
    before = table.listing(dt.UTC)
    wrong = write(root / "night=1" / "a.parquet")
    with pytest.raises(IncompatibleSchemas):
        table.fresh_listing(dt.UTC)
    assert table.listing(dt.UTC) is before
    wrong.unlink()
    assert table.fresh_listing(dt.UTC) is before
    root.rename(root.with_name("elsewhere"))
    assert table.listing(dt.UTC) is before
    with pytest.raises(TableNotFound):
        table.fresh_listing(dt.UTC)


def test_a_listing_that_is_seen_to_be_wrong_serves_no_longer(tmp_path: Path) -> None:
    for i in range(2):
        pq.write_table(pa.table({"a": [i]}), tmp_path / f"{i}.parquet")
    table = sec.open_table(str(tmp_path), freshness=float("inf"))
    assert sec.prune(table, "a >= 0").count() == 2
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(StalePlan, match="plan again"):  # what was asked before is given again, and not looked up
        sec.prune(table, "a >= 1")
    assert sec.prune(table, "a >= 0").count() == 1


def test_a_plan_that_is_given_again_is_seen_to_be_wrong_when_it_is_read(tmp_path: Path) -> None:
    for i in range(2):
        pq.write_table(pa.table({"a": [i]}), tmp_path / f"{i}.parquet")
    table = sec.open_table(str(tmp_path), freshness=float("inf"))
    assert sec.prune(table, "a >= 0").count() == 2
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(StalePlan, match="plan again"):
        sec.prune(table, "a >= 0").to_arrow()
    assert sec.prune(table, "a >= 0").to_arrow()["a"].to_pylist() == [0]


def test_a_handle_travels_without_what_it_remembers(root: Path) -> None:
    table = sec.open_table(str(root), freshness=60)
    before = table.listing(dt.UTC)
    write(root / "day=2026-01-01" / "b.parquet")
    there = pickle.loads(pickle.dumps(table))
    assert isinstance(there, ParquetDirectory)
    assert there == table
    assert there.freshness == 60
    assert len(there.listing(dt.UTC).size) == 3
    assert len(replace(table, root=f"{root}/day=2026-01-01").listing(dt.UTC).size) == 2
    assert table.listing(dt.UTC) is before


# Threads


class Lister:
    """Lists a file more every time, each time only when it is let."""

    def __init__(self) -> None:
        self.begun = self.done = 0
        self.at_work, self.may_end = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self) -> FilesInDirectories:
        self.begun += 1
        number = self.begun
        self.at_work.release()
        assert self.may_end.acquire(timeout=60)
        self.done += 1
        files = ListedFiles(pa.array([f"{i}" for i in range(number)]), *(np.ones((3, number), np.int64)))
        return FilesInDirectories(files)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def test_a_listing_under_way_serves_nobody_who_came_after_it_began(threads: ThreadPoolExecutor) -> None:
    latest, lister = LatestListing(), Lister()
    first = threads.submit(latest.get, lister, dt.UTC, 0.0)
    assert lister.at_work.acquire(timeout=60)
    later = [threads.submit(latest.get, lister, dt.UTC, 0.0) for _ in range(5)]
    lister.may_end.release(100)
    assert len(first.result(60).size) == 1
    assert {len(one.result(60).size) for one in later} <= set(range(2, 7))
    assert not latest._one_lists.locked()


def test_who_is_content_does_not_wait(threads: ThreadPoolExecutor) -> None:
    latest, lister = LatestListing(), Lister()
    lister.may_end.release()
    before = latest.get(lister, dt.UTC, 60.0)
    fresh = threads.submit(latest.get, lister, dt.UTC, 0.0)
    assert lister.at_work.acquire(timeout=60)
    assert lister.at_work.acquire(timeout=60)
    assert threads.submit(latest.get, lister, dt.UTC, 60.0).result(60) is before
    lister.may_end.release()
    assert len(fresh.result(60).size) == 2


def test_many_who_wait_share_one_listing(threads: ThreadPoolExecutor) -> None:
    latest, lister = LatestListing(), Lister()
    all_ask = [threads.submit(latest.get, lister, dt.UTC, 60.0) for _ in range(8)]
    assert lister.at_work.acquire(timeout=60)
    lister.may_end.release(100)
    assert len({id(one.result(60)) for one in all_ask}) == 1
    assert lister.done == 1


@pytest.mark.parametrize("freshness", [None, 0.02])
def test_no_change_is_hidden_for_longer(root: Path, freshness: float | None, threads: ThreadPoolExecutor) -> None:
    """While files are added, every listing holds those that were there `freshness` before it was asked for."""
    table = sec.open_table(str(root), freshness=freshness)
    written: list[tuple[float, str]] = []
    over = threading.Event()

    def read() -> int:
        calls = 0
        while not over.is_set():
            before, asked = list(written), time.monotonic()
            listing = table.listing(dt.UTC)
            due = {path for moment, path in before if moment <= asked - (freshness or 0)}
            assert due <= set(listing.paths.to_pylist())
            assert len(listing.paths) == len(listing.size) == len(listing.stamp)
            calls += 1
        return calls

    readers = [threads.submit(read) for _ in range(6)]
    for i in range(60):
        path = f"day=2026-01-{3 + i % 9:02d}/{i}.parquet"
        write(root / path)
        written.append((time.monotonic(), path))
        time.sleep(0.002)
    over.set()
    assert all(reader.result(60) for reader in readers)
