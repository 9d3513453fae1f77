"""Depths and overlaps are those that counting interval by interval gives."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import InvalidOption, UnknownColumn
from secateur.io.scan.clustering import depths

pairs = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted)


@given(st.lists(pairs, min_size=1, max_size=60))
def test_depths_are_counted(intervals: list[list[int]]) -> None:
    lower, upper = np.array(intervals).T
    depth, overlaps = depths(lower, upper)
    for i, (low, high) in enumerate(intervals):
        at = [sum(a <= point <= b for a, b in intervals) for point in range(low, high + 1)]
        assert depth[i] == max(at)
        assert overlaps[i] == sum(a <= high and low <= b for a, b in intervals) - 1


def test_columns_of_a_table(tmp_path: Path) -> None:
    n = 1_000
    mixed = np.random.default_rng(0).permutation(n)
    data = pa.table(
        {
            "sorted": np.arange(n),
            "mixed": mixed,
            "text": [f"{i:04d}" for i in mixed],
            "money": pa.array([Decimal(int(i)) for i in mixed], pa.decimal128(30, 2)),
            "one": np.zeros(n),
            "nothing": pa.nulls(n, pa.int64()),
            "nan": np.where(np.arange(n) % 100 == 7, np.nan, np.arange(n)),
            "items": [[1]] * n,
        }
    )
    for file in range(2):
        pq.write_table(data.slice(file * 500, 500), tmp_path / f"{file}.parquet", row_group_size=100)
    table = sec.open_table(str(tmp_path))
    without = sec.inspect.clustering(table)
    sec.build_index(table)
    by_column = {row.pop("column"): row for row in sec.inspect.clustering(table).to_pylist()}
    assert "items" not in by_column
    depth = {name: (row["blocks"], row["mean_depth"], row["max_depth"]) for name, row in by_column.items()}
    assert depth["sorted"] == (10, 1.0, 1)
    assert depth["mixed"] == depth["text"] == depth["money"] == (10, 10.0, 10)
    assert depth["nothing"] == (0, None, None)
    assert depth["nan"] == (10, 1.0, 1), "NaN does not make blocks overlap"
    assert by_column["one"] == {
        "blocks": 10,
        "unbounded": 0,
        "constant": 10,
        "mean_depth": 10.0,
        "max_depth": 10,
        "mean_overlaps": 9.0,
        "depths": [{"depth": 16, "blocks": 10}],
    }
    chosen = [name for name in without["column"].to_pylist() if name != "nan"]  # of NaN a footer tells nothing
    assert without.filter(pa.array([name in chosen for name in without["column"].to_pylist()])) == (
        sec.inspect.clustering(table, chosen)
    )


def test_names_are_checked(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "items": [[1]], "at": [dt.date(2026, 1, 1)]}), tmp_path / "a.parquet")
    table = sec.open_table(str(tmp_path))
    assert sec.inspect.clustering(table, ["AT"])["column"].to_pylist() == ["at"]
    with pytest.raises(UnknownColumn, match="idd"):
        sec.inspect.clustering(table, ["idd"])
    with pytest.raises(InvalidOption, match="items have no order"):
        sec.inspect.clustering(table, ["items"])
