"""An index that grows by many small refreshes: few increments are left, and they prune as one build would."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.index.file_names import build_of
from secateur.index.segments import base_file
from secateur.index.segments.snapshot_files import open_snapshot
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.maintain.vacuum import used_files
from tests.support.drawn.refresh_cases import ALL, PREDICATES
from tests.support.profiles import examples, takes_seconds
from tests.support.small_tables import files
from tests.support.tables import write_file


def increments(table: ParquetDirectory) -> set[str | None]:
    """The builds that wrote the segments of an index."""
    return {build_of(name) for name in sec.inspect.segments(table)["name"].to_pylist()}


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Appends, removals and overwrites; each is followed by a refresh."""
    appends: list[tuple[str, Any]] = [("append", draw(files())) for _ in range(draw(st.integers(4, 7)))]
    for _ in range(draw(st.integers(0, 3))):
        where = draw(st.integers(1, len(appends)))
        appends.insert(where, (draw(st.sampled_from(["remove", "overwrite"])), draw(st.integers(0, 9))))
    return appends


@takes_seconds
@examples(18, shrink=False)
@given(
    histories(),
    st.sampled_from([(), ("i",), ("s DESC", "i")]),
    st.sampled_from([None, 2, 5]),
    st.sampled_from([0, 3, base_file.MOST_OWN]),
)
def test_any_history_prunes_as_one_build(
    history: list[tuple[str, Any]], sort_key: tuple[str, ...], segment_blocks: int | None, most_own: int
) -> None:
    """C1, C5: the rows are those of one build, and of a scan without an index."""
    with tempfile.TemporaryDirectory() as directory, patch.object(base_file, "MOST_OWN", most_own):
        root = Path(directory)
        grown = sec.open_table(directory, index_location=f"{directory}/_grown")
        once = sec.open_table(directory, index_location=f"{directory}/_once")
        for i, (what, of) in enumerate(history):
            there = sorted(root.glob("p=*/*.parquet"))
            match what:
                case "append":
                    for path, rows, size in of:
                        folder, _, name = path.rpartition("/")
                        write_file(root / folder / f"{i}-{name}", rows, row_group_size=size)
                case "remove" if len(there) > 1:
                    there[of % len(there)].unlink()
                case "overwrite" if there:
                    source, target = there[of % len(there)], there[(of + 1) % len(there)]
                    target.write_bytes(source.read_bytes())
            if i:
                sec.refresh_index(grown)
            else:
                sec.build_index(grown, sort_key=sort_key, segment_blocks=segment_blocks, **ALL)
        sec.build_index(once, sort_key=sort_key, segment_blocks=segment_blocks, **ALL)
        assert sec.verify_index(grown).sound
        assert sec.verify_index(grown).files_uncovered == 0
        blocks = sec.describe_index(grown).blocks
        assert len(increments(grown)) <= math.log(max(blocks, 1), 3) + 2
        for predicate in PREDICATES:
            expected = sec.prune(grown, predicate, use_index=False).count()
            assert sec.prune(grown, predicate, strict=True).count() == expected, predicate
            assert sec.prune(once, predicate, strict=True).count() == expected, predicate


def _append(root: Path, i: int) -> None:
    write_file(root / f"{i:03}.parquet", pa.table({"id": range(i * 10, i * 10 + 10)}), row_group_size=5)


def grown_index(root: Path, appends: int, **structures: Any) -> ParquetDirectory:
    """An index of one file that was refreshed after each of some appends."""
    table = sec.open_table(str(root))
    for i in range(appends + 1):
        _append(root, i)
        if i:
            sec.refresh_index(table)
        else:
            sec.build_index(table, **structures)
    return table


@takes_seconds
@pytest.mark.parametrize(
    "structures", [{}, {"sort_key": ["id"], "bloom": ["id"]}, {"postings": ["id"]}, {"postings": {"id": "ordered"}}]
)
def test_few_increments_are_left(tmp_path: Path, structures: dict[str, Any]) -> None:
    table = grown_index(tmp_path, 40, **structures)
    assert len(increments(table)) <= math.log(82, 3) + 1
    assert sec.verify_index(table).sound
    plan = sec.prune(table, "id = 123", strict=True)
    assert plan.to_arrow(columns=["id"])["id"].to_pylist() == [123]
    assert [block["file"] for block in plan.blocks.to_pylist()] == ["012.parquet"]


def test_what_is_merged_at_once_is_not_left_over(tmp_path: Path) -> None:
    """A vacuum finds nothing that no snapshot ever named."""
    table = grown_index(tmp_path, 1, bloom=["id"])
    assert {build_of(path.name) for path in (tmp_path / "_secateur" / "segments").iterdir()} >= increments(table)
    named = {name for number in (1, 2) for name in used_files(open_snapshot(table.store, number))}
    there = {file.name for folder in ("segments", "filters") for file in table.store.files(folder)}
    assert there <= named


def test_a_broken_increment_is_left_where_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """C4: a refresh that cannot merge publishes nonetheless, says why, and no row is lost."""
    table = grown_index(tmp_path, 3, bloom=["id"])
    for name in sec.inspect.segments(table)["name"].to_pylist():
        path = tmp_path / "_secateur" / name
        data = path.read_bytes()
        path.write_bytes(bytes(reversed(data)))
    for i in range(4, 8):
        _append(tmp_path, i)
        assert sec.refresh_index(table).files_added == 1
    assert "cannot be read" in caplog.text
    assert sec.prune(table, "id >= 0").count() == 80
    assert sec.prune(table, "id = 71").to_arrow(columns=["id"])["id"].to_pylist() == [71]
    assert sec.verify_index(table).faults
    sec.refresh_index(table, repair=True)
    assert sec.verify_index(table).sound
    assert sec.prune(table, "id = 11", strict=True).count() == 1
