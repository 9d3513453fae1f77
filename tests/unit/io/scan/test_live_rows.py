"""Rows that are deleted by position are counted from the positions; class C59: no deleted row counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from conformance.delta_log import stored_vectors
from secateur.io.scan.aggregate import READ
from secateur.io.scan.live_rows import complete_rows, live_rows
from secateur.pruning.stages import first_rows
from tests.support.drawn.deleted_rows import Place, Row, histories, made
from tests.support.formats.delta_tables import LoggedTable, numbered
from tests.support.profiles import examples, takes_seconds

CALLS = ["count(*)", *(f"{call}{name})" for call in ("count(", "count(DISTINCT ", "min(", "max(") for name in "ks")]
HOLDS = {"true": lambda k: True, "k > 0": lambda k: k is not None and k > 0, "k IS NOT NULL": lambda k: k is not None}


@pytest.fixture(autouse=True)
def _of_few_rows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ordered postings are asked for first rows of small tables too."""
    monkeypatch.setattr(first_rows, "FEW_ROWS", -1)


@takes_seconds
@examples(120)
@given(histories(), st.sampled_from(sorted(HOLDS)), st.booleans())
def test_no_deleted_row_counts(
    history: tuple[list[list[Row]], list[list[Place]], list[int]], where: str, indexed: bool
) -> None:
    files, positions, keys = history
    with made(files, positions, keys, indexed=indexed) as table:
        plan = sec.prune(table.table, where)
        live, complete = live_rows(plan), complete_rows(plan)
        assert ((live == complete) | (complete < 0)).all()
        assert keys or ((live >= 0) == plan.survivors.fully_matching).all()
        matching = [row for row in table.rows if HOLDS[where](row[0])]
        assert plan.count() == len(matching)
        assert sec.aggregate(table.table, "count(*) AS n", where).to_pylist() == [{"n": len(matching)}]
        first = sec.prune(table.table, where, order_by="k DESC", limit=3).to_arrow()["k"].to_pylist()
        keys_in_order = sorted((row[0] for row in matching if row[0] is not None), reverse=True)
        assert first == [*keys_in_order, *[None] * len(matching)][: min(3, len(matching))]
        ends = sec.aggregate(table.table, "min(k) AS least, count(DISTINCT k) AS n", where).to_pylist()
        assert ends == [{"least": min(keys_in_order, default=None), "n": len({*keys_in_order})}]
        by_text = sec.aggregate(table.table, "count(*) AS n", where, group_by="s").to_pylist()
        assert {row["s"]: row["n"] for row in by_text} == Counter(row[1] for row in matching)


@takes_seconds
@examples(60)
@given(
    histories(),
    st.sampled_from(["k > 0", "k BETWEEN -2 AND 3", "k IN (1, -5) OR s < 'b'", "s = 'a' AND k < 4", "k IS NOT NULL"]),
    st.lists(st.sampled_from(CALLS), min_size=1, max_size=4, unique=True),
)
def test_values_in_order_answer_for_rows_that_are_alive(
    history: tuple[list[list[Row]], list[list[Place]], list[int]], where: str, calls: list[str]
) -> None:
    """C44: by an index with them, and by reading all rows that are left."""
    files, positions, keys = history
    asked = ", ".join(calls)
    with made(files, positions, keys, indexed=True) as table, made(files, positions, keys, indexed=False) as plain:
        answer = sec.aggregate(table.table, asked, where)
        rows = sec.prune(plain.table, where).to_arrow()
        assert answer.to_pylist() == [{call: of_rows(call, rows) for call in calls}]
        metadata = answer.schema.metadata or {}
        if not keys and "s" not in where and not any("(s" in call for call in calls):
            assert int(metadata[READ]) == 0
        assert sec.prune(table.table, where).count() == rows.num_rows


