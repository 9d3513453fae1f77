"""Postings that say rows: the rows read are those that plain Python finds, and each lies in a row range.

On files with NULL, several row groups and pages, through refreshes, merges and harm.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.index.build import row_sketch
from secateur.index.filters import row_lists
from secateur.index.filters.hashing import joined
from secateur.index.filters.row_lists import ValueRows
from secateur.index.read import row_lookup
from secateur.pruning.stages import rows as rows_stage
from secateur.scan import Scan
from tests.support.drawn.low_limits import LOWERED, low_limits
from tests.support.profiles import examples, takes_seconds
from tests.support.row_lake import Asked, Row, RowLake, Truth, both, combined, either, lakes_below, negated, of_column

TEXTS = ("", "a", "b", "A", "é", "longer than eight bytes")


# ---- predicates ------------------------------------------------------------------------------------------------------


def among(name: str, values: Sequence[Any], sql: str) -> Asked:
    """Membership; NULL where the column is."""
    return of_column(name, sql, lambda value: value in values)


numbers, texts = st.integers(-1, 8), st.sampled_from(TEXTS)
leaves = st.one_of(
    numbers.map(lambda n: among("k", [n], f"k = {n}")),
    st.lists(numbers, min_size=1, max_size=3).map(
        lambda values: among("k", values, f"k IN ({', '.join(map(str, values))})")
    ),
    numbers.map(lambda n: Asked(f"k <> {n}", negated(among("k", [n], "")).on)),
    numbers.map(lambda n: Asked(f"k <=> {n}", lambda row: row["k"] == n)),
    texts.map(lambda text: among("s", [text], f"s = '{text}'")),
    st.lists(texts, min_size=1, max_size=3).map(
        lambda values: among("s", values, "s IN (" + ", ".join(f"'{text}'" for text in values) + ")")
    ),
    numbers.map(lambda n: Asked(f"array_contains(tags, {n})", lambda row: contains(row["tags"], n))),
    st.integers(0, 99).map(lambda n: Asked(f"x < {n}", lambda row: None if row["x"] is None else row["x"] < n)),
    st.sampled_from(["k", "s"]).map(lambda name: Asked(f"{name} IS NULL", lambda row: row[name] is None)),
)
predicates = combined(leaves, 6)


def contains(values: Sequence[int | None] | None, value: int) -> Truth:
    """As Spark's array_contains."""
    if values is None:
        return None
    return True if value in values else None if None in values else False


# ---- tables ----------------------------------------------------------------------------------------------------------

SCHEMA = pa.schema(
    [("rid", pa.int64()), ("k", pa.int64()), ("s", pa.string()), ("x", pa.int32()), ("tags", pa.list_(pa.int64()))]
)
WITH_ROWS = {"k": "rows", "s": "rows", "tags": "rows"}


def rows_of(random: np.random.Generator, first: int) -> list[Row]:
    def maybe(value: Any) -> Any:
        return None if random.random() < 0.1 else value

    return [
        {
            "rid": first + i,
            "k": maybe(int(random.integers(0, 8))),
            "s": maybe(str(random.choice(TEXTS))),
            "x": maybe(int(random.integers(0, 100))),
            "tags": maybe([maybe(int(random.integers(0, 8))) for _ in range(random.integers(0, 3))]),
        }
        for i in range(int(random.choice([1, 30, 70])))
    ]


@pytest.fixture
def lake(tmp_path: Path) -> Callable[[int, int], RowLake]:
    """Makes tables of some files."""
    return lakes_below(tmp_path, row_lake)


def row_lake(root: Path) -> RowLake:
    return RowLake(root, SCHEMA, rows_of, pages=(3, 10, 64))


@contextmanager
def small(share: float, page_rows: int, ranges: int, values: int = 1 << 22) -> Iterator[None]:
    """Other limits, so that small tables meet them."""
    with (
        patch.object(row_lookup, "MOST_SHARE", share),
        patch.object(row_lists, "PAGE_ROWS", page_rows),
        patch.object(rows_stage, "MOST_RANGES", ranges),
        patch.object(row_sketch, "MOST", values),  # of a block, which is else unknown
    ):
        yield


limits = st.tuples(
    st.sampled_from([0.0, 0.3, 2.0]),
    st.sampled_from([1, 5, 2048]),
    st.sampled_from([1, 4, 256]),
    st.sampled_from([3, 6, 1 << 22]),
)


# ---- laws ------------------------------------------------------------------------------------------------------------


@takes_seconds
@examples(150, shrink=False)
@given(st.integers(0, 10**6), st.integers(1, 3), limits, LOWERED, st.lists(predicates, min_size=3, max_size=6))
def test_c35_rows_are_those_of_plain_python(
    lake: Callable[[int, int], RowLake],
    seed: int,
    files: int,
    limit: tuple[float, int, int, int],
    lowered: tuple[int, float],
    asked: list[Asked],
) -> None:
    """AND, OR, NOT and IN over columns whose postings say rows, and over one that has none."""
    made = lake(seed, files)
    with low_limits(*lowered), small(*limit):
        sec.build_index(made.table, postings=WITH_ROWS)
        for predicate in asked:
            made.check(predicate)


