"""A. Coverage and staleness: what the index knows is not what the table is now."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from conformance.delta import DeltaTable
from conformance.engine import DELTA, HUDI, ICEBERG, PARQUET
from conformance.hudi import HudiTable
from conformance.iceberg import IcebergTable
from conformance.iceberg_log import Entry
from conformance.registry import bug_class
from conformance.table import Table, VersionedTable, numbered

POINTS = ["a = 3", "a = 25", "a IN (1, 14, 27)", "a > 17", "s IS NULL", "s = 'x' AND a < 12", "NOT (a < 22)", "a = 99"]


def three_files(table: Table) -> None:
    """Thirty rows in three files of two row groups."""
    files = {f"{i}.parquet": numbered(i * 10, a=range(i * 10, i * 10 + 10), s=["x", None] * 5) for i in range(3)}
    table.write(files, row_group_size=5)


def three_commits(table: Table) -> None:
    """The same rows, file by file."""
    for i in range(3):
        rows = numbered(i * 10, a=range(i * 10, i * 10 + 10), s=["x", None] * 5)
        table.write({f"{i}.parquet": rows}, row_group_size=5)


C1 = bug_class(1, "A block without an index entry", "What the index did not cover was taken for dead.")


@C1.case()
def files_that_came_since(table: Table) -> None:
    three_files(table)
    table.examine(POINTS, look_up=["a", "s"])
    nothing = numbered(30, a=[1], s=["x"])[:0]
    table.write({"late.parquet": numbered(30, a=[3, 25, 99], s=["x", None, "x"]), "empty.parquet": nothing})
    table.ask_around_a_refresh(POINTS, "files came")


@C1.case()
def columns_that_came_since(table: Table) -> None:
    three_files(table)
    table.index(look_up=["a"])
    table.write({"late.parquet": numbered(30, a=[3, 4], s=["x", "y"], later=[7, None])})
    questions = ["later = 7", "later IS NULL", "NOT later = 7", "later <=> NULL AND a = 3", "later != 7 OR a = 3"]
    table.ask_around_a_refresh(questions, "files with one column more came")


C2 = bug_class(
    2,
    "An index of another snapshot",
    "A scan of the past, or of a state that was rolled back, was pruned by the index of the present.",
)


@C2.case(DELTA, HUDI)
def a_past_version(table: VersionedTable) -> None:
    three_commits(table)
    table.index(look_up=["a"])
    before = table.snapshot()
    table.delete(0, 5, 29)
    table.write({"new.parquet": numbered(30, a=[0, 5, 40])})
    table.ask_at(before, POINTS, "the past, by the index of then")
    table.refresh()
    table.ask_at(before, POINTS, "the past, by the current index")
    table.ask(POINTS, "the present")


@C2.case(ICEBERG)
def the_past_and_a_rollback(table: IcebergTable) -> None:
    three_files(table)
    past = table.snapshot()
    table.rewrite(["0.parquet", "1.parquet"], {"new.parquet": numbered(40, a=[3, 14, 100], s=[None, "x", "x"])})
    table.index(look_up=["a"])
    questions = [*POINTS, "a = 100"]
    table.ask(questions, "with a current index")
    table.ask_at(past, questions, "at the past, with a current index")
    now = table.snapshot()
    table.roll_back(past)
    table.ask_around_a_refresh(questions, "a rollback")
    table.ask_at(now, questions, "at what was rolled back")
    table.write({"later.parquet": numbered(50, a=[3, 101], s=["y", None])})
    table.ask([*questions, "a = 101"], "after files came on top of the rollback")


@C2.case()
def a_commit_between_plan_and_read(table: Table) -> None:
    three_files(table)
    table.index(look_up=["a"])
    late = {"late.parquet": numbered(30, a=[3, 25, 99], s=["x", None, "x"])}
    table.ask_across(lambda: table.write(late), POINTS, "files came between plan and read")


@C2.case(PARQUET)
def files_of_another_table_under_the_same_names(table: Table) -> None:
    three_files(table)
    table.index(look_up=["a"])
    other = {f"{i}.parquet": numbered(i * 10, a=[25] * 10, s=pa.nulls(10, pa.string())) for i in range(3)}
    table.rewrite(list(other), other)
    table.ask_around_a_refresh(POINTS, "all files were others")


C3 = bug_class(3, "A file overwritten under its path", "Statistics of the former bytes were believed.")


@C3.case()
def another_file_of_equal_size(table: Table) -> None:
    files = {"a.parquet": numbered(a=[1, 2]), "b.parquet": numbered(2, a=[3, 4])}
    table.write(files, compression="none", use_dictionary=False)
    questions = ["a = 1", "a = 2", "a >= 7"]
    table.examine(questions, look_up=["a"])
    table.rewrite(["a.parquet"], {"a.parquet": numbered(a=[7, 8])}, compression="none", use_dictionary=False)
    table.ask_around_a_refresh(questions, "the overwrite")


@C3.case(PARQUET)
def another_file_of_equal_time(table: Table) -> None:
    """A copy that keeps the time of modification has another size, or no other rows."""
    table.write({"a.parquet": numbered(a=[1, 2]), "b.parquet": numbered(2, a=[3, 4])})
    table.index(look_up=["a"])
    before = (table.directory / "a.parquet").stat()
    table.rewrite(["a.parquet"], {"a.parquet": numbered(4, a=[7, 8, 9])})
    os.utime(table.directory / "a.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
    table.ask_around_a_refresh(["a = 1", "a = 2", "a >= 7"], "the overwrite")


@C3.case(PARQUET)
def another_file_of_equal_size_and_time(table: Table) -> None:
    """As `rsync -t`, `cp -p` and `tar -x` leave it, and builds that set all times to 0."""
    files = {"a.parquet": numbered(a=[1, 2]), "b.parquet": numbered(2, a=[3, 4])}
    table.write(files, compression="none", use_dictionary=False)
    questions = ["a = 1", "a = 2", "a >= 7", "a = 12"]
    table.examine(questions, look_up=["a"])
    path = table.directory / "a.parquet"
    for values in ([7, 8], [11, 12]):
        before = path.stat()
        table.rewrite(["a.parquet"], {"a.parquet": numbered(a=values)}, compression="none", use_dictionary=False)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
        table.ask_around_a_refresh(questions, "the overwrite")


C4 = bug_class(
    4, "A part of the index that cannot be read", "The part was passed over, and the rest was believed to be the whole."
)
HARMS: dict[str, Callable[[Path, bytes], object]] = {
    "gone": lambda path, data: path.unlink(),
    "cut": lambda path, data: path.write_bytes(data[: len(data) // 2]),
    "empty": lambda path, data: path.write_bytes(b""),
    "garbled": lambda path, data: path.write_bytes(data[:16] + bytes(b ^ 0x55 for b in data[16:-32]) + data[-32:]),
}


@C4.case()
def every_file_of_the_index_is_harmed(table: Table) -> None:
    three_files(table)
    table.index(look_up=["a", "s"], clustered_by=["a"])
    for path in table.index_files():
        data = path.read_bytes()
        for name, harm in HARMS.items():
            harm(path, data)
            table.ask(POINTS[1:6], f"{path.parent.name}/{path.suffix} is {name}")
        path.write_bytes(data)


@C4.case()
def files_of_the_index_change_places(table: Table) -> None:
    table.write({f"{i:02}.parquet": numbered(i * 2, a=[i, i + 100], s=["x", None]) for i in range(12)})
    table.index(look_up=["a"])
    by_size: dict[tuple[Path, int], list[Path]] = {}
    for path in table.index_files():
        by_size.setdefault((path.parent, path.stat().st_size), []).append(path)
    for first, second in (paths[:2] for paths in by_size.values() if len(paths) > 1):
        held = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(held)
    questions = [f"a IN (1000, {i}, {i + 100})" for i in range(12)]
    table.ask([*questions, "a IS NOT NULL AND a <> 7", "s IS NULL AND a > 5"], "files changed places")


C5 = bug_class(5, "Compaction", "Addresses of rows that had moved were looked up.")


@C5.case()
def all_rows_move(table: Table) -> None:
    three_files(table)
    table.index(look_up=["a"])
    whole = table.rows.sort_by([("s", "ascending")])
    table.rewrite(list(table.files), {"1.parquet": whole}, row_group_size=7)
    table.ask_around_a_refresh(POINTS, "the compaction")


@C5.case()
def some_files_become_one(table: Table) -> None:
    three_files(table)
    table.index(look_up=["a"])
    whole = table.rows.slice(10).sort_by([("a", "descending")])
    table.rewrite(["1.parquet", "2.parquet"], {"3.parquet": whole}, row_group_size=4)
    table.delete(12, 13, 27)
    table.ask_around_a_refresh([*POINTS, "a = 12", "a = 27"], "the compaction")


C6 = bug_class(
    6,
    "Metadata written anew in another form",
    "Statistics that a checkpoint of the log no longer had were read as statistics that rule out everything.",
)


@C6.case(ICEBERG)
def manifests_are_rewritten(table: IcebergTable) -> None:
    three_commits(table)
    table.delete(3)
    table.index(look_up=["a"])

    def one_each(entries: list[Entry]) -> list[list[Entry]]:
        return [[entry] for entry in entries]

    counts, bounds = ("value_counts", "null_value_counts", "nan_value_counts"), ("lower_bounds", "upper_bounds")
    table.rewrite_manifests(lambda entries: [entries])
    table.ask(POINTS, "manifests became one")
    table.rewrite_manifests(one_each, forget=counts)
    table.ask_around_a_refresh(POINTS, "every file got its manifest, without counts")
    table.rewrite_manifests(lambda entries: [entries[:2], entries[2:]], forget=bounds)
    table.drop_index()
    table.ask(POINTS, "no file has bounds, and there is no index")
    late = numbered(30, a=[3, 25, 99], s=["x", None, "x"])
    table.write({"late.parquet": late}, metrics=bounds)
    table.ask(POINTS, "some files have bounds and no counts")


@C6.case(DELTA)
def the_log_is_checkpointed(table: DeltaTable) -> None:
    three_commits(table)
    table.write({"late.parquet": numbered(30, a=[3, 25, 99], s=["x", None, "x"])}, stats=False)
    table.delete(3)
    table.ask(POINTS, "some files have statistics")
    table.index(look_up=["a"])
    for kind in ("classic", "parts", "json", "parquet", "inline"):
        table.log.checkpoint(kind)
        table.ask_around_a_refresh(POINTS, f"a checkpoint: {kind}")
        table.write({f"{kind}.parquet": numbered(40, a=[3], s=[kind])})
        table.delete(40)
        table.ask(POINTS, f"commits after a checkpoint: {kind}")
    table.log.checkpoint("json")
    for version in range(table.log.version + 1):
        table.log.path(version).unlink()
    table.drop_index()
    table.ask(POINTS, "a checkpoint alone")


@C6.case(HUDI)
def the_timeline_is_archived(table: HudiTable) -> None:
    """Of old commits, the files stay and their names alone tell the instants."""
    three_files(table)
    table.rewrite(["1.parquet"], {"1.parquet": numbered(10, a=range(10, 20), s=["z"] * 10)}, row_group_size=5)
    table.ask(POINTS, "the first commits are there")
    table.index(look_up=["a"])
    table.archive(keep=2)
    table.ask_around_a_refresh(POINTS, "the first commits were archived")
    table.write({"late.parquet": numbered(30, a=[3, 25, 99], s=["x", None, "x"])})
    table.delete(3, 25)
    table.archive(keep=1)
    table.ask_around_a_refresh(POINTS, "all commits but the last were archived")
    table.drop_index()
    table.ask(POINTS, "there is no index")


@C6.case(PARQUET)
def a_summary_file_is_stale(table: Table) -> None:
    """``_metadata``, which some writers leave: the footers of all files, as they were then."""
    three_files(table)
    footers = []
    for name in table.files:
        footers.append(pq.read_metadata(table.directory / name))
        footers[-1].set_file_path(name)
    pq.write_metadata(table.rows.schema, table.directory / "_metadata", metadata_collector=footers)
    table.examine(POINTS, look_up=["a"])
    table.rewrite(["0.parquet"], {"0.parquet": numbered(a=[25, 99, 14], s=["y", None, "x"])})
    table.ask_around_a_refresh(POINTS, "the summary describes another file")


C7 = bug_class(
    7,
    "A build beside appends and drops",
    "Commits that met left an index that covered what it had not seen, or took it away from under a reader.",
)


@C7.case()
def the_index_goes_between_plan_and_read(table: Table) -> None:
    three_files(table)
    table.index(look_up=["a"])
    table.ask_across(table.drop_index, POINTS, "the index went between plan and read")
    table.ask(POINTS, "after the drop")


@C7.case()
def files_come_while_the_index_is_built(table: Table) -> None:
    three_files(table)
    late = numbered(30, a=[3, 25, 99], s=["x", None, "x"])
    table.index_during(lambda: table.write({"late.parquet": late}), look_up=["a"])
    table.ask_around_a_refresh(POINTS, "a build and an append met")
    table.index(look_up=["s"])
    table.ask(POINTS, "after the index was built anew")
