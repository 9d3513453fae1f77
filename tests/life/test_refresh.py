"""Refreshes that add to an index: what was added later prunes as what was built at once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import IndexConflict, InvalidOption, StalePlan, UnknownColumn
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.maintain import entries
from tests.support.drawn.refresh_cases import ALL, PREDICATES, kept
from tests.support.profiles import examples, takes_seconds
from tests.support.small_tables import files
from tests.support.tables import WriteTable, write_file


@pytest.fixture
def table(write_table: WriteTable) -> ParquetDirectory:
    """Four files of three row groups, in two segments, without any filter."""
    root = write_table({f"{i}.parquet": _rows(i) for i in range(4)}, row_group_size=10)
    opened = sec.open_table(str(root))
    sec.build_index(opened, segment_blocks=6)
    return opened


def _rows(i: int) -> pa.Table:
    ids = np.random.default_rng(i).permutation(1000)[:30] * 4 + i
    return pa.table({"id": ids, "name": [f"n-{value}" for value in ids]})


@st.composite
def steps(draw: st.DrawFn) -> list[dict[str, Any]]:
    """What is asked of a build, and of the refreshes after it; of every kind a part each."""
    number = draw(st.integers(2, 3))
    made: list[dict[str, Any]] = [{} for _ in range(number)]
    for kind, columns in ALL.items():
        for column in columns:
            chosen = made[draw(st.integers(0, number - 1))].setdefault(kind, {} if isinstance(columns, Mapping) else [])
            chosen.update({column: columns[column]}) if isinstance(columns, Mapping) else chosen.append(column)
    return made


@takes_seconds
@examples(15, shrink=False)
@given(files(), steps(), st.booleans())
def test_what_is_added_later_prunes_as_what_was_there_from_the_start(
    written: list[tuple[str, pa.Table, int]], asked: list[dict[str, Any]], one_by_one: bool
) -> None:
    """By files that were there already, and files that came with the refresh."""
    with tempfile.TemporaryDirectory() as root:
        later = sec.open_table(root, index_location=f"{root}/_later")
        fresh = sec.open_table(root, index_location=f"{root}/_fresh")
        for i, options in enumerate(asked):
            first, last = (i, i + 1) if one_by_one and i < len(asked) - 1 else (0 if i == 0 else i, len(written))
            for path, data, size in written[first:last] if one_by_one or i == 0 else []:
                write_file(Path(root) / path, data, row_group_size=size)
            if i == 0:
                sec.build_index(later, segment_blocks=2, **options)
            else:
                sec.refresh_index(later, **options)
        sec.build_index(fresh, segment_blocks=2, **ALL)
        assert sec.verify_index(later).sound
        for predicate in PREDICATES:
            assert (
                sec.prune(later, predicate, strict=True).count() == sec.prune(fresh, predicate, use_index=False).count()
            )
            if not one_by_one:
                assert kept(later, predicate) == kept(fresh, predicate), predicate
        assert sec.refresh_index(later, dry_run=True).is_current


def test_a_filter_is_added_without_reading_other_columns(
    table: ParquetDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every file the named column is read, and no other."""
    from secateur.io.parquet.parquet_file import ParquetFile

    read: list[str] = []
    original = ParquetFile.read

    def spy(self: ParquetFile, row_group: int, fields: list[pa.Field]) -> Iterator[pa.RecordBatch]:
        read.extend(field.name for field in fields)
        return original(self, row_group, fields)

    monkeypatch.setattr(ParquetFile, "read", spy)
    done = sec.refresh_index(table, bloom=["id"])
    assert (done.files_added, done.segments_amended) == (0, 2)
    assert set(read) == {"id"}
    assert done.index.bloom == ("id",)
    value = _rows(2)["id"][5].as_py()
    assert [block["file"] for block in kept(table, f"id = {value}")] == ["2.parquet"]


def test_what_a_dry_run_tells_is_done_then(table: ParquetDirectory) -> None:
    root = Path(table.root)
    (root / "0.parquet").unlink()
    write_file(root / "1.parquet", _rows(7), row_group_size=10)
    write_file(root / "9.parquet", _rows(9), row_group_size=10)
    announced = sec.refresh_index(table, dry_run=True, postings=["id"])
    assert (announced.files_added, announced.files_changed, announced.files_removed, announced.segments_amended) == (
        1,
        1,
        1,
        1,
    )
    assert announced.index.number == 1
    done = sec.refresh_index(table, postings=["id"])
    assert [getattr(done, n) for n in ("files_added", "files_changed", "files_removed", "segments_amended")] == [1] * 4
    assert done.index.number == 2
    assert sec.refresh_index(table, dry_run=True).is_current
    everything = sorted(sec.prune(table, "TRUE", use_index=False).to_arrow()["id"].to_pylist())
    for value in everything[::7]:
        assert sec.prune(table, f"id = {value}", strict=True).count() == everything.count(value)


def test_files_that_are_gone_keep_a_place_in_their_segment(table: ParquetDirectory) -> None:
    """A segment of which one file is gone gets filters of the other."""
    (Path(table.root) / "0.parquet").unlink()
    done = sec.refresh_index(table, bloom=["id"], postings=["name"], gaps=["id"])
    assert (done.segments_amended, done.files_removed) == (2, 0)
    again = sec.refresh_index(table)
    assert (again.is_current, again.index.number) == (True, done.index.number)
    assert sec.verify_index(table).sound
    for i in range(1, 4):
        value = _rows(i)["id"][3].as_py()
        for predicate in (f"id = {value}", f"name = 'n-{value}'"):
            assert [block["file"] for block in kept(table, predicate)] == [f"{i}.parquet"]


