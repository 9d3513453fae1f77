"""What came between versions: by what commits say of themselves, and as long as the log has them."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pytest

import secateur as sec
from conformance.delta_log import inline_vector
from secateur.errors import MixedRewrite, UnknownSnapshot
from secateur.io.tables.delta.log_files import commit_name
from tests.support.formats.delta_tables import LoggedTable, numbered


def new(at: Path, since: int, **options: int) -> list[int]:
    rids: list[int] = sorted(
        sec.prune(sec.open_table(at, **options), "true", since=since).to_arrow()["rid"].to_pylist()
    )
    return rids


@pytest.fixture
def table(tmp_path: Path) -> LoggedTable:
    """Versions 1 to 3 append two rows each."""
    made = LoggedTable(tmp_path / "t", numbered(0, 0).schema)
    for i in range(3):
        made.append(numbered(2 * i, 2 * i + 2))
    return made


def test_new_rows(table: LoggedTable) -> None:
    assert [new(table.directory, version) for version in range(4)] == [[0, 1, 2, 3, 4, 5], [2, 3, 4, 5], [4, 5], []]
    assert new(table.directory, 1, version=2) == [2, 3]
    plan = sec.prune(sec.open_table(table.directory), "true", since=2)
    assert plan.snapshot == 3
    assert "snapshot 3, of 3 files, 1 came after snapshot 2" in plan.explain()


def test_statistics_written_anew_change_nothing(table: LoggedTable) -> None:
    """A commit that adds a file again, with the same rows."""
    (add,) = table.append(numbered(6, 8))
    table.log.commit({"add": {**add["add"], "dataChange": False}})
    assert new(table.directory, 4) == []
    assert new(table.directory, 3) == [6, 7]


def test_what_was_removed_and_restored_is_not_new(table: LoggedTable) -> None:
    (add,) = table.append(numbered(6, 8))
    table.log.commit({"remove": {"path": add["add"]["path"], "deletionTimestamp": 0, "dataChange": True}})
    table.log.commit(add)
    assert new(table.directory, 4) == []
    assert new(table.directory, 5) == [6, 7]  # at version 5 it was not there


def test_a_vector_leaves_its_file_as_old_as_it_is(table: LoggedTable) -> None:
    (add,) = table.append(numbered(6, 9))
    table.delete(add, inline_vector([1]))
    assert new(table.directory, 4) == []
    assert new(table.directory, 3) == [6, 8]


def test_what_optimize_writes(tmp_path: Path) -> None:
    """By the library `deltalake`."""
    at = str(tmp_path / "t")
    for i in range(4):
        deltalake.write_deltalake(at, numbered(i, i + 1), mode="append")
    deltalake.DeltaTable(at).optimize.compact()
    assert new(Path(at), 4) == []
    with pytest.raises(MixedRewrite, match=r"version=3\), ..., since=1.*since=4"):
        new(Path(at), 1)
    assert new(Path(at), 1, version=3) == [2, 3]


def test_versions_that_are_not_known(table: LoggedTable) -> None:
    for version in (4, -1):
        with pytest.raises(UnknownSnapshot, match=rf"read at version 3, and has no version {version} "):
            new(table.directory, version)
    table.log.checkpoint("classic", 3)
    for version in range(3):
        (table.directory / "_delta_log" / commit_name(version)).unlink()
    with pytest.raises(UnknownSnapshot, match=r"version 1 .* cleaned up, and 0{19}2.json is gone"):
        new(table.directory, 1)
    assert new(table.directory, 2) == [4, 5]  # the commit says it all
    assert new(table.directory, 3) == []
    add = table.file(numbered(0, 2))
    gone = {"path": "part-00000.parquet", "deletionTimestamp": 0, "dataChange": False}
    table.log.commit({"remove": gone}, {"add": {**add["add"], "dataChange": False}})
    assert new(table.directory, 3) == []
    with pytest.raises(UnknownSnapshot, match="no version 2 any more"):
        new(table.directory, 2)  # was the compacted file there?
