"""Which files of a Hudi table are live, and what is refused: by tables written by the specification."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import secateur as sec
from secateur.errors import SecateurError, TableNotFound, UnknownSnapshot, UnsupportedTable
from tests.support.formats.written_hudi import WrittenTable, at

MakeTable = Callable[..., WrittenTable]


@pytest.fixture(params=[5, 6, 9])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeTable:
    """Makes a table with either layout of the timeline."""

    def made(kind: str = "COPY_ON_WRITE", **properties: str) -> WrittenTable:
        given = {name.replace("_", "."): value for name, value in properties.items()}
        return WrittenTable(tmp_path / "t", request.param, {"hoodie.table.type": kind, **given})

    return made


def read(table: WrittenTable, **options: Any) -> list[int]:
    rids: list[int] = sorted(
        sec.prune(sec.open_table(table.directory, **options), "true").to_arrow()["rid"].to_pylist()
    )
    return rids


def test_the_newest_file_of_every_group(make: MakeTable) -> None:
    table = make()
    first = table.write({"a": [1, 2], "b": [3]})
    second = table.write({"a": [1, 2, 4]})
    third = table.write({"c": [5]}, "replacecommit", replaced=["b"])
    assert read(table) == [1, 2, 4, 5]
    assert [read(table, version=instant) for instant in (first, second, third)] == [
        [1, 2, 3],
        [1, 2, 3, 4],
        [1, 2, 4, 5],
    ]
    assert read(table, as_of=str(second + 999)) == [1, 2, 3, 4]
    assert read(table, as_of="2026-01-01T00:10:02") == [1, 2, 3, 4]
    assert read(table, as_of="2026-01-01T02:10:02+02:00") == [1, 2, 3, 4]
    plan = sec.prune(sec.open_table(table.directory), "rid = 5")
    assert (plan.snapshot, plan.files) == (third, [table.base("c", third)])


def test_a_handle_follows_the_timeline(make: MakeTable) -> None:
    table = make()
    table.write({"a": [1, 2]})
    opened = sec.open_table(table.directory)
    sec.build_index(opened, bloom=["rid"])
    before = opened.snapshot()
    assert opened.snapshot() is before
    table.write({"a": [1, 2, 3], "b": [9]})
    assert sorted(sec.prune(opened, "rid > 1").to_arrow()["rid"].to_pylist()) == [2, 3, 9]
    sec.refresh_index(opened)
    plan = sec.prune(opened, "rid = 9", strict=True)
    assert plan.to_arrow()["rid"].to_pylist() == [9]
    sec.verify_index(opened)


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_what_is_under_way_does_not_count(make: MakeTable, state: str) -> None:
    table = make()
    first = table.write({"a": [1]})
    second = table.write({"a": [1, 2], "b": [3]})
    table.commit_file(second).rename(
        table.timeline / f"{second}.{'commit.requested' if state == 'requested' else state}"
    )
    assert read(table) == [1]
    assert sec.open_table(table.directory).snapshot().id == first


def test_files_of_archived_commits_count(make: MakeTable) -> None:
    table = make()
    first = table.write({"a": [1], "b": [2], "gone": [9]})
    table.write({"c": [3]})
    table.write({"a": [1, 4]})
    table.commit_file(first).unlink()
    assert read(table) == [1, 2, 3, 4, 9]
    with pytest.raises(UnknownSnapshot, match=f"active timeline begins at {at(2)}"):
        read(table, as_of=str(first))
    with pytest.raises(UnknownSnapshot, match=f"no complete commit at {first}"):
        read(table, version=first)


def test_a_commit_with_a_savepoint_is_no_start(make: MakeTable) -> None:
    """Commits between it and the rest of the timeline may have been archived."""
    table = make()
    first = table.write({"a": [1]})
    second = table.write({"b": [2]})
    table.write({"c": [3]})
    (table.timeline / f"{first}{'' if table.version < 8 else f'_{first + 600}'}.savepoint").touch()
    table.commit_file(second).unlink()
    assert read(table) == [1, 2, 3]


def test_a_hidden_partition_is_one(make: MakeTable) -> None:
    """Spark passes over names that begin so, Hudi does not: its directories are marked."""
    table = make()
    table.mark("_p")
    (table.directory / "copy").mkdir()
    instant = table.write({"_p/a": [1]})
    table.put(f"copy/a_1-0-1_{instant}.parquet", [1])
    assert read(table) == [1]


# ---- log files -------------------------------------------------------------------------------------------------------


def test_log_files_are_refused_or_left_out_by_name(make: MakeTable) -> None:
    table = make("MERGE_ON_READ")
    first = table.write({"a": [1], "b": [2]}, "deltacommit")
    assert read(table) == [1, 2]
    table.append(["a"])
    with pytest.raises(UnsupportedTable, match=r"1 of its file groups have log files.*Compact it.*read_optimized=True"):
        sec.open_table(table.directory)
    assert read(table, read_optimized=True) == [1, 2]
    if table.version >= 8:  # else the name of a log file does not tell when it came
        assert read(table, version=first) == [1, 2]
    table.write({"a": [1, 3]})  # a compaction
    assert read(table) == [1, 2, 3]
    table.append(["c"])  # has log files alone
    with pytest.raises(UnsupportedTable, match="log files"):
        sec.open_table(table.directory)


def test_a_log_file_that_is_gone_counts(make: MakeTable) -> None:
    table = make("MERGE_ON_READ")
    table.write({"a": [1]}, "deltacommit")
    table.append(["a"])
    for path in table.directory.glob(".a_*"):
        path.unlink()
    with pytest.raises(UnsupportedTable, match="log files"):
        sec.open_table(table.directory)


def test_a_log_file_that_came_while_its_group_was_compacted(tmp_path: Path) -> None:
    """It was complete only after the compaction had begun, so the compacted file lacks its rows."""
    table = WrittenTable(tmp_path / "t", 9, {"hoodie.table.type": "MERGE_ON_READ"})
    table.write({"a": [1]}, "deltacommit")
    table.append(["a"])
    (late,) = table.timeline.glob(f"{at(2)}_*")
    late.rename(table.timeline / f"{at(2)}_{at(9)}.deltacommit")
    table.write({"a": [1, 2]})
    with pytest.raises(UnsupportedTable, match="log files"):
        sec.open_table(table.directory)


def test_log_files_that_no_row_is_read_from(make: MakeTable) -> None:
    """Of changes, and of a commit that failed: but the older layout does not name that in the file."""
    table = make("MERGE_ON_READ")
    table.write({"a": [1]}, "deltacommit")
    table.put(table.log("a", at(1)) + "-cdc")
    table.put("." + table.log("a", at(2)) + ".crc")
    assert read(table) == [1]
    table.put(table.log("a", at(2)))
    (table.timeline / f"{at(2)}.deltacommit.inflight").touch()
    if table.version >= 8:
        assert read(table) == [1]
    else:
        with pytest.raises(UnsupportedTable, match="log files"):
            sec.open_table(table.directory)


# ---- trouble ---------------------------------------------------------------------------------------------------------


def refused(table: WrittenTable, kind: type[SecateurError], message: str, **options: Any) -> None:
    with pytest.raises(kind, match=message):
        read(table, **options)


def test_a_gap_in_the_timeline(make: MakeTable) -> None:
    table = make()
    table.write({"a": [1]})
    second = table.write({"a": [1, 2], "b": [3]})
    table.write({"a": [1, 2, 4]})
    lost = table.commit_file(second)
    data = lost.read_bytes()
    lost.unlink()
    refused(table, TableNotFound, rf"_{second}\.parquet was written by the commit {second}, of which .* has nothing")
    for path in table.directory.glob(f"*_{second}.parquet"):
        path.unlink()
    refused(table, TableNotFound, f"came in the place of a file of the commit {second}.*the timeline has a gap")
    lost.write_bytes(data)
    refused(table, TableNotFound, rf"b_1-0-1_{second}\.parquet is gone")


def test_a_base_file_that_is_gone(make: MakeTable) -> None:
    table = make()
    first = table.write({"a": [1], "b": [2]})
    second = table.write({"a": [1, 3]})
    (table.directory / table.base("b", first)).unlink()
    refused(table, TableNotFound, rf"b_1-0-1_{first}\.parquet is gone, or not in a partition.*commit {first} wrote it")
    table.put(table.base("b", first), [2])
    (table.directory / table.base("a", second)).unlink()  # the older file of the group is still there
    refused(table, TableNotFound, rf"a_1-0-1_{second}\.parquet is gone")


def test_an_instant_whose_files_were_cleaned(make: MakeTable) -> None:
    table = make()
    first = table.write({"a": [1], "b": [2]})
    second = table.write({"a": [1, 3]})
    table.write({"c": [2]}, "replacecommit", replaced=["b"])
    (table.directory / table.base("a", first)).unlink()
    assert read(table) == [1, 2, 3]
    assert read(table, version=second) == [1, 2, 3]
    refused(table, TableNotFound, f"_{first}.parquet is gone", version=first)
    (table.directory / table.base("b", first)).unlink()
    assert read(table) == [1, 2, 3]
    refused(table, TableNotFound, f"b_1-0-1_{first}.parquet is gone", version=second)


def test_files_of_archived_commits_that_were_cleaned(make: MakeTable) -> None:
    table = make()
    first = table.write({"a": [1], "b": [2]})
    second = table.write({"c": [3]})
    table.write({"a": [1, 4]})
    table.write({}, "replacecommit", replaced=["b"])
    table.commit_file(first).unlink()
    assert read(table, version=second) == [1, 2, 3]
    (table.directory / table.base("b", first)).unlink()
    refused(table, UnknownSnapshot, "that of the file group b for one: they have been cleaned", version=second)
    table.put(table.base("b", first), [2])
    (table.directory / table.base("a", first)).unlink()
    refused(table, UnknownSnapshot, "that of the file group a for one: they have been cleaned", version=second)
    assert read(table) == [1, 3, 4]


def test_two_base_files_of_one_commit(make: MakeTable) -> None:
    """Those that a commit does not name were written by a task that failed; without the commit none can be chosen."""
    table = make()
    first = table.write({"a": [1]})
    table.put(f"a_2-0-7_{first}.parquet", [1, 1])
    assert read(table) == [1]
    table.write({"b": [2]})
    table.commit_file(first).unlink()
    refused(table, TableNotFound, "two base files like a_.*which of them counts is not known")


@pytest.mark.parametrize("harm", ["cut", "empty", "other", "null"])
def test_a_broken_commit(make: MakeTable, harm: str) -> None:
    table = make()
    table.write({"a": [1]})
    file = table.commit_file(table.write({"a": [1, 2]}))
    data = file.read_bytes()
    file.write_bytes({"cut": data[:-30], "empty": b"", "other": b'{"a": 1}', "null": b"null"}[harm])
    refused(table, TableNotFound, f"cannot read .*{file.name}")


def test_what_is_not_known_is_refused_by_name(make: MakeTable) -> None:
    table = make()
    table.write({"a": [1]})
    properties = table.directory / ".hoodie/hoodie.properties"
    text = properties.read_text()
    version = f"hoodie.table.version={table.version}"
    other = 2 if table.version < 8 else 1
    for change, kind, message in [
        (text.replace(version, "hoodie.table.version=7"), UnsupportedTable, "version 7; versions 5, 6, 8, 9 are known"),
        (text.replace(version, "hoodie.table.version=11"), UnsupportedTable, "version 11"),
        (text.replace(version, ""), TableNotFound, "hoodie.table.version in .* is None"),
        (text.replace("layout.version=", f"layout.version={other}#"), TableNotFound, "layout.version"),
        (text.replace("COPY_ON_WRITE", "X"), TableNotFound, "'X'"),
        (text + "hoodie.table.base.file.format=ORC\n", UnsupportedTable, "ORC"),
        (text + "hoodie.table.format=iceberg\n", UnsupportedTable, "as iceberg does"),
        (text + "hoodie.bootstrap.base.path=/x\n", UnsupportedTable, "bootstrapped"),
        (
            text
            + "hoodie.datasource.write.drop.partition.columns=true\nhoodie.table.partition.fields=p\n"
            + "hoodie.table.keygenerator.type=TIMESTAMP\n",
            UnsupportedTable,
            "TIMESTAMP does not write their values in paths",
        ),
    ]:
        properties.write_text(change)
        refused(table, kind, message)
    properties.rename(properties.with_suffix(".properties.backup"))
    (table.directory / ".hoodie/hoodie.properties.backup").write_text(text)
    assert read(table) == [1]
    (table.directory / ".hoodie/hoodie.properties.backup").unlink()
    refused(table, TableNotFound, r"without hoodie\.properties")


def test_an_unknown_action_is_refused_by_name(make: MakeTable) -> None:
    table = make()
    table.write({"a": [1]})
    (table.timeline / f"{at(5)}.teleport").touch()
    refused(table, UnsupportedTable, f"{at(5)}.teleport, which is not known here")


def test_files_of_another_format_are_refused(make: MakeTable) -> None:
    table = make()
    table.commit(at(1), [{"path": f"a.parquet_{at(1)}_hudiext", "fileId": "a.parquet", "prevCommit": "null"}])
    refused(table, UnsupportedTable, "another table format has written")


def test_new_rows_are_found_by_their_commit_time(make: MakeTable) -> None:
    table = make()
    first = table.write({"a": [1]})
    table.write({"a": [1, 2]})
    with pytest.raises(UnsupportedTable, match=f"_hoodie_commit_time > '{first}'"):
        sec.prune(sec.open_table(table.directory), "true", since=first)


def test_options_of_other_formats(make: MakeTable) -> None:
    table = make()
    first = table.write({"a": [1]})
    for options in ({"snapshot_id": 1}, {"ref": "main"}, {"version": first, "as_of": "2026-01-01"}, {"as_of": "x"}):
        with pytest.raises(ValueError):
            sec.open_table(table.directory, **options)  # type: ignore[arg-type]
    (table.directory / "x.parquet").touch()
    with pytest.raises(ValueError, match="no Hudi table"):
        sec.open_table([table.directory / table.base("a", first)], read_optimized=True)


def test_a_table_without_commits(make: MakeTable) -> None:
    table = make(hoodie_table_create_schema='{"type":"record","name":"t","fields":[{"name":"rid","type":"long"}]}')
    assert read(table) == []
    table.put(table.base("a", at(1)), [1])
    refused(table, TableNotFound, "has nothing")
