"""Tables that Hudi's own writer wrote (`tests/data/hudi`, by `make_hudi`), and what its reader read."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import secateur as sec
from secateur.cli import main
from secateur.errors import SecateurError, TableNotFound, UnsupportedTable
from tests.support.profiles import sweep, takes_seconds

DATA = Path(__file__).parents[4] / "data" / "hudi"
NAMES = ["cow-6", "cow-9", "mor-6", "mor-9"]
COLUMNS = ["rid", "s", "v", "p", "_hoodie_commit_time", "_hoodie_file_name"]
Expected = dict[str, list[list[Any]]]


def unpacked(name: str, directory: Path) -> tuple[Path, Expected]:
    """A table, and its rows by instant."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as packed:
        packed.extractall(directory / "t")
    expected: Expected = json.loads((directory / "t/expected.json").read_text())
    (directory / "t/expected.json").unlink()
    return directory / "t", expected


def rows(table: object, predicate: str = "true") -> list[list[Any]]:
    read = sec.prune(table, predicate, strict=True).to_arrow().select(COLUMNS)  # type: ignore[arg-type]
    return sorted([list(row.values()) for row in read.to_pylist()])


@takes_seconds
@pytest.mark.parametrize("name", NAMES)
def test_every_instant(tmp_path: Path, name: str) -> None:
    path, expected = unpacked(name, tmp_path)
    base = {"read_optimized": name.startswith("mor")}
    table = sec.open_table(path, **base)
    sec.build_index(table, bloom=["rid", "s"])
    assert rows(table) == expected.pop("now")
    assert len(expected) >= 4
    for instant, want in expected.items():
        at = sec.open_table(path, version=int(instant), **base)
        assert rows(at) == want
        for file in {row[-1] for row in want}:
            of_file = {row[0] for row in want if row[-1] == file}
            assert of_file <= {row[0] for row in rows(at, f"_hoodie_file_name = '{file}'")}
        for rid, *_, commit, _ in sweep(want, 5):
            assert [row[0] for row in rows(at, f"rid = {rid} AND _hoodie_commit_time = '{commit}'")] == [rid]
    sec.verify_index(table)


@pytest.mark.parametrize("name", ["mor-6", "mor-9"])
def test_rows_in_log_files_are_refused(tmp_path: Path, name: str) -> None:
    path, _ = unpacked(name, tmp_path)
    with pytest.raises(UnsupportedTable, match=r"log files.*read_optimized=True"):
        sec.open_table(path)


@pytest.mark.parametrize("name", NAMES)
def test_no_file_of_the_timeline_can_be_lost_unnoticed(tmp_path: Path, name: str) -> None:
    """Without any one of its complete commits, or of the live files, a table is refused, or has the same rows.

    Without its last commit it is what it was before: Hudi itself cannot tell that from a writer that failed. The first
    ones count as archived.
    """
    path, expected = unpacked(name, tmp_path)
    base = {"read_optimized": name.startswith("mor")}
    table = sec.open_table(path, **base).snapshot()
    timeline = table.state.timeline
    for instant, commit in timeline.commits.items():
        file = path / timeline.directory / commit.name
        data = file.read_bytes()
        file.unlink()
        pending = list(file.parent.glob(f"{instant}.*"))
        kept = [(other, other.read_bytes()) for other in pending]
        for other in pending:
            other.unlink()
        try:
            assert rows(sec.open_table(path, **base)) == expected["now"], instant
        except TableNotFound as error:
            assert str(instant) in str(error)
        for other, content in kept:
            other.write_bytes(content)
        file.write_bytes(data[: len(data) // 2])
        with pytest.raises(TableNotFound, match=f"cannot read .*{commit.name}"):
            sec.open_table(path, **base)
        file.write_bytes(data)
    for live in table.state.files.paths.to_pylist():
        (path / live).rename(path / "away")
        with pytest.raises(TableNotFound, match="is gone"):
            sec.open_table(path, **base)
        (path / "away").rename(path / live)
    assert rows(sec.open_table(path, **base)) == expected["now"]


def test_schema_and_metadata(tmp_path: Path) -> None:
    path, expected = unpacked("cow-9", tmp_path)
    table = sec.open_table(path)
    assert table.snapshot().declared_schema.names[:5] == [
        f"_hoodie_{name}" for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
    ]
    snapshots = table.snapshot().metadata_tables.snapshots().to_pylist()
    assert [row["operation"] for row in snapshots if row["operation"] == "cluster"] == ["cluster"]
    assert [row["snapshot_id"] for row in snapshots if row["selected"]] == [
        max(int(at) for at in expected if at != "now")
    ]
    files = table.snapshot().metadata_tables.files(table.snapshot().listing(None))  # type: ignore[arg-type]
    assert files["bytes"].to_pylist() == [(path / file).stat().st_size for file in files["file"].to_pylist()]


def test_an_index_between_instants(tmp_path: Path) -> None:
    """Entries of files that are still live stay; those of others are replaced."""
    path, expected = unpacked("cow-9", tmp_path)
    *_, before, _ = sorted(int(at) for at in expected if at != "now")
    then = sec.open_table(path, version=before)
    sec.build_index(then, bloom=["rid"])
    table = sec.open_table(path)
    assert rows(table) == expected["now"]
    done = sec.refresh_index(table, dry_run=True)
    assert done is not None
    sec.refresh_index(table)
    plan = sec.prune(table, "rid = 7", strict=True)
    assert [row[0] for row in rows(table, "rid = 7")] == [row[0] for row in expected["now"] if row[0] == 7]
    assert plan.count() == len(plan.to_arrow())
    assert rows(then) == expected[str(before)]


def test_the_command_line(tmp_path: Path) -> None:
    path, expected = unpacked("mor-9", tmp_path)
    run = CliRunner().invoke
    refused = run(main, ["prune", str(path), "rid = 3"])
    assert refused.exit_code and "log files" in refused.output
    assert run(main, ["index", str(path), "--read-optimized", "--bloom", "rid"]).exit_code == 0
    for at in ("now", *expected):
        options = [] if at == "now" else ["--version", at]
        done = run(main, ["prune", str(path), "v >= 0", "--count", "--read-optimized", *options])
        assert done.exit_code == 0, done.output
        assert int(done.output.split()[-1].replace(",", "")) == len(expected[at]), done.output


def test_without_the_library_for_avro(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secateur.io.tables.hudi.commits.find_spec", lambda name: None)
    path, expected = unpacked("cow-6", tmp_path)
    assert rows(sec.open_table(path)) == expected["now"]
    (tmp_path / "9").mkdir()
    other, _ = unpacked("cow-9", tmp_path / "9")
    with pytest.raises(UnsupportedTable, match=r"secateur\[hudi\]"):
        sec.open_table(other)


def test_a_truncated_base_file(tmp_path: Path) -> None:
    path, _ = unpacked("cow-6", tmp_path)
    table = sec.open_table(path)
    live = path / table.snapshot().state.files.paths[0].as_py()
    assert pq.read_metadata(live).num_rows
    live.write_bytes(live.read_bytes()[:-40])
    with pytest.raises(SecateurError, match=live.name):
        rows(sec.open_table(path))
