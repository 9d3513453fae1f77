"""Tables of the files whose names match a glob. Spark's answers to the same: tests/spark/test_glob.py."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

import secateur as sec
from secateur.cli import main
from secateur.errors import InvalidOption, InvalidParquet
from secateur.io.tables.directory.glob import regex_of, require_glob
from tests.support.tables import write_file


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two partitions with two Parquet files, and a foreign file in one whose value is no number."""
    root = tmp_path / "lake"
    for number in range(4):
        write_file(root / f"day={number // 2}" / f"part-{number}.parquet", {"id": [10 * number, 10 * number + 1]})
    (root / "day=x").mkdir()
    (root / "day=x" / "notes.csv").write_text("id\n7\n")
    return root


def ids(plan: sec.Scan) -> list[int]:
    read: list[int] = sorted(plan.to_arrow()["id"].to_pylist())
    assert plan.count() == len(read)
    return read


def test_only_files_whose_names_match_are_read(lake: Path) -> None:
    with pytest.raises(InvalidParquet, match=r"notes\.csv: .*glob='\*\.parquet'"):
        sec.prune(lake, "id > 0")
    assert ids(sec.prune(lake, "id > 0", glob="*.parquet")) == [1, 10, 11, 20, 21, 30, 31]
    assert ids(sec.prune(sec.open_table(lake, glob="part-[!03].*"), "id > 0")) == [10, 11, 20, 21]
    assert ids(sec.prune(f"{lake}/day=[01]/*", "id > 0", glob="*{1,3}.parquet")) == [10, 11, 30, 31]
    files = [lake / "day=0" / "part-0.parquet", lake / "day=1" / "part-2.parquet"]
    assert ids(sec.prune(files, "true", glob="*0*")) == [0, 1]
    # as in Spark, a directory without a matching file still says that the column is no number
    assert sec.open_table(lake, glob="*.parquet").listing(dt.UTC).partitions.fields[0].type == pa.string()


def test_a_glob_is_for_locations_of_parquet_files(lake: Path, tmp_path: Path) -> None:
    table = sec.open_table(lake, glob="*.parquet")
    assert pickle.loads(pickle.dumps(table)).listing(dt.UTC).paths.equals(table.listing(dt.UTC).paths)
    with pytest.raises(ValueError, match="glob= is for a table named by its location"):
        sec.prune(table, "id = 1", glob="*.parquet")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "delta" / "_delta_log" / f"{0:020}.json").write_text("{}")
    with pytest.raises(ValueError, match="leave out glob: the metadata"):
        sec.open_table(tmp_path / "delta", glob="*.parquet")


def test_the_index_of_a_glob_is_refreshed_with_that_glob(lake: Path) -> None:
    table = sec.open_table(lake, glob="*.parquet")
    assert sec.build_index(table, bloom=["id"]).files == 4
    plan = sec.prune(table, "id = 21", strict=True)
    assert (ids(plan), plan.report.index) == ([21], "snapshot 1, 1 segment, covers 4 of 4 files")
    write_file(lake / "day=1" / "part-9.parquet", {"id": [90]})
    assert sec.refresh_index(sec.open_table(lake, glob="*.parquet")).index.files == 5
    for other in (None, "part-[0-3].*"):
        with pytest.raises(InvalidOption, match=r"is of the files named '\*\.parquet' .*glob='\*\.parquet'"):
            sec.refresh_index(sec.open_table(lake, glob=other))
    assert ids(sec.prune(sec.open_table(lake, glob="part-[0-3].*"), "id >= 21", strict=True)) == [21, 30, 31]
    (lake / "day=x" / "notes.csv").unlink()
    sec.build_index(sec.open_table(lake))
    with pytest.raises(InvalidOption, match=r"is of all files .*with no glob"):
        sec.refresh_index(table)


def test_the_command_line_takes_a_glob(lake: Path) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(main, list(arguments))
        assert done.exit_code == 0, done.output
        return done.output

    run("index", str(lake), "--bloom", "id", "--glob", "*.parquet")
    assert "part-2.parquet" in run("prune", str(lake), "id = 21", "--glob", "*.parquet", "--files")
    run("watch", str(lake), "--once", "--glob", "*.parquet")
    run("verify", str(lake), "--glob", "*.parquet")


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("*.parquet", ["a.parquet", ".parquet", "a\n.parquet"], ["a.parquet.crc", "aparquet", "A.PARQUET"]),
        ("a?c", ["abc", "açc"], ["ac", "abbc"]),
        ("[a-c^]1", ["a1", "^1"], ["d1"]),
        ("[!a-c]1", ["d1", "!1"], ["a1"]),
        ("[^a-c]1", ["d1"], ["a1"]),
        ("{ab,c*}.p", ["ab.p", "c.p", "cxx.p"], ["a.p", "{ab,c}.p"]),
        ("a,b}", ["a,b}"], ["a"]),
        (r"a\*b", ["a*b"], ["axb"]),
        (r"\d", ["7"], ["d"]),  # an escape is that of the regular expression, as in Hadoop
        ("a|b", ["a|b"], ["a", "b"]),
        ("^a$", ["^a$"], ["a"]),
        ("", [""], ["a"]),
    ],
)
def test_globs_mean_what_they_mean_to_hadoop(glob: str, matching: list[str], others: list[str]) -> None:
    names = pa.array([*matching, *others])
    assert names.filter(pc.match_substring_regex(names, regex_of(glob))).to_pylist() == matching


@pytest.mark.parametrize("glob", ["[a", "{a", "a\\", "[a[b]", "[b-a]", "[{]"])
def test_what_hadoop_refuses_is_refused(glob: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="glob"):
        require_glob(glob)
    with pytest.raises(InvalidOption, match="glob"):
        sec.open_table(tmp_path, glob=glob)
