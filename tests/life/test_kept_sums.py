"""Sums stay those of the rows over the life of an index: added later, refreshed, merged, optimized, restructured."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.index.build.tasks import run_in_process
from secateur.index.model import FilterOption
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.maintain.restructure import restructure
from tests.support.profiles import examples
from tests.support.tables import write_file

VALUES = st.lists(st.none() | st.integers(-(2**40), 2**40), min_size=1, max_size=9)
NOTHING_READ = b"0"


def require_sums(table: ParquetDirectory, rows: list[int | None], read: bytes | None = NOTHING_READ) -> None:
    """The sums of both columns, of which `b` is twice `a`, and the blocks that are read for them."""
    answer = sec.aggregate(table, "sum(a) AS a, sum(b) AS b, avg(b) AS m, count(a) AS n", strict=True)
    present = [value for value in rows if value is not None]
    total = sum(present) if present else None
    twice = None if total is None else 2 * total
    mean = None if twice is None else twice / len(present)
    assert answer.to_pylist() == [{"a": total, "b": twice, "m": mean, "n": len(present)}]
    assert read is None or answer.schema.metadata[b"blocks_read"] == read


@examples(25)
@given(st.lists(VALUES, min_size=2, max_size=5), st.integers(0, 4), st.integers(1, 4))
def test_sums_follow_their_rows(appends: list[list[int | None]], removed: int, size: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        table = sec.open_table(root)
        for i, values in enumerate(appends):
            both = {"a": pa.array(values, pa.int64()), "b": pa.array([v and 2 * v for v in values], pa.int64())}
            write_file(Path(root) / f"{i}.parquet", both, row_group_size=size)
            if i == 0:
                sec.build_index(table, sums=["a"], segment_blocks=2)
            elif i == 1:
                require_sums(table, appends[0] + appends[1], None)
                sec.refresh_index(table, sums=["b"])
            else:
                sec.refresh_index(table)
        require_sums(table, [value for values in appends for value in values])
        if removed < len(appends):
            (Path(root) / f"{removed}.parquet").unlink()
        left = [value for i, values in enumerate(appends) if i != removed for value in values]
        require_sums(table, left)
        sec.optimize_index(table)
        require_sums(table, left)
        restructure(table, run_in_process, (FilterOption("postings", "a"),), ())
        restructure(table, run_in_process, (), ("a",))
        require_sums(table, left)
        assert sec.describe_index(table).sums == ("a", "b")
        assert sec.verify_index(table).sound
        sec.build_index(table)
        assert sec.describe_index(table).sums == ()
        require_sums(table, left, None)


def test_a_column_that_changes_its_type_is_read_or_summed_as_it_is(tmp_path: Path) -> None:
    """Sums of a narrower type serve a wider one; those of another scale are of another column."""
    table = sec.open_table(str(tmp_path))
    write_file(tmp_path / "a.parquet", {"x": pa.array([1, 2, None], pa.int32())})
    sec.build_index(table, sums=["x"])
    write_file(tmp_path / "b.parquet", {"x": pa.array([2**40], pa.int64())})
    answer = sec.aggregate(table, "sum(x) AS x", strict=True)
    assert answer.to_pylist() == [{"x": 3 + 2**40}]
    assert answer.schema.metadata[b"blocks_read"] == b"0"  # one value is its own sum
    sec.refresh_index(table)
    assert sec.aggregate(table, "sum(x) AS x", strict=True).equals(answer)