@examples(60, shrink=False)
@given(st.integers(0, 10**6), limits, LOWERED, st.lists(predicates, min_size=2, max_size=4))
def test_c05_rows_stay_true_over_time(
    lake: Callable[[int, int], RowLake],
    seed: int,
    limit: tuple[float, int, int, int],
    lowered: tuple[int, float],
    asked: list[Asked],
) -> None:
    """New, changed and removed files, columns added by a refresh, segments merged; deleted files leave no trace."""
    made, random = lake(seed, 3), np.random.default_rng(seed)
    with low_limits(*lowered), small(*limit):
        sec.build_index(made.table, postings={"k": "rows", "s": "blocks"}, segment_blocks=4)
        made.change(random)
        for predicate in asked:
            made.check(predicate)
        sec.refresh_index(made.table, postings=WITH_ROWS)
        for predicate in asked:
            made.check(predicate)
        sec.optimize_index(made.table)
        for predicate in asked:
            made.check(predicate)
    assert sec.verify_index(made.table).faults == ()
    assert made.audited() == []


def test_c35_rows_of_expressions_over_several_batches_are_those_of_python(tmp_path: Path) -> None:
    """A row group of several batches. Upper case depends on the locale: a row with two texts is in two lists."""
    names = [f"{'éi' if i % 1000 == 0 else 'x'}{i}" for i in range(150_000)]
    written = pa.table({"rid": pa.array(range(len(names)), pa.int64()), "name": names})
    pq.write_table(written, tmp_path / "f.parquet", row_group_size=len(names), write_page_index=True)
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, postings={"substring(name, 2, 9)": "rows", "upper(name)": "rows"})
    for i in (0, 5, 70_003, 120_000, 149_999):
        plan = sec.prune(table, f"substring(name, 2, 9) = '{names[i][1:]}'", strict=True)
        assert plan.to_arrow()["rid"].to_pylist() == [j for j, name in enumerate(names) if name[1:] == names[i][1:]]
        assert [stage.name for stage in plan.report.stages[-2:]] == ["rows", "pages"]
        for text in uppered(names[i]):
            plan = sec.prune(table, f"upper(name) = '{text}'", strict=True)
            assert plan.blocks["row_ranges"].to_pylist() == [[{"start": i, "stop": i + 1}]]
    assert sec.verify_index(table).faults == ()


def uppered(text: str) -> set[str]:
    """The upper case of a text in English, Turkish and Lithuanian; the locale does not matter for ASCII."""
    return {text.upper()} if text.isascii() else {text.upper(), text.replace("i", "\u0130").upper()}


def lowered(text: str) -> set[str]:
    """The lower case of a text in English, Turkish and Lithuanian; the locale does not matter for ASCII."""
    if text.isascii():
        return {text.lower()}
    turkish = text.replace("\u0130", "i").replace("I", "\u0131")
    return {text.lower(), turkish.lower(), text.replace("\u00cc", "i\u0307\u0300").lower()}


@takes_seconds
@examples(100, shrink=False)
@given(
    st.lists(st.lists(st.none() | st.text("iIaé\u0130\u0131\u00ccß", max_size=4), max_size=20), min_size=1, max_size=4),
    st.sampled_from([1, 2048]),
)
def test_c19_rows_are_listed_under_the_texts_of_every_locale(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[str | None]], page_rows: int
) -> None:
    """Whoever reads the rows of a plan, in whatever locale, finds those that match there; ß is left to Spark."""
    root = tmp_path_factory.mktemp("lake")
    for i, texts in enumerate(groups):
        pq.write_table(pa.table({"s": pa.array(texts, pa.string())}), root / f"{i}.parquet", row_group_size=7)
    table = sec.open_table(str(root))
    with small(2.0, page_rows, 1 << 20):
        sec.build_index(table, postings={"upper(s)": "rows", "lower(s)": "rows"})
        for function, texts_of in {"upper": uppered, "lower": lowered}.items():
            forms = {form for texts in groups for text in texts if text is not None for form in texts_of(text)}
            for form in sorted(forms)[:6]:
                matching = {
                    (f"{i}.parquet", row)
                    for i, texts in enumerate(groups)
                    for row, text in enumerate(texts)
                    if text is not None and form in texts_of(text)
                }
                for test in (f"= '{form}'", f"LIKE '{form[:1]}%'", f"IN ('x', '{form}')"):
                    for use_index in (True, False):
                        plan = sec.prune(table, f"{function}(s) {test}", strict=True, use_index=use_index)
                        assert selected_rows(plan) >= matching
    assert sec.verify_index(table).faults == ()


