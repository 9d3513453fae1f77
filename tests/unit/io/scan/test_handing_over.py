"""Plans in the hands of other readers: the rows are those of to_arrow."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import datafusion
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import secateur as sec
from secateur.errors import IncompatibleSchemas, PackageMissing, UnsupportedPredicate
from tests.support.tables import WriteTable

PREDICATES = {
    "id BETWEEN 130 AND 260": (pc.field("id") >= 130) & (pc.field("id") <= 260),
    "day = 3 AND name IS NULL": (pc.field("day") == 3) & pc.field("name").is_null(),
    "name = 'n-5' OR id = 277": (pc.field("name") == "n-5") | (pc.field("id") == 277),
    "day IS NULL": pc.field("day").is_null(),
    "id < 0": pc.field("id") < 0,
}


def make_table(write_table: WriteTable) -> Path:
    """A table with partitions, one of them NULL, NULLs, a column that some files lack, and another order of columns."""
    files = {}
    for i in range(5):
        row = np.arange(i * 100, (i + 1) * 100)
        at = pa.array([datetime(2026, 1, 1 + i, tzinfo=UTC)] * 100, pa.timestamp("us", "UTC"))
        columns = {"name": pa.array([None if v % 7 == 0 else f"n-{v}" for v in row]), "id": pa.array(row), "at": at}
        if i % 2:
            columns = {"id": columns["id"], "extra": pa.array(row / 4), **columns}
        files[f"day={i if i != 4 else '__HIVE_DEFAULT_PARTITION__'}/part.parquet"] = pa.table(columns)
    return write_table(files, row_group_size=10, write_page_index=True)


def same(answer: pa.Table, wanted: pa.Table) -> bool:
    key = [("id", "ascending")]
    answer = answer.select(wanted.column_names).cast(wanted.schema)
    return answer.sort_by(key).equals(wanted.sort_by(key))


def test_all_readers_get_the_same_rows(write_table: WriteTable) -> None:
    table = sec.open_table(str(make_table(write_table)))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for predicate, expression in PREDICATES.items():
        plan = sec.prune(table, predicate, strict=True)
        wanted = plan.to_arrow()
        assert same(pa.table(plan), wanted), predicate
        assert same(connection.sql("FROM plan").to_arrow_table(), wanted), predicate
        relation = plan.to_duckdb(connection)
        assert same(relation.to_arrow_table(), wanted), predicate
        assert relation.count("*").fetchall() == [(len(wanted),)], "it is read anew"
        frame = plan.to_datafusion(datafusion.SessionContext())
        assert same(frame.to_arrow_table(), wanted), predicate
        assert frame.count() == len(wanted), "it is asked twice"
        assert same(plan.to_polars().collect().to_arrow(), wanted), predicate
        assert plan.to_pandas().equals(wanted.to_pandas()), predicate
        dataset = plan.to_dataset()
        assert same(dataset.to_table(filter=expression), wanted), predicate
        assert dataset.to_table(columns=["id"]).num_rows == sum(plan.blocks["row_count"].to_pylist()), predicate


def test_columns_and_limits(write_table: WriteTable) -> None:
    table = sec.open_table(str(make_table(write_table)))
    plan = sec.prune(table, "id >= 250")
    lazy = plan.to_polars().filter(pl.col("name").is_null()).select("id")
    wanted = [v for v in range(250, 500) if v % 7 == 0]
    assert sorted(lazy.collect()["id"].to_list()) == wanted
    assert plan.to_polars().head(7).collect().height == 7
    connection = duckdb.connect()
    assert plan.to_duckdb(connection, columns=["extra"]).columns == ["extra"]
    context = datafusion.SessionContext()
    assert plan.to_datafusion(context, columns=["id"]).filter(datafusion.col("id") < 255).count() == 5
    assert plan.to_datafusion(context, columns=["extra"]).schema().names == ["extra"]
    newest = sec.prune(table, "TRUE", order_by="id DESC", limit=3)
    assert pa.table(newest)["id"].to_pylist() == [499, 498, 497]
    assert newest.to_datafusion(context).to_pydict()["id"] == [499, 498, 497]
    with pytest.raises(ValueError, match="limit=3"):
        newest.to_dataset()


def test_what_cannot_be_handed_over(write_table: WriteTable, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_table({"a.parquet": {"id": [1, 2]}, "b.parquet": {"ID": [1, 5]}})
    plan = sec.prune(sec.open_table(str(root)), "id = 1")
    assert plan.to_arrow().num_rows == pa.table(plan).num_rows == 2
    with pytest.raises(IncompatibleSchemas, match="calls the column"):
        plan.to_dataset()
    unknown = sec.prune(sec.open_table(str(root)), "soundex(CAST(id AS STRING)) = 'x'")
    with pytest.raises(UnsupportedPredicate):
        pa.table(unknown)
    with pytest.raises(UnsupportedPredicate):
        unknown.to_polars()
    with pytest.raises(UnsupportedPredicate):
        unknown.to_datafusion(datafusion.SessionContext())
    monkeypatch.setattr("secateur.io.scan.handing_over.find_spec", lambda name: None)
    with pytest.raises(PackageMissing, match=r"secateur\[polars\]"):
        plan.to_polars()
    with pytest.raises(PackageMissing, match=r"secateur\[duckdb\]"):
        plan.to_duckdb(None)
    with pytest.raises(PackageMissing, match=r"secateur\[datafusion\]"):
        plan.to_datafusion(None)
