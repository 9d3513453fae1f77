"""A data file in the place of another, of its size and with its time put back, is never taken for it."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import StalePlan
from secateur.io.storage.object_file import END
from secateur.io.storage.witness import end_of, version_of
from tests.support.profiles import examples
from tests.support.s3_server import REGION, S3Server

PLAIN: dict[str, Any] = {"compression": "none", "use_dictionary": False, "row_group_size": 5}
ALL = range(10)


def table(values: range | list[int]) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def written(values: range | list[int]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table(values), sink, **PLAIN)
    return bytes(sink.getvalue())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    root.mkdir()
    (root / "a.parquet").write_bytes(written(ALL))
    (root / "b.parquet").write_bytes(written(range(100, 110)))
    build(sec.open_table(str(root)))
    return root


def build(opened: Any) -> None:
    sec.build_index(opened, bloom=["id"])


def ids(opened: Any, where: str) -> list[int]:
    plan = sec.prune(opened, where, strict=True)
    read: list[int] = sorted(plan.to_arrow()["id"].to_pylist())
    assert plan.count() == len(read)
    return read


def covered(opened: Any) -> str:
    index_said = str(sec.prune(opened, "TRUE").report.index)
    return index_said.partition("covers ")[2].partition(";")[0]


def put_back(path: Path, before: os.stat_result) -> None:
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def in_place(path: Path, data: bytes) -> None:
    """As `rsync --inplace -t` does."""
    before = path.stat()
    with path.open("r+b") as file:
        file.write(data)
    put_back(path, before)


def renamed(path: Path, data: bytes) -> None:
    """As `rsync -t`, `cp -p` with a new file and `tar -x` do."""
    before = path.stat()
    aside = path.with_name("_aside")
    aside.write_bytes(data)
    put_back(aside, before)
    aside.rename(path)


OVERWRITES: list[Callable[[Path, bytes], None]] = [in_place, renamed]


@pytest.mark.parametrize("overwrite", OVERWRITES)
def test_an_overwrite_that_keeps_size_and_time(root: Path, overwrite: Callable[[Path, bytes], None]) -> None:
    opened, path = sec.open_table(str(root)), root / "a.parquet"
    assert ids(opened, "id < 50") == list(ALL)
    plan = sec.prune(opened, "id < 50")
    before = path.stat()
    overwrite(path, written(range(20, 30)))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert not plan.is_current()
    with pytest.raises(StalePlan, match=r"a\.parquet has changed"):
        plan.to_arrow()
    for opened_table in (opened, sec.open_table(str(root))):
        assert ids(opened_table, "id >= 20 AND id < 50") == list(range(20, 30))
        assert ids(opened_table, "id = 25 OR id = 5") == [25]
        assert covered(opened_table) == "1 of 2 files"
    assert sec.refresh_index(opened).files_changed == 1
    assert covered(opened) == "2 of 2 files"
    assert ids(opened, "id = 25") == [25]


@examples(40)
@given(history=st.lists(st.tuples(st.sampled_from(OVERWRITES), st.permutations(ALL), st.integers(0, 3)), max_size=6))
def test_histories_of_overwrites_that_keep_size_and_time(tmp_path_factory: Any, history: list[Any]) -> None:
    """All files have the time of a reproducible build, 0."""
    root = tmp_path_factory.mktemp("lake")
    path = root / "a.parquet"
    path.write_bytes(written(ALL))
    os.utime(path, ns=(0, 0))
    opened = sec.open_table(str(root))
    build(opened)
    for overwrite, order, shift in history:
        values = [100 * shift + n for n in order[:5]] * 2
        overwrite(path, written(values))
        assert path.stat().st_mtime_ns == 0
        for value in {*values, 3, 205}:
            assert ids(opened, f"id = {value}") == [value] * values.count(value)
        if shift == 1:
            sec.refresh_index(opened)


def linked(root: Path) -> Path:
    os.link(root / "a.parquet", root.parent / "link")
    return root


def copied(root: Path) -> Path:
    shutil.copytree(root, root.parent / "copy", copy_function=shutil.copy2)  # as cp -a
    return root.parent / "copy"


def moved(root: Path) -> Path:
    return root.rename(root.parent / "moved")


@pytest.mark.parametrize("move", [linked, copied, moved])
def test_an_index_that_goes_along_with_its_table_serves(root: Path, move: Callable[[Path], Path]) -> None:
    opened = sec.open_table(str(move(root)))
    assert covered(opened) == "2 of 2 files"
    assert ids(opened, "id = 5") == [5]
    verified = sec.verify_index(opened)
    assert (verified.sound, verified.files_uncovered) == (True, 0)
    assert sec.refresh_index(opened).is_current
    assert sec.optimize_index(opened).segments_before == 1
    snapshot = sec.prune(opened, "TRUE").opened.catalog.snapshot
    assert snapshot is not None
    assert opened.listing(dt.UTC).id == snapshot.listing_id  # a refresh takes the files as they are now


@pytest.mark.parametrize("overwrite", OVERWRITES)
def test_of_a_copy_a_file_that_is_another_is_not_served(root: Path, overwrite: Callable[[Path, bytes], None]) -> None:
    copy = copied(root)
    overwrite(copy / "a.parquet", written(range(20, 30)))
    opened = sec.open_table(str(copy))
    assert covered(opened) == "1 of 2 files"
    assert ids(opened, "id = 25 OR id = 5 OR id = 105") == [25, 105]


# ---- other filesystems -----------------------------------------------------------------------------------------------


class Tagged(MemoryFileSystem):
    """A filesystem of fsspec whose listings tell ETags, and no times, as those of s3fs and adlfs."""

    protocol = "tagged"
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012

    def find(self, path: str, *settings: Any, detail: bool = False, **more: Any) -> Any:
        listing = super().find(path, *settings, detail=True, **more)
        return {name: self._tagged(info) for name, info in listing.items()} if detail else list(listing)

    def info(self, path: str, **settings: Any) -> Any:
        return self._tagged(super().info(path, **settings))

    def _tagged(self, info: dict[str, Any]) -> dict[str, Any]:
        known = {name: value for name, value in info.items() if name != "created"}
        return known | ({"ETag": hash(self.cat_file(info["name"]))} if info["type"] == "file" else {})


@pytest.fixture(params=["memory", "tagged"])
def wrapped(request: pytest.FixtureRequest) -> Iterator[tuple[Any, pafs.FileSystem]]:
    memory = Tagged(skip_instance_cache=True) if request.param == "tagged" else fsspec.filesystem("memory")
    for name, values in (("a", ALL), ("b", range(100, 110))):
        memory.pipe_file(f"/lake/{name}.parquet", written(values))
    yield memory, pafs.PyFileSystem(pafs.FSSpecHandler(memory))
    memory.rm("/lake", recursive=True)


def test_a_filesystem_that_tells_no_time(wrapped: tuple[Any, pafs.FileSystem]) -> None:
    memory, filesystem = wrapped
    opened = sec.open_table("/lake", filesystem=filesystem)
    build(opened)
    assert covered(opened) == ("2 of 2 files" if isinstance(memory, Tagged) else "0 of 2 files")
    assert ids(opened, "id = 5") == [5]
    plan = sec.prune(opened, "id < 50")
    memory.pipe_file("/lake/a.parquet", written(range(20, 30)))
    if isinstance(memory, Tagged):
        with pytest.raises(StalePlan, match=r"a\.parquet has changed"):
            plan.to_arrow()
    for opened_table in (opened, sec.open_table("/lake", filesystem=filesystem)):
        assert ids(opened_table, "id = 25 OR id = 5") == [25]
        assert ids(opened_table, "id > 15 AND id < 50") == list(range(20, 30))


def test_a_file_of_s3_that_is_overwritten_by_as_many_bytes(s3: S3Server) -> None:
    filesystem = pafs.S3FileSystem(endpoint_override=s3.endpoint, region=REGION)

    def put(values: range) -> None:
        with filesystem.open_output_stream(f"{s3.bucket}/overwritten/a.parquet") as file:
            file.write(written(values))

    put(ALL)
    opened = sec.open_table(f"{s3.bucket}/overwritten", filesystem=filesystem)
    build(opened)
    assert (covered(opened), ids(opened, "id = 5")) == ("1 of 1 file", [5])
    put(range(20, 30))
    assert ids(opened, "id = 25 OR id = 5") == [25]


# ---- what tells ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 100, 30_000, 100_000])
def test_an_end_is_of_the_whole_footer(n: int) -> None:
    """That of a file of many row groups is longer than what is read at first."""
    values = np.arange(n)
    sinks = []
    for first in (0, 1):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [first, *values[1:]]}), sink, row_group_size=100, compression="none")
        sinks.append(sink.getvalue())
    ends = [end_of(pa.BufferReader(sink)) for sink in sinks]
    footers = [int.from_bytes(bytes(sink)[-8:-4], "little") for sink in sinks]
    assert (min(footers) > END) == (n == 100_000), "else this test sees nothing of long footers"
    assert len(set(ends)) == 2
    assert end_of(pa.BufferReader(sinks[0])) == ends[0] != 0


def test_a_version_is_what_a_listing_tells_of_it() -> None:
    assert version_of({"name": "a", "size": 1}) is None
    assert version_of({"ETag": '"x"', "size": 1}) == version_of({"ETag": '"x"', "size": 2})
    tags = [{"ETag": '"x"'}, {"etag": '"y"'}, {"generation": 7}, {"generation": 8}]
    assert len({version_of(tag) for tag in tags}) == len(tags)
