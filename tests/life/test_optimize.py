"""Optimized indexes: they prune as they did, and as one build would."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import IndexConflict, IndexFault
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.drawn.refresh_cases import ALL, PREDICATES, kept
from tests.support.profiles import examples, slow, takes_seconds
from tests.support.small_tables import files
from tests.support.tables import write_file


@takes_seconds
@examples(15, shrink=False)
@given(st.lists(files(), min_size=2, max_size=5), st.sampled_from([(), ("i",), ("s DESC", "i"), ("f",)]), st.data())
def test_what_was_pruned_is_pruned(appends: list[Any], sort_key: tuple[str, ...], data: st.DataObject) -> None:
    """By an index that appends and removals have made, before and after; a second time there is nothing to do."""
    with tempfile.TemporaryDirectory() as root:
        table = sec.open_table(root)
        segment_blocks = data.draw(st.sampled_from([None, 2, 5]))
        for i, append in enumerate(appends):
            for path, rows, size in append:
                folder, _, name = path.rpartition("/")
                write_file(Path(root) / folder / f"{i}-{name}", rows, row_group_size=size)
            if i == 0:
                sec.build_index(table, sort_key=sort_key, segment_blocks=segment_blocks, **ALL)
            else:
                sec.refresh_index(table)
        for path in sorted(Path(root).glob("p=*/*.parquet"))[1 :: data.draw(st.integers(2, 5))]:
            path.unlink()
        before = {predicate: kept(table, predicate) for predicate in PREDICATES}
        done = sec.optimize_index(table)
        assert sec.verify_index(table).sound
        assert {predicate: kept(table, predicate) for predicate in PREDICATES} == before
        assert sec.optimize_index(table, dry_run=True).is_in_order
        assert sec.describe_index(table).segments == done.segments_after
        for predicate in PREDICATES:
            expected = sec.prune(table, predicate, use_index=False).count()
            assert sec.prune(table, predicate, strict=True).count() == expected


ROWS = 40
APPENDS = 30
MOST_INCREMENTS = 5  # in which refreshes leave 156 blocks: each more than twice as large as all smaller ones together


@pytest.fixture(scope="module")
def once_appended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty files appended one by one, the first ten times as large, every third out of key order."""
    root = tmp_path_factory.mktemp("appended")
    table = sec.open_table(str(root))
    for i in range(APPENDS):
        _append(root, i)
        if i == 0:
            sec.build_index(table, sort_key=["ts"], bloom=["id"], ngram=["name"], segment_blocks=16)
        else:
            sec.refresh_index(table)
    return root


@pytest.fixture
def appended(once_appended: Path, tmp_path: Path) -> ParquetDirectory:
    """A copy of that table and its index, to change."""
    return sec.open_table(str(shutil.copytree(once_appended, tmp_path / "lake")))


def _append(root: Path, i: int) -> None:
    rows = ROWS * 10 if i == 0 else ROWS
    start = i * 1000 if i % 3 else (i - 2) * 1000 - 500
    ids = np.random.default_rng(i).permutation(100_000)[:rows]
    data = pa.table({"ts": start + np.arange(rows), "id": ids, "name": [f"name {value}" for value in ids]})
    write_file(root / f"{i:03}.parquet", data, row_group_size=10)


