"""The columns `_file` and `_pos` lead back to the row they came with."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import UnknownColumn, UnsupportedTable
from tests.support.profiles import examples
from tests.support.small_tables import WHERE, Where, files, rows_of, written
from tests.support.tables import WriteTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@examples(120, shrink=False)
@given(files(), WHERE, st.data())
def test_every_row_lies_where_its_place_says(
    chosen: list[tuple[str, pa.Table, int]], where: Where, data: st.DataObject
) -> None:
    expected = {
        (path, at)
        for path, table, size in chosen
        for at, row in enumerate(rows_of([(path, table, size)]))
        if where.holds(row)
    }
    names = data.draw(st.permutations(["_pos", "_file", *data.draw(st.lists(st.sampled_from("isfp"), unique=True))]))
    with written(chosen, data.draw(st.integers(0, len(chosen)))) as table:
        plan = sec.prune(table, where.sql or "true", strict=True)
        batches = pa.Table.from_batches(
            pickle.loads(pickle.dumps(plan)).to_batches(names), pa.schema(plan.fields(names))
        )
        for read in (plan.to_arrow(names), batches):
            assert read.column_names == list(names)
            places = list(zip(read["_file"].to_pylist(), read["_pos"].to_pylist(), strict=True))
            assert set(places) == expected and len(places) == len(expected)
            stored = {path: part for path, part, _ in chosen}
            for row, (path, at) in zip(read.to_pylist(), places, strict=True):
                for name in set(names) & set(stored[path].column_names):
                    assert repr(row[name]) == repr(stored[path][name][at].as_py())
        ordered = sec.prune(table, where.sql or "true", order_by="i DESC", limit=3).to_arrow(names)
        assert set(zip(ordered["_file"].to_pylist(), ordered["_pos"].to_pylist(), strict=True)) <= expected


def test_late_reads_and_single_pages_keep_positions(tmp_path: Path) -> None:
    """A wide column is read only at rows that match, page by page."""
    n = np.arange(60_000)
    wide = pa.array([f"{i:0200d}" for i in n])
    table = pa.table({"x": n * 7919 % 60_000, "wide": wide})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20_000, data_page_size=20_000, write_page_index=True)
    plan = sec.prune(sec.open_table(str(tmp_path)), "x IN (3, 4, 59999) OR x BETWEEN 100 AND 120")
    read = plan.to_arrow(["wide", "_pos"])
    assert read.num_rows == 24
    assert [int(text) for text in read["wide"].to_pylist()] == read["_pos"].to_pylist()


def test_columns_of_the_table_come_first(write_table: WriteTable) -> None:
    table = sec.open_table(str(write_table({"a.parquet": pa.table({"_pos": [7, 8], "x": [1, 2]})})))
    plan = sec.prune(table, "x = 2")
    assert plan.to_arrow(["_pos", "_file"]).to_pylist() == [{"_pos": 8, "_file": "a.parquet"}]
    assert plan.to_arrow().column_names == ["_pos", "x"]
    with pytest.raises(UnsupportedTable, match="no _row_id"):
        plan.to_arrow(["_row_id"])
    with pytest.raises(UnknownColumn):
        sec.prune(table, "_file = 'a.parquet'")


def test_spark_counts_positions_alike(spark: SparkSession, write_table: WriteTable) -> None:
    n = np.arange(3000)
    parts = {f"{i}.parquet": pa.table({"x": n[i::2], "y": n[i::2] * 37 % 101}) for i in range(2)}
    root = write_table(parts, row_group_size=100)
    frame = spark.read.parquet(str(root))
    wanted = frame.where("y < 20").selectExpr("x", "_metadata.file_name AS file", "_metadata.row_index AS pos")
    expected = sorted(tuple(row.values()) for row in wanted.toArrow().to_pylist())
    plan = sec.prune(sec.open_table(str(root)), "y < 20")
    columns = ["x", "_file", "_pos"]
    answers: list[Any] = [plan.to_arrow(columns)]
    answers += [plan.to_spark(spark, columns, via=via).toArrow() for via in ("auto", "local", "blocks")]
    for answer in answers:
        assert sorted(tuple(row.values()) for row in answer.to_pylist()) == expected
    with pytest.raises(ValueError, match="does not read _file, _pos"):
        plan.to_spark(spark, columns, via="native")
