"""Some Parquet files as a table: lists, patterns, and datasets of pyarrow."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import IndexNotWritable, InvalidParquet, TableNotFound, UnsupportedTable
from secateur.io.tables.directory.chosen import Matching, matching
from tests.support.profiles import examples


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three days of two files each; every file has 20 ids in four row groups."""
    for number in range(6):
        folder = tmp_path / "lake" / f"day={number // 2}"
        folder.mkdir(parents=True, exist_ok=True)
        ids = pa.table({"id": pa.array(range(20 * number, 20 * number + 20), pa.int64())})
        pq.write_table(ids, folder / f"part-{number}.parquet", row_group_size=5)
    return tmp_path / "lake"


def ids(table: object, predicate: str = "true") -> list[int]:
    plan = sec.prune(table, predicate, strict=True)  # type: ignore[arg-type]
    read = sorted(plan.to_arrow()["id"].to_pylist())
    assert plan.count() == len(read)
    return read


def test_a_list_of_files(lake: Path, tmp_path: Path) -> None:
    files = [lake / "day=1" / "part-3.parquet", str(lake / "day=0" / "part-0.parquet")]
    table = sec.open_table(files, index_location=str(tmp_path / "index"))
    assert ids(table) == [*range(20), *range(60, 80)]
    sec.build_index(table, bloom=["id"])
    plan = sec.prune(table, "id IN (7, 30, 61)", strict=True)
    assert (len(plan.blocks), ids(table, "id IN (7, 30, 61)")) == (2, [7, 61])
    assert plan.report.index.startswith("snapshot 1")
    (lake / "day=0" / "part-0.parquet").unlink()
    with pytest.raises(TableNotFound, match=r"no such file: .*part-0"):
        sec.prune(table, "true")


def test_a_single_file(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lake)
    elsewhere = str(tmp_path / "index")
    for place in (lake / "day=1" / "part-3.parquet", "day=1/part-3.parquet"):
        table = sec.open_table(place, index_location=elsewhere)
        assert ids(table) == list(range(60, 80))
        sec.build_index(table, bloom=["id"])
        assert ids(table, "id IN (7, 61)") == [61]
        assert sec.prune(table, "id = 61", strict=True).report.index.startswith("snapshot")
    sec.build_index(sec.open_table(lake / "day=1"))
    assert sec.prune(lake / "day=1" / "part-3.parquet", "id = 61").report.index.startswith("snapshot 1")
    (lake / "notes.txt").write_text("no rows")
    with pytest.raises(InvalidParquet, match=r"notes\.txt: .*not a Parquet file"):
        sec.prune(lake / "notes.txt", "id = 61")


def test_the_index_of_a_directory_serves_its_files_and_is_not_theirs(lake: Path) -> None:
    sec.build_index(sec.open_table(lake))
    some = sec.open_table([lake / "day=2" / "part-4.parquet"], index_location=str(lake / "_secateur"))
    assert ids(some, "id < 85") == [80, 81, 82, 83, 84]
    table = sec.open_table([lake / "day=1" / "part-2.parquet", lake / "day=2" / "part-4.parquet"])
    assert sec.prune(table, "id = 41", strict=True).report.index.startswith("snapshot 1")
    for change in (sec.build_index, sec.drop_index):
        with pytest.raises(IndexNotWritable, match="index_location="):
            change(table)
    assert ids(sec.open_table(lake), "id = 41") == [41]


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [
        ("day=1/*.parquet", [2, 3]),
        ("*/part-[0-2].parquet", [0, 1, 2]),
        ("**/part-?.parquet", range(6)),
        ("day=?/part-[!0-3].parquet", [4, 5]),
        ("*.parquet", []),
    ],
)
def test_patterns(lake: Path, pattern: str, numbers: list[int]) -> None:
    expected = [i for n in numbers for i in range(20 * n, 20 * n + 20)]
    table = sec.open_table(f"{lake}/{pattern}", schema=pa.schema([("id", pa.int64())]))
    assert ids(table) == expected
    assert "day" not in sec.prune(table, "true").to_arrow().column_names


def test_an_empty_file_matches_no_pattern(lake: Path) -> None:
    (lake / "day=1" / "part-9.parquet").touch()
    assert ids(sec.open_table(lake / "day=1" / "*.parquet"), "id < 62") == [*range(40, 60), 60, 61]


def test_a_pattern_follows_its_files(lake: Path, tmp_path: Path) -> None:
    table = sec.open_table(f"{lake}/day=1/*.parquet", index_location=str(tmp_path / "index"))
    sec.build_index(table)
    pq.write_table(pa.table({"id": pa.array([1000], pa.int64())}), lake / "day=1" / "new.parquet")
    assert ids(table, "id > 70") == [*range(71, 80), 1000]
    assert sec.refresh_index(table).files_added == 1


def test_a_name_with_wildcards_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "a[1]*").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a[1]*" / "x.parquet")
    assert ids(sec.open_table(tmp_path / "a[1]*")) == [1]


NAMES = st.text("ab.[*", min_size=1, max_size=4)


@examples(200)
@given(st.text("ab.*?", min_size=1, max_size=5).filter(lambda text: "**" not in text), st.lists(NAMES, max_size=6))
def test_wildcards_mean_what_a_shell_means(pattern: str, names: list[str]) -> None:
    choice = matching(f"/nowhere-at-all/{pattern}", None)
    assert (choice is None) == (re.search(r"[*?]", pattern) is None)
    if choice is not None:
        assert isinstance(choice.layout, Matching)
        matched = pc.match_substring_regex(pa.array(names, pa.string()), choice.layout.pattern).to_pylist()
        assert matched == [fnmatch.fnmatchcase(name, pattern) for name in names]


def test_a_dataset_with_its_partitions(lake: Path, tmp_path: Path) -> None:
    data = ds.dataset(lake, partitioning="hive")
    table = sec.open_table(data, index_location=str(tmp_path / "index"))
    sec.build_index(table)
    for predicate, expression in (
        ("day = 1 AND id < 50", (pc.field("day") == 1) & (pc.field("id") < 50)),
        ("day <> 1 AND id % 7 = 0", (pc.field("day") != 1) & (pc.field("id") >= 0)),
    ):
        read = sec.prune(table, predicate, strict=True).to_arrow()
        expected = data.to_table(filter=expression)
        if "%" in predicate:
            expected = expected.filter([value % 7 == 0 for value in expected["id"].to_pylist()])
        assert read.sort_by("id").equals(expected.sort_by("id"))
    assert sec.prune(table, "day = 1").report.stages[0].after.files == 2
    with pytest.raises(UnsupportedTable, match="datasets of Parquet"):
        sec.open_table(ds.dataset(data.to_table()))


def test_what_is_no_choice(lake: Path) -> None:
    with pytest.raises(ValueError, match="at least one"):
        sec.open_table([])
    with pytest.raises(ValueError, match="twice"):
        sec.open_table([lake / "a.parquet", lake / "a.parquet"])
    with pytest.raises(ValueError, match="no snapshots"):
        sec.open_table([lake / "a.parquet"], version=1)
    with pytest.raises(ValueError, match="one filesystem"):
        sec.open_table([str(lake / "a.parquet"), "s3://bucket/b.parquet"])