@slow
def test_appends_prune_like_one_build(appended: ParquetDirectory, tmp_path: Path) -> None:
    once = sec.open_table(appended.root, index_location=str(tmp_path / "_once"))
    done = sec.optimize_index(appended)
    sec.build_index(once, sort_key=["ts"], bloom=["id"], ngram=["name"], segment_blocks=16)
    assert done.filter_files_before <= 2 * MOST_INCREMENTS
    assert done.filter_files_after == 4  # the first build has a good part of the blocks, so its bloom matrices stay
    built = sec.describe_index(once)
    assert done.segments_after <= 1.5 * built.segments
    bounds = sec.inspect.segments(appended).sort_by("segment")
    lower, upper = (bounds[side].combine_chunks().field("ts").to_pylist() for side in ("lower", "upper"))
    assert lower == sorted(lower)
    assert all(end < begin for end, begin in zip(upper, lower[1:], strict=False))
    for i in range(APPENDS):
        value = np.random.default_rng(i).permutation(100_000)[7]
        between = f"ts BETWEEN {i * 1000} AND {i * 1000 + 5}"
        assert kept(appended, between) == kept(once, between)
        for predicate in (f"id = {value}", f"name LIKE '% {value}'", between):
            assert sec.prune(appended, predicate).count() == sec.prune(appended, predicate, use_index=False).count()


@takes_seconds
def test_what_is_in_order_stays(appended: ParquetDirectory, tmp_path: Path) -> None:
    """After an append in key order old segments and their matrices stay; with a late file one is rebuilt."""
    sec.optimize_index(appended)
    names = set(sec.inspect.segments(appended)["name"].to_pylist())
    assert sec.optimize_index(appended).is_in_order
    number = sec.describe_index(appended).number
    for i in (APPENDS + 1, APPENDS + 2):
        _append(Path(appended.root), i + (i % 3 == 0))
        sec.refresh_index(appended)
    done = sec.optimize_index(appended)
    stayed = names & set(sec.inspect.segments(appended)["name"].to_pylist())
    assert done.segments_made in (1, 2)
    assert len(stayed) >= len(names) - 2  # one for the late file, and one that filters in a small matrix take along
    assert sec.describe_index(appended).number == number + 3
    assert sec.verify_index(appended).sound


@takes_seconds
def test_a_dry_run_tells_and_changes_nothing(appended: ParquetDirectory) -> None:
    planned = sec.optimize_index(appended, dry_run=True)
    assert sec.describe_index(appended).segments == planned.segments_before
    done = sec.optimize_index(appended)
    assert (done.segments_after, done.segments_made) == (planned.segments_after, planned.segments_made)


def test_files_that_are_gone_are_forgotten(appended: ParquetDirectory) -> None:
    for i in range(1, APPENDS, 2):
        (Path(appended.root) / f"{i:03}.parquet").unlink()
    done = sec.optimize_index(appended)
    assert APPENDS // 2 <= done.index.files <= APPENDS // 2 * 4 / 3  # a segment stays if three in four blocks are live
    assert sec.prune(appended, "TRUE", strict=True).count() == sec.prune(appended, "TRUE", use_index=False).count()


def test_a_broken_segment_is_named_and_nothing_is_lost(appended: ParquetDirectory) -> None:
    segments = sec.describe_index(appended).segments
    name = sec.inspect.segments(appended)["name"][3].as_py()
    path = Path(appended.root) / "_secateur" / name
    path.write_bytes(path.read_bytes()[:100] + bytes(1000))
    before = sec.prune(appended, "id >= 0", use_index=False).count()
    with pytest.raises(IndexFault, match=path.name):
        sec.optimize_index(appended)
    assert sec.describe_index(appended).segments == segments
    assert sec.prune(appended, "id >= 0").count() == before
    assert sec.refresh_index(appended).files_lost > 0  # of another size than the snapshot says
    assert not sec.optimize_index(appended).is_in_order
    assert sec.verify_index(appended).sound


def test_a_refresh_that_comes_first(appended: ParquetDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    from secateur.maintain import optimize

    planned = optimize.regroup

    def refreshing(*arguments: Any) -> Any:
        plan = planned(*arguments)
        _append(Path(appended.root), 77)
        sec.refresh_index(appended)
        return plan

    monkeypatch.setattr(optimize, "regroup", refreshing)
    with pytest.raises(IndexConflict, match="Nothing was changed"):
        sec.optimize_index(appended)
    assert sec.verify_index(appended).sound
    assert sec.describe_index(appended).files == APPENDS + 1