@pytest.mark.parametrize("folder", ["segments", "filters"])
def test_lost_index_files_are_made_anew(table: ParquetDirectory, folder: str) -> None:
    sec.refresh_index(table, bloom=["id"], ngram=["name"])
    before = {p: kept(table, p) for p in (f"id = {_rows(1)['id'][0].as_py()}", "name LIKE '%n-39%'", "id > 2000")}
    lost = sorted((Path(table.root) / "_secateur" / folder).iterdir())
    used = [path for path in lost if any(path.name in name for name in _used(table))]
    used[0].unlink()
    used[-1].write_bytes(used[-1].read_bytes()[:-1])
    done = sec.refresh_index(table)
    assert (done.files_lost > 0, done.segments_amended > 0) == (folder == "segments", folder == "filters")
    assert sec.verify_index(table).sound
    assert {predicate: kept(table, predicate) for predicate in before} == before


@pytest.mark.parametrize("folder", ["segments", "filters"])
def test_broken_index_files_are_repaired(table: ParquetDirectory, folder: str) -> None:
    sec.refresh_index(table, bloom=["id"], ngram=["name"])
    before = {p: kept(table, p) for p in (f"id = {_rows(1)['id'][0].as_py()}", "name LIKE '%n-39%'", "id > 2000")}
    path = next(file for file in (Path(table.root) / "_secateur" / folder).iterdir() if file.name in str(_used(table)))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert not sec.verify_index(table).sound
    assert sec.refresh_index(table).is_current  # which does not look into files
    announced = sec.refresh_index(table, dry_run=True, repair=True)
    done = sec.refresh_index(table, repair=True)
    assert (done.files_lost, done.segments_amended) == (announced.files_lost, announced.segments_amended)
    assert (done.files_lost > 0, done.segments_amended > 0) == (folder == "segments", folder == "filters")
    assert sec.verify_index(table).sound
    assert {predicate: kept(table, predicate) for predicate in before} == before


def _used(table: ParquetDirectory) -> set[str]:
    from secateur.maintain.entries import require_snapshot
    from secateur.maintain.vacuum import used_files

    return used_files(require_snapshot(table))


def test_a_file_that_changes_meanwhile(table: ParquetDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    from secateur.maintain import refresh

    planned = refresh.difference

    def overwriting(*arguments: Any) -> Any:
        plan = planned(*arguments)
        write_file(Path(table.root) / "2.parquet", _rows(2), row_group_size=15)
        return plan

    monkeypatch.setattr(refresh, "difference", overwriting)
    with pytest.raises(StalePlan, match="2\\.parquet was overwritten"):
        sec.refresh_index(table, bloom=["id"])
    assert sec.describe_index(table).number == 1
    assert sec.prune(table, "id >= 0", strict=True).count() == 120


def test_another_build_comes_first(table: ParquetDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    from secateur.maintain import refresh

    planned = refresh.difference

    def building(*arguments: Any) -> Any:
        plan = planned(*arguments)
        sec.build_index(table, postings=["name"])
        return plan

    monkeypatch.setattr(refresh, "difference", building)
    with pytest.raises(IndexConflict, match="refresh again"):
        sec.refresh_index(table, bloom=["id"])
    described = sec.describe_index(table)
    assert (described.number, described.bloom, described.postings) == (2, (), ("name",))


def test_mistakes_are_told_before_anything_is_done(table: ParquetDirectory) -> None:
    with pytest.raises(UnknownColumn, match="nmae"):
        sec.refresh_index(table, ngram=["nmae"])
    with pytest.raises(InvalidOption, match="ngram is for text"):
        sec.refresh_index(table, ngram=["id"])
    assert sec.describe_index(table).number == 1


def test_c03_a_file_is_overwritten_within_the_second_in_which_it_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where times are whole seconds: the build waits until the second is over, and reads what is there then."""
    second = 1_700_000_000
    path = write_file(tmp_path / "a.parquet", {"id": [1, 2, 3]})
    os.utime(path, (second, second))
    waited: list[float] = []

    def overwriting(seconds: float) -> None:
        waited.append(seconds)
        write_file(path, {"id": [7, 8, 9]})
        os.utime(path, (second, second))

    clock = SimpleNamespace(sleep=overwriting, time=lambda: second + 0.25 + sum(waited))
    monkeypatch.setattr(entries, "time", clock)  # of this module alone: other threads sleep, too
    table = sec.open_table(str(tmp_path))
    sec.build_index(table)
    assert waited == [1.75]
    assert sec.prune(table, "id = 8", strict=True).count() == 1


def test_c03_a_file_is_overwritten_while_the_build_waits_for_the_second_to_be_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is young again after the wait has no entry, so what becomes of it within its second is found."""
    second = 1_700_000_000
    older, path = (write_file(tmp_path / f"{name}.parquet", {"id": [1, 2, 3]}) for name in "ab")
    for overwritten in (older, path):
        os.utime(overwritten, (second, second))
    waited: list[float] = []

    def overwriting(seconds: float) -> None:
        waited.append(seconds)
        os.utime(write_file(path, {"id": [4, 5, 6]}), (second + 2, second + 2))

    clock = SimpleNamespace(sleep=overwriting, time=lambda: second + 0.25 + sum(waited))
    monkeypatch.setattr(entries, "time", clock)  # of this module alone: other threads sleep, too
    table = sec.open_table(str(tmp_path))
    built = sec.build_index(table)
    os.utime(write_file(path, {"id": [7, 8, 9]}), (second + 2, second + 2))
    assert sec.prune(table, "id = 8", strict=True).count() == 1
    assert (built.files, built.coverage[0].files_without_entry) == (1, 1)
    waited.append(60.0)
    assert sec.refresh_index(table).files_added == 1
    assert sec.prune(table, "id = 8", strict=True).count() == 1