def selected_rows(plan: Scan) -> set[tuple[str, int]]:
    """The rows of row groups of seven that a plan keeps: file and row."""
    return {
        (block["file"], block["row_group"] * 7 + row)
        for block in plan.blocks.to_pylist()
        for span in block["row_ranges"]
        for row in range(span["start"], span["stop"])
    }


def test_c35_conditions_that_no_row_meets_together_leave_nothing(tmp_path: Path) -> None:
    """Though every block has rows for each of them; OR leaves the rows of both, and nothing is read elsewhere."""
    rows = [
        {"rid": i, "k": 1 if i % 100 == 3 else None, "s": "a" if i % 100 == 60 else "b", "x": i % 100, "tags": None}
        for i in range(1000)
    ]
    made = row_lake(tmp_path)
    made.write("f.parquet", rows, 100, 10)
    sec.build_index(made.table, postings=WITH_ROWS)
    one, other = among("k", [1], "k = 1"), among("s", ["a"], "s = 'a'")
    assert len(made.check(both([one, other])).blocks) == 0
    plan = made.check(either([one, other]))
    assert [[(span["start"], span["stop"]) for span in spans] for spans in plan.blocks["row_ranges"].to_pylist()] == [
        [(3, 4), (60, 61)]
    ] * 10
    assert [stage.name for stage in plan.report.stages[-2:]] == ["rows", "pages"]
    assert made.check(negated(one)).blocks.num_rows == 0  # k is 1 or NULL
    many = made.check(among("s", ["b"], "s = 'b'"))
    assert reduce(operator.add, many.blocks["row_ranges"].to_pylist()) == [{"start": 0, "stop": 100}] * 10


def test_pages_are_asked_only_where_row_lists_do_not_say_all(tmp_path: Path) -> None:
    """Of `x`, which has no row lists, pages narrow what the lists of `k` leave; of `k` alone they are not read."""
    rows = [{"rid": i, "k": i % 50, "s": "a", "x": i, "tags": None} for i in range(1000)]
    made = row_lake(tmp_path)
    made.write("f.parquet", rows, 500, 10)
    sec.build_index(made.table, postings={"k": "rows"})

    def narrowed(predicate: str) -> tuple[list[int], bool]:
        plan = sec.prune(made.table, predicate, strict=True)
        spans = [span["start"] for block in plan.blocks["row_ranges"].to_pylist() for span in block]
        return spans, any("blocklets" in note for note in plan.report.stages[-1].notes)

    assert narrowed("k = 7") == ([*range(7, 500, 50)] * 2, False)
    assert narrowed("k = 7 AND x BETWEEN 100 AND 160") == ([107, 157], True)


@examples(40, shrink=False)
@given(st.integers(0, 10**6), st.integers(0, 2**30), st.integers(0, 7), st.lists(predicates, min_size=2, max_size=3))
def test_c04_harmed_row_lists_lose_no_row(
    lake: Callable[[int, int], RowLake], seed: int, position: int, bit: int, asked: list[Asked]
) -> None:
    """A bit of any segment file: what cannot be believed keeps its blocks whole."""
    made = lake(seed, 2)
    with small(2.0, 5, 256):
        sec.build_index(made.table, postings=WITH_ROWS)
        made.flip(position, bit)
        for predicate in asked:
            made.check(predicate, strict=False)


@pytest.mark.parametrize("column", ["k", "s", "tags"])
def test_a_row_that_is_not_listed_is_found_by_an_audit(lake: Callable[[int, int], RowLake], column: str) -> None:
    """One of every block that has values."""
    group = row_sketch._value_rows
    asked = []

    def without_a_row(parts: Sequence[np.ndarray], rows: np.ndarray) -> ValueRows | None:
        others = rows != rows[:1].sum()
        asked.append(len(rows) > others.sum())
        return group([joined(parts)[others]], rows[others])

    made = lake(5, 2)
    with patch.object(row_sketch, "_value_rows", without_a_row):
        sec.build_index(made.table, postings={column: "rows"})
    faults = [fault for fault in made.audited() if fault.statistic == "the row list of a value"]
    assert {fault.column for fault in faults} == {column}
    assert len(faults) == sum(asked)


def test_a_page_of_postings_is_read_once_a_plan(tmp_path: Path) -> None:
    """For blocks and for their rows; and the row's columns all at once."""
    n = np.arange(40_000)
    table = pa.table({"key": n * 7919 % 40_009, "wide": pa.array([f"{i:040d}" for i in n])})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20_000, data_page_size=20_000, write_page_index=True)
    opened = sec.open_table(str(tmp_path))
    sec.build_index(opened, postings={"key": "rows"})
    wanted = table["key"].take([7, 30_000]).to_pylist()
    assert [sec.prune(opened, f"key = {key}").to_arrow().num_rows for key in wanted] == [1, 1]  # of one row group each
    again = sec.prune(opened, f"key = {table['key'][5000].as_py()}", strict=True)
    assert again.report.reads.stored == 2  # a page, and a list of rows
    assert again.to_arrow()["wide"].to_pylist() == [f"{5000:040d}"]
