"""What becomes of a plan when its table changes: the rows that were planned, or StalePlan; never others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyspark.errors import PySparkException

import secateur as sec
from secateur.errors import StalePlan
from secateur.index.model import BuildOptions
from secateur.io.scan.aggregate import aggregated, bound
from secateur.io.storage.file_version import ListedFile
from secateur.pruning.predicate.sql.aggregates import parse_aggregates
from secateur.scan import Scan
from tests.support.formats.iceberg_tables import catalog_in
from tests.support.stores.local_build import index_here
from tests.support.tables import write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHERE = "id >= 5 AND id < 25"  # all of b.parquet, and half of the others
PLAIN: dict[str, Any] = {"compression": "none", "use_dictionary": False, "row_group_size": 5}


def rows(first: int, count: int = 10) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "n": pa.array(range(count), pa.int64())})


@pytest.fixture(params=[True, False], ids=["indexed", "footers"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "table"
    for i, name in enumerate("abc"):
        write_file(root / f"{name}.parquet", rows(10 * i), **PLAIN)
    if request.param:
        index_here(sec.open_table(str(root)), BuildOptions())
    return root


def same_size(root: Path) -> None:
    path = root / "b.parquet"
    before = path.stat()
    write_file(path, rows(60), **PLAIN)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def garbage(root: Path) -> None:
    (root / "b.parquet").write_bytes(b"x" * (root / "b.parquet").stat().st_size)


def truncated(root: Path) -> None:
    path = root / "b.parquet"
    path.write_bytes(path.read_bytes()[:-100])


def compacted(root: Path) -> None:
    write_file(root / "all.parquet", rows(0, 30), **PLAIN)
    for name in "abc":
        (root / f"{name}.parquet").unlink()


def a_directory(root: Path) -> None:
    (root / "b.parquet").unlink()
    write_file(root / "b.parquet" / "inner.parquet", rows(10), **PLAIN)


CHANGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda root: (root / "b.parquet").unlink(),
    "overwritten": lambda root: write_file(root / "b.parquet", rows(60, 7), **PLAIN),
    "overwritten by as many bytes": same_size,
    "garbage": garbage,
    "truncated": truncated,
    "renamed": lambda root: (root / "b.parquet").rename(root / "z.parquet"),
    "compacted": compacted,
    "a directory": a_directory,
    "emptied": lambda root: (root / "b.parquet").write_bytes(b""),
}
HARMLESS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda root: None,
    "appended": lambda root: write_file(root / "new.parquet", rows(0), **PLAIN),
    "index dropped": lambda root: shutil.rmtree(root / "_secateur", ignore_errors=True),
}


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def aggregates(plan: Scan) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = aggregated(
        plan, bound(plan, parse_aggregates("count(*) AS n, min(n) AS low, max(id) AS high"), case_sensitive=False)
    ).to_pylist()
    return answers


READ_PATHS: dict[str, tuple[Callable[[Scan], Any], Any]] = {
    "to_arrow": (lambda plan: ids(plan.to_arrow()), list(range(5, 25))),
    "to_batches": (lambda plan: ids(pa.Table.from_batches(plan.to_batches())), list(range(5, 25))),
    "aggregate": (aggregates, [{"n": 20, "low": 0, "high": 24}]),
}


@pytest.mark.parametrize("read_path", READ_PATHS)
@pytest.mark.parametrize("change", [*CHANGES, *HARMLESS])
def test_a_directory_changes_between_plan_and_read(root: Path, change: str, read_path: str) -> None:
    read, planned = READ_PATHS[read_path]
    plan = sec.prune(sec.open_table(str(root)), WHERE, strict=True)
    assert read(plan) == planned
    if change in HARMLESS:
        HARMLESS[change](root)
        assert read(plan) == planned
        return
    CHANGES[change](root)
    if read_path == "aggregate":  # by metadata: what was planned, or a file that had to be read is another
        try:
            assert read(plan) == planned
        except StalePlan as error:
            assert "plan again" in str(error)
        return
    with pytest.raises(StalePlan, match=r"the plan is stale: .*[abc]\.parquet has .*plan again"):
        read(plan)


@pytest.mark.parametrize("change", CHANGES)
def test_a_count_is_that_of_the_plan(root: Path, change: str) -> None:
    """Blocks that match whole are counted without a look; any other is read."""
    plan = sec.prune(sec.open_table(str(root)), "id % 2 = 0", strict=True)
    whole = sec.prune(sec.open_table(str(root)), WHERE, strict=True)
    CHANGES[change](root)
    assert whole.count() == 20
    with pytest.raises(StalePlan, match="plan again"):
        plan.count()


@pytest.mark.parametrize("change", [*CHANGES, *HARMLESS])
def test_a_plan_is_made_anew(root: Path, change: str) -> None:
    """Over the table as it is then, with the same settings; where the plan's files are as they were, it is current."""
    if change in ("garbage", "truncated", "emptied"):
        return  # no table any more
    table = sec.open_table(str(root), freshness=float("inf"))
    plan = sec.prune(table, WHERE, limit=1000, use_index=False, strict=True)
    assert plan.is_current()
    (CHANGES | HARMLESS)[change](root)
    assert plan.is_current() == (change in HARMLESS)
    again = plan.replanned()
    assert again.is_current()
    assert (again.limit, again.origin.settings) == (1000, plan.origin.settings)
    assert ids(again.to_arrow()) == ids(sec.prune(sec.open_table(str(root)), WHERE).to_arrow())


