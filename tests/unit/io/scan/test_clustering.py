"""Depths and overlaps are those that counting interval by interval gives."""

from __future__ import annotations

import datetime as dt
import re
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.cli import main
from secateur.errors import InvalidOption, UnknownColumn
from secateur.html.pictures import MAP_HEIGHT
from secateur.io.scan.clustering import depths
from tests.support.profiles import examples

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


@st.composite
def files_of_pairs(draw: st.DrawFn) -> list[list[tuple[int | None, str | None]]]:
    """Row groups of a few rows of two columns."""
    values = st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from(["", "a", "ab", "b"]))
    return draw(st.lists(st.lists(values, min_size=1, max_size=4), min_size=1, max_size=6))


@examples(100)
@given(files_of_pairs())
def test_tuples_are_counted(groups: list[list[tuple[int | None, str | None]]]) -> None:
    """By the bounds of both columns; row groups without a value of one of them hold no tuple."""
    with tempfile.TemporaryDirectory() as root:
        for number, rows in enumerate(groups):
            columns = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate((pa.int64(), pa.string()))]
            pq.write_table(pa.table(columns, ["n", "s"]), f"{root}/{number}.parquet")
        *by_column, of_tuples = sec.inspect.clustering(root, by=["n", "s"]).to_pylist()
        assert by_column == sec.inspect.clustering(root, ["n", "s"]).to_pylist()
        assert sec.inspect.clustering(root, [], by=["n", "s"]).to_pylist() == [of_tuples]
    values = [[[row[i] for row in rows if row[i] is not None] for i in (0, 1)] for rows in groups]
    intervals = [(tuple(map(min, pair)), tuple(map(max, pair))) for pair in values if all(pair)]
    assert of_tuples["column"] == "n, s"
    assert (of_tuples["blocks"], of_tuples["unbounded"]) == (len(intervals), 0)
    assert of_tuples["constant"] == sum(low == high for low, high in intervals)
    if intervals:
        points = [low for low, _ in intervals]
        depth = [
            max(sum(a <= p <= b for a, b in intervals) for p in points if low <= p <= high) for low, high in intervals
        ]
        overlaps = [sum(a <= high and low <= b for a, b in intervals) - 1 for low, high in intervals]
        assert (of_tuples["mean_depth"], of_tuples["max_depth"]) == (pytest.approx(np.mean(depth)), max(depth))
        assert of_tuples["mean_overlaps"] == pytest.approx(np.mean(overlaps))


def test_tuples_of_the_sort_key_are_those_of_the_index(tmp_path: Path) -> None:
    """They tell apart what bounds of columns do not: a row group that ends one country and begins the next."""
    n = 120
    rows = sorted((f"c{i % 4}", i) for i in range(n))
    table = pa.table({"country": [row[0] for row in rows], "ts": [row[1] for row in rows]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20)
    loose = sec.inspect.clustering(str(tmp_path), [], by=["country", "ts"]).to_pylist()[0]
    sec.build_index(str(tmp_path), sort_key=["country", "ts"])
    exact = sec.inspect.clustering(str(tmp_path), [], by=["country", "ts"]).to_pylist()[0]
    assert (exact["blocks"], exact["max_depth"], exact["mean_overlaps"]) == (6, 1, 0.0)
    assert loose["max_depth"] > 1
    other = sec.inspect.clustering(str(tmp_path), [], by=["ts", "country"]).to_pylist()[0]
    assert other["max_depth"] > 1, "another order"
    pq.write_table(table, tmp_path / "b.parquet", row_group_size=20)
    both = sec.inspect.clustering(str(tmp_path), [], by=["country", "ts"]).to_pylist()[0]
    assert (both["blocks"], both["unbounded"]) == (12, 0), "of a new file the bounds of the columns are known"


def test_a_page_draws_the_bounds_of_columns_and_tuples(tmp_path: Path) -> None:
    """As many bars as different bounds, each from the rank of its lower to that of its upper bound, from the top."""
    rows = [(0, [1, 2]), (0, [5, 6]), (1, [3, 4]), (1, [0, 9])]
    for number, (n, pair) in enumerate(rows):
        pq.write_table(pa.table({"n": [n, n], "m": pair}), tmp_path / f"{number}.parquet")
    page = sec.inspect.clustering_page(str(tmp_path), by=["n", "m"])
    drawn = dict(re.findall(r'data-column="([^"]*)" data-blocks="4" fill="[^"]*" d="([^"]*)"', page))
    assert list(drawn) == ["n", "m", "n, m"]
    # Eight ends of tuples, all different: (0, 1) to (0, 2) are the ranks 0 to 1 of 7, (1, 0) to (1, 9) 4 and 7.
    ranks = [(0, 1), (2, 3), (5, 6), (4, 7)]
    boxes = [(round((1 - high / 7) * MAP_HEIGHT, 1), round((high - low) / 7 * MAP_HEIGHT, 1)) for low, high in ranks]
    assert drawn["n, m"] == "".join(f"M{x} {top:g}h1v{height:g}h-1z" for x, (top, height) in enumerate(boxes))
    file = tmp_path / "clustering.html"
    asked = ["inspect", str(tmp_path), "clustering", "--by", "n,m", "--html", str(file)]
    assert CliRunner().invoke(main, asked).exit_code == 0
    assert file.read_text() == page
    wrong = CliRunner().invoke(main, ["inspect", str(tmp_path), "files", "--html", str(file)])
    assert "--html is about the clustering" in wrong.output


def test_a_page_of_columns_without_bounds(tmp_path: Path) -> None:
    pq.write_table(pa.table({"nothing": pa.nulls(3, pa.int64())}), tmp_path / "a.parquet")
    page = sec.inspect.clustering_page(str(tmp_path))
    assert "no block has bounds" in page
    assert "<svg" not in page


def test_names_are_checked(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "items": [[1]], "at": [dt.date(2026, 1, 1)]}), tmp_path / "a.parquet")
    table = sec.open_table(str(tmp_path))
    assert sec.inspect.clustering(table, ["AT"])["column"].to_pylist() == ["at"]
    with pytest.raises(UnknownColumn, match="idd"):
        sec.inspect.clustering(table, ["idd"])
    with pytest.raises(UnknownColumn, match="idd"):
        sec.inspect.clustering(table, by=["id", "idd"])
    with pytest.raises(InvalidOption, match="items have no order"):
        sec.inspect.clustering(table, ["items"])
