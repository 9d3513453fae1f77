"""Which files a plan leaves, drops or rewrites: none left that holds a match, none dropped that holds another row."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import UnsupportedPredicate
from secateur.index.model import BuildOptions
from secateur.pruning.affected import Affected
from tests.support.profiles import examples
from tests.support.small_tables import WHERE, Where, files, rows_of, written
from tests.support.stores.local_build import index_here
from tests.support.tables import WriteTable


@examples(150)
@given(files(), WHERE, st.data())
def test_every_file_is_where_its_rows_say(
    chosen: list[tuple[str, pa.Table, int]], where: Where, data: st.DataObject
) -> None:
    with written(chosen, data.draw(st.integers(0, len(chosen)))) as table:
        plan = sec.prune(table, where.sql or "true", strict=True)
        exact = plan.affected(exact=True)
    affected = plan.affected()
    assert sorted([*affected.untouched, *affected.whole, *affected.rewritten]) == sorted(path for path, _, _ in chosen)
    for file in chosen:
        truth = [where.holds(row) for row in rows_of([file])]
        assert not (file[0] in affected.untouched and any(truth))
        assert not (file[0] in affected.whole and not all(truth))
        assert file[0] in (exact.whole if all(truth) else exact.rewritten if any(truth) else exact.untouched)
    if where.sql is None:
        assert not affected.rewritten and not affected.untouched


@pytest.mark.parametrize("indexed", [0, 1, 2])
def test_files_are_told_by_their_blocks(write_table: WriteTable, indexed: int) -> None:
    """Of `b` some blocks match whole and others are dead, `d` holds a NULL, `e` no rows."""
    parts = {"a": [1, 2, 3, 4], "b": [3, 4, 5, 6], "c": [5, 6, 7, 8], "d": [7, 8, 9, None], "e": []}
    data = {f"{name}.parquet": {"x": pa.array(values, pa.int64())} for name, values in parts.items()}
    root = write_table(data, row_group_size=2)
    table = sec.open_table(str(root))
    if indexed == 1:
        hidden = root / "c.parquet"
        held = hidden.read_bytes()
        hidden.unlink()
        index_here(table, BuildOptions())
        hidden.write_bytes(held)
    elif indexed == 2:
        index_here(table, BuildOptions(segment_blocks=1))
    plan = sec.prune(table, "x >= 5")
    assert plan.affected() == Affected(
        untouched=["a.parquet", "e.parquet"], whole=["c.parquet"], rewritten=["b.parquet", "d.parquet"]
    )
    everything = sec.prune(table, "true").affected()
    assert everything.whole == ["a.parquet", "b.parquet", "c.parquet", "d.parquet"]
    assert everything.untouched == ["e.parquet"]


def test_a_plan_with_a_limit_does_not_tell(write_table: WriteTable) -> None:
    table = sec.open_table(str(write_table({"a.parquet": {"x": [1]}})))
    with pytest.raises(ValueError, match="limit=1"):
        sec.prune(table, "x = 1", limit=1).affected()


def test_join_keys_tell_which_files_they_touch(write_table: WriteTable) -> None:
    parts = {f"{i}.parquet": {"x": [4 * i, 4 * i + 3], "y": [0, i]} for i in range(4)}
    table = sec.open_table(str(write_table(parts)))
    plan = sec.prune(table, "TRUE", keys=[1, 4, 7, 8, None], on="x")
    assert plan.affected() == Affected(["3.parquet"], [], ["0.parquet", "1.parquet", "2.parquet"])
    assert plan.affected(exact=True) == Affected(["0.parquet", "3.parquet"], ["1.parquet"], ["2.parquet"])
    with pytest.raises(UnsupportedPredicate):
        sec.prune(table, "x % 2 = 0 AND rand() < 2", keys=[4], on="x").affected(exact=True)


def test_where_the_index_is_broken_files_are_told_by_their_footers(write_table: WriteTable) -> None:
    root = write_table({f"{i}.parquet": {"x": [2 * i, 2 * i + 1]} for i in range(3)})
    index_here(sec.open_table(str(root)), BuildOptions())
    for segment in Path(root / "_secateur" / "segments").iterdir():
        segment.write_bytes(b"\0" * segment.stat().st_size)
    affected = sec.prune(sec.open_table(str(root)), "x >= 3").affected()
    assert affected.whole == ["2.parquet"]
    assert "1.parquet" in affected.rewritten