def test_values_of_deleted_rows_are_left_out() -> None:
    """C44: the least, the greatest and a repeated value, of blocks that match in part."""
    files: list[list[Row]] = [
        [(k, "a", 1.5) for k in (1, 5, None, 2, 4, 3, 2, 9)],
        [(k, "b", 1.5) for k in (7, 0, 7, 8)],
    ]
    with made(files, [[(0, 1), (0, 7)], [(0, 3), (1, 3)]], [], indexed=True) as table:
        calls = "count(*) AS n, count(k) AS v, count(DISTINCT k) AS d, min(k) AS least, max(k) AS most"
        for where, wanted in (
            ("k > 1", [5, 5, 4, 2, 7]),  # of 4, 3, 2, 7 and 7
            ("k > 1 AND s < 'b'", [3, 3, 3, 2, 4]),
            ("k = 9 OR k = 8", [0, 0, 0, None, None]),
        ):
            answer = sec.aggregate(table.table, calls, where)
            assert list(answer.to_pylist()[0].values()) == wanted, where
            assert int((answer.schema.metadata or {})[READ]) == 0, where
            assert sec.prune(table.table, where).count() == wanted[0]


def of_rows(call: str, rows: pa.Table) -> Any:
    """An aggregate over some rows."""
    function, _, name = call.removesuffix(")").partition("(")
    values = [] if name == "*" else rows[name.removeprefix("DISTINCT ")].drop_null().to_pylist()
    if name == "*":
        return rows.num_rows
    if function == "count":
        return len(set(values)) if "DISTINCT" in name else len(values)
    return (min if function == "min" else max)(values, default=None)


def test_only_positions_are_read_of_deleted_rows(tmp_path: Path) -> None:
    made_table = LoggedTable(tmp_path / "t", pa.schema([("rid", pa.int64()), ("s", pa.string())]))
    add, _ = made_table.append(numbered(0, 12), numbered(12, 24))
    made_table.delete(add, stored_vectors(made_table.directory, [[0, 1, 2, 3, 5]])[0])
    table = sec.open_table(made_table.directory)

    def counted(calls: str, where: str) -> tuple[list[Any], int]:
        result = sec.aggregate(table, calls, where)
        metadata = result.schema.metadata or {}
        return list(result.to_pylist()[0].values()), int(metadata[READ])

    assert counted("count(*)", "true") == ([19], 0)
    assert counted("count(*)", "rid >= 6") == ([18], 1)
    assert counted("count(*), max(rid)", "rid < 12") == ([7, 11], 2)  # the first of three row groups is gone
    plan = sec.prune(table, "true")
    assert live_rows(plan).tolist() == [3, 4, 4, 4, 4]
    assert live_rows(plan, most_bytes=0).tolist() == complete_rows(plan).tolist() == [-1, -1, 4, 4, 4]


def test_positions_that_cannot_be_read_leave_blocks_to_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_table = LoggedTable(tmp_path / "t", pa.schema([("rid", pa.int64()), ("s", pa.string())]))
    (add,) = made_table.append(numbered(0, 12))
    made_table.delete(add, stored_vectors(made_table.directory, [[1]])[0])
    plan = sec.prune(sec.open_table(made_table.directory), "true")
    monkeypatch.setattr(type(plan.opened.catalog.files), "deleted", lambda *_: None)
    assert np.array_equal(live_rows(plan), [-1, -1, -1])
    assert plan.count() == 11


def test_entries_of_deleted_rows_count_for_nothing() -> None:
    """Ordered postings have them, by their places; a block of the other file is answered by these."""
    files: list[list[Row]] = [[(k, "a", 1.5) for k in keys] for keys in (range(12), range(-6, 6))]
    with made(files, [[(0, 11), (0, 10), (0, 5)]], [], indexed=True) as table:
        plan = sec.prune(table.table, "k > 4 AND s IS NOT NULL", order_by="k DESC", limit=3, strict=True)
        assert plan.to_arrow()["k"].to_pylist() == [9, 8, 7]
        assert sec.prune(table.table, "k > 4", strict=True).count() == 5
        answer = sec.aggregate(table.table, "count(k) AS n, max(k) AS greatest", "k > 4", strict=True)
        assert answer.to_pylist() == [{"n": 5, "greatest": 9}]
