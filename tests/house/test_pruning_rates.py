"""The pruning rates: the ideal is what the rows say, libraries are asked for no less, the page shows every part."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.pruning_rates import ALONE, Rates
from benchmarks.rates.page import DRAWN, PAGE, SCANS_PICTURE, TECHNIQUES_PICTURE, write
from benchmarks.rates.questions import Keys, Question
from benchmarks.rates.scans import FILTERS, JOINS, LIMIT, TOP_N, ZONE_MAPS, Amount, Measured
from benchmarks.rates.skipping import FOOTERS, in_arrow, pushed
from benchmarks.rates.sql_scans import QueryRead
from benchmarks.rates.summary import groups, techniques
from benchmarks.rates.truth import Rows

A = (1, 2, 3, 3, 3, 3, 8, 9)  # two files, blocks of two rows
B = (0, 1, 0, 1, 0, 0, 1, 1)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    home = tmp_path_factory.mktemp("rates")
    data = pa.table({"a": A, "b": B})
    for i in range(2):
        pq.write_table(data.slice(4 * i, 4), home / f"{i}.parquet", row_group_size=2)
    return Rows({str(home / "0.parquet"): 0, str(home / "1.parquet"): 2}, 2, 4)


@pytest.mark.parametrize(
    ("question", "blocks", "matches"),
    [
        (Question("", "a = 3"), [1, 2], 4),
        (Question("", "a = 5"), [], 0),
        (Question("", "b = 1", order_by="a DESC", limit=3), [1, 3], 3),
        (Question("", "TRUE", limit=3), [0, 1], 3),
        (Question("", "b = 1", limit=2), [3], 2),
        (Question("", "b = 1", limit=9), [0, 1, 3], 4),
        (Question("", "b = 1", keys=Keys("a", pa.array([2, 9, 4]))), [0, 3], 2),
    ],
)
def test_the_ideal_is_the_blocks_that_are_needed(
    rows: Rows, question: Question, blocks: list[int], matches: int
) -> None:
    ideal = rows.holding(question)
    assert (np.flatnonzero(ideal.blocks).tolist(), ideal.rows) == (blocks, matches)


def test_conditions_that_different_rows_meet(rows: Rows) -> None:
    everything = np.ones(4, bool)
    assert rows.met_apart(Question("", "a = 2 AND b = 0 AND TRUE AND a IS NOT NULL"), everything) == 1
    assert rows.met_apart(Question("", "a = 1", keys=Keys("b", pa.array([1]))), everything) == 1
    assert rows.met_apart(Question("", "a = 2 OR b = 0"), everything) == 0


COMPARISONS = ("a = 3", "a > 2", "a <= 8", "a BETWEEN 2 AND 3", "a IN (1, 9)", "s = 'xy'", "abs(a) = 3")
OTHERS = ("s LIKE 'x%'", "s LIKE '%x'", "b IS NULL", "b IS NOT NULL")
CONDITIONS = st.recursive(
    st.sampled_from([*COMPARISONS, *OTHERS]),
    lambda some: st.one_of(
        st.tuples(some, st.sampled_from(["AND", "OR"]), some).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        some.map(lambda condition: f"NOT ({condition})"),
    ),
    max_leaves=5,
)
VALUES = pa.table({"a": [1, 3, 8, None, -3], "b": [None, 1, 2, 3, None], "s": ["xy", "ax", "x", None, "b"]})


@given(condition=CONDITIONS)
def test_libraries_are_asked_for_no_less(condition: str) -> None:
    """What is left out of a condition for them can only keep more rows."""
    left = VALUES.filter(in_arrow(pushed(condition), VALUES.schema))
    connection = duckdb.connect()
    connection.register("held", VALUES)
    wanted = connection.sql(f"SELECT * FROM held WHERE {condition}").to_arrow_table()
    assert set(map(str, wanted.to_pylist())) <= set(map(str, left.to_pylist()))


def _scan(table: str, technique: str, pruned: dict[str, int], served: str = "bloom", apart: int = 0) -> Measured:
    kept = 10 - sum(pruned.values())
    amounts = Amount(10, 100, 1000), Amount(kept, 10 * kept, 100 * kept), Amount(1, 1, 100)
    others = {ALONE: 9, FOOTERS: 10} if table.endswith("directory") else {"PyIceberg": 8}
    return Measured(table, f"{technique} {kept}", "a = 3", technique, served, *amounts, pruned, others, apart)


SCANS = (
    _scan("events, generated, directory", "filter", {ZONE_MAPS: 5}, apart=4),
    _scan("events, generated, directory", "join", {ZONE_MAPS: 0, FILTERS: 0, JOINS: 9}),
    _scan(DRAWN, "filter", {ZONE_MAPS: 5, FILTERS: 4}),
    _scan(DRAWN, "join", {ZONE_MAPS: 0, FILTERS: 0, JOINS: 5}),
    _scan("events, clustered, Iceberg", "limit", {ZONE_MAPS: 1, LIMIT: 8}),
    _scan("logs, generated, directory", "top-n", {ZONE_MAPS: 0, TOP_N: 2}, served=""),
    _scan("logs, clustered, directory", "top-n", {ZONE_MAPS: 0, TOP_N: 8}),
)


def test_techniques_count_what_those_before_them_left() -> None:
    by_name = {technique.name: technique for technique in techniques(SCANS)}
    assert (by_name[ZONE_MAPS].before, by_name[ZONE_MAPS].pruned) == (70, 11)
    assert (by_name[FILTERS].before, by_name[FILTERS].pruned, by_name[FILTERS].effective) == (59, 4, 1)
    assert by_name[FILTERS].median == pytest.approx(0.8)
    assert (by_name[JOINS].scans, by_name[JOINS].before, by_name[JOINS].pruned) == (2, 20, 14)
    assert (by_name[LIMIT].before, by_name[LIMIT].pruned) == (9, 8)
    by_table = {group.table: group for group in groups(SCANS)}
    assert (by_table[DRAWN].all, by_table[DRAWN].kept, by_table[DRAWN].ideal) == (20, 6, 2)


def test_the_page_has_tables_and_pictures(tmp_path: Path) -> None:
    rates = Rates(SCANS, (QueryRead("TPC-H, generated, SQL", 1, 10, 9, 3),), ("a note",))
    write(rates, tmp_path)
    page = (tmp_path / PAGE).read_text()
    assert "| events, generated: filter 5 | 5 | 1 | in each block some row meets each condition" in page
    assert "| TPC-H, generated, SQL | 1 | 10 | 9 | 3 |" in page
    assert "| events, clustered, Iceberg | 10 | PyIceberg: 8 | 1 | 1 |" in page
    assert "- a note" in page
    for name in (TECHNIQUES_PICTURE, SCANS_PICTURE):
        picture = (tmp_path / name).read_text()
        assert f"({name})" in page
        assert "ideal" in picture and "%" in picture
        assert len(picture) < 100_000