def test_a_file_that_is_overwritten_while_it_is_read_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it lies: whoever has it open sees other bytes. Here each file is read when its turn has come."""
    monkeypatch.setattr("secateur.io.scan.reading.block_reader.MOST_FILES", 1)
    plan = sec.prune(sec.open_table(str(root)), "id >= 10 AND n % 2 = 0", strict=True)
    batches = plan.to_batches()
    next(batches)
    same_size(root)
    with pytest.raises(StalePlan, match=r"b\.parquet has changed"):
        list(batches)


def test_the_next_query_looks_anew(root: Path) -> None:
    table = sec.open_table(str(root), freshness=float("inf"))
    plan = sec.prune(table, WHERE)
    same_size(root)
    with pytest.raises(StalePlan):
        plan.to_arrow()
    assert ids(sec.prune(table, WHERE).to_arrow()) == [*range(5, 10), *range(20, 25)]


def told(path: Path, size: int, modified: int, filesystem: pafs.FileSystem) -> ListedFile:
    return ListedFile(filesystem, str(path), path.name, size, modified)


def test_a_filesystem_that_tells_nothing_of_open_files_is_asked_again(root: Path) -> None:
    path, local = root / "a.parquet", pafs.LocalFileSystem()
    wrapped = pafs.SubTreeFileSystem("/", local)
    info = path.stat()
    with wrapped.open_input_file(str(path)[1:]) as file:
        on_disk = Path(str(path)[1:])
        told(on_disk, info.st_size, info.st_mtime_ns, wrapped).require(file)
        told(on_disk, info.st_size, 0, wrapped).require(file)
        for size, modified in ((info.st_size + 1, 0), (info.st_size, info.st_mtime_ns + 1)):
            with pytest.raises(StalePlan, match=r"a\.parquet has changed"):
                told(on_disk, size, modified, wrapped).require(file)
    with pytest.raises(StalePlan, match="gone has vanished"):
        told(root / "gone", 1, 1, local).require()


class Answered:
    """An open object whose store told of it when it was opened."""

    def __init__(self, size: int, metadata: dict[bytes, bytes]) -> None:
        self._size, self._metadata = size, metadata

    def size(self) -> int:
        return self._size

    def metadata(self) -> dict[bytes, bytes]:
        return self._metadata


def test_an_object_tells_its_time_itself() -> None:
    """To the second; nothing else is asked, as there is nothing under this path."""
    filesystem = pafs.SubTreeFileSystem("/nowhere", pafs.LocalFileSystem())
    moment = 1_767_225_600  # 2026-01-01
    answered: Any = Answered(5, {b"Last-Modified": b"2026-01-01T00:00:00Z"})
    told(Path("a"), 5, moment * 10**9 + 999_000_000, filesystem).require(answered)
    with pytest.raises(StalePlan, match="it was modified since"):
        told(Path("a"), 5, (moment - 1) * 10**9, filesystem).require(answered)
    with pytest.raises(StalePlan, match="it had 6 bytes, and has 5"):
        told(Path("a"), 6, moment * 10**9, filesystem).require(answered)
    unknown: Any = Answered(5, {b"Last-Modified": b"yesterday"})
    with pytest.raises(StalePlan, match="vanished"):  # asked again
        told(Path("a"), 5, moment * 10**9, filesystem).require(unknown)


# ---- Spark -----------------------------------------------------------------------------------------------------------


def in_order(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


@pytest.mark.parametrize("root", [True], indirect=True)
def test_spark_says_that_a_plan_is_stale(spark: SparkSession, root: Path) -> None:
    plan = sec.prune(sec.open_table(str(root)), WHERE, session_time_zone="UTC")
    frame = plan.to_spark(spark, via="blocks")
    write_file(root / "new.parquet", rows(5), **PLAIN)
    for via in ("blocks", "native"):
        assert in_order(plan.to_spark(spark, via=via)) == list(range(5, 25))
    same_size(root)
    with pytest.raises(PySparkException, match=r"StalePlan: the plan is stale: .*b\.parquet has changed"):
        frame.collect()
    with pytest.raises(StalePlan, match=r"b\.parquet has changed"):
        plan.to_spark(spark, via="native")
    now = [*range(5, 10), *range(5, 15), *range(20, 25)]
    for via in ("blocks", "native"):
        assert in_order(plan.to_spark(spark, via=via, replan=True)) == sorted(now)
    (root / "b.parquet").unlink()
    with pytest.raises(StalePlan, match=r"b\.parquet has vanished"):
        plan.to_spark(spark, via="native")


# ---- Iceberg ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def own_catalog(tmp_path: Path) -> Catalog:
    return catalog_in(tmp_path)


@pytest.fixture(params=[True, False], ids=["indexed", "manifests"])
def made(request: pytest.FixtureRequest, own_catalog: Catalog) -> Any:
    table = own_catalog.create_table("db.t", rows(0).schema)
    for i in range(3):
        table.append(rows(10 * i))
    if request.param:
        index_here(sec.open_table(table), BuildOptions())
    return table


def files_of(table: Any) -> list[Path]:
    return [Path(task.file.file_path.removeprefix("file://")) for task in table.scan().plan_files()]


COMMITS: dict[str, Callable[[Any], object]] = {
    "append": lambda table: table.append(rows(5)),
    "delete": lambda table: table.delete("id < 15"),
    "overwrite": lambda table: table.overwrite(rows(100)),
    "compaction": lambda table: table.overwrite(rows(0, 30)),
    "rename": lambda table: renamed(table),
}


def renamed(table: Any) -> None:
    with table.update_schema() as update:
        update.rename_column("n", "m")


@pytest.mark.parametrize(
    ("commit", "made"), [*((commit, True) for commit in COMMITS), ("overwrite", False)], indirect=["made"]
)
def test_a_plan_reads_its_own_snapshot(made: Any, commit: str) -> None:
    """After commits, and then not, once files of it are gone."""
    table = sec.open_table(made)
    plan = sec.prune(table, WHERE, strict=True)
    old = made.current_snapshot().snapshot_id
    planned_files = [Path(path.removeprefix("file://")) for path in plan.files]
    expected = {read_path: planned for read_path, (_, planned) in READ_PATHS.items()}
    COMMITS[commit](made)
    assert {read_path: read(plan) for read_path, (read, _) in READ_PATHS.items()} == expected
    past = sec.prune(sec.open_table(made, snapshot_id=old), WHERE, strict=True)
    assert ids(past.to_arrow()) == list(range(5, 25))
    still_live = set(planned_files) <= set(files_of(made))
    assert plan.is_current() == still_live
    assert past.is_current()
    now = sec.open_table(made)
    assert ids(plan.replanned().to_arrow()) == ids(sec.prune(now, WHERE).to_arrow())
    if not still_live:
        for path in set(planned_files) - set(files_of(made)):
            path.unlink()
        for held_plan in (plan, past):
            with pytest.raises(StalePlan, match=r"the plan is stale: .*\.parquet has vanished .*plan again"):
                held_plan.to_arrow()
            with pytest.raises(StalePlan):
                list(held_plan.to_batches())
        assert ids(plan.replanned().to_arrow()) == ids(sec.prune(now, WHERE).to_arrow())


@pytest.mark.parametrize("change", ["shorter", "fewer row groups"])
def test_a_data_file_that_was_overwritten_is_told(made: Any, change: str) -> None:
    plan = sec.prune(sec.open_table(made), WHERE, strict=True)
    path = next(path for path in files_of(made) if pq.read_table(path)["id"][0].as_py() == 10)
    if change == "shorter":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        size = path.stat().st_size
        pq.write_table(pq.read_table(path).slice(0, 0), path)
        path.write_bytes(path.read_bytes() + bytes(size))
    with pytest.raises(StalePlan, match="has changed"):
        plan.to_arrow()


@pytest.mark.parametrize("made", [True], indirect=True)
def test_spark_reads_the_rows_of_the_snapshot(spark: SparkSession, made: Any) -> None:
    plan = sec.prune(sec.open_table(made), WHERE, session_time_zone="UTC")
    gone = files_of(made)
    made.overwrite(rows(20))
    assert in_order(plan.to_spark(spark, via="blocks")) == list(range(5, 25))
    assert in_order(plan.to_spark(spark, via="blocks", replan=True)) == list(range(20, 25))
    for path in gone:
        path.unlink()
    with pytest.raises(PySparkException, match=r"StalePlan: the plan is stale: .*has vanished"):
        plan.to_spark(spark, via="blocks").collect()
