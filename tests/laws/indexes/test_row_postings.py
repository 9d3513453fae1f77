"""Postings that say rows: the rows read are those that plain Python finds, and each lies in a row range.

On files with NULL, several row groups and pages, through refreshes, merges and harm.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from secateur.errors import InvalidOption
from secateur.index.build import row_sketch
from secateur.index.build.tasks import run_in_process
from secateur.index.filters import row_lists
from secateur.index.filters.row_lists import ValueRows
from secateur.index.read import row_lookup
from secateur.io.scan.index_audit import AuditFault
from secateur.io.scan.opened_table import opened_strictly
from secateur.maintain.audit import compared
from secateur.pruning.stages import rows as rows_stage
from secateur.scan import Scan
from tests.support.profiles import examples

Row = dict[str, Any]
Truth = bool | None
TEXTS = ("", "a", "b", "A", "é", "longer than eight bytes")


@dataclass(frozen=True)
class Asked:
    """A predicate as SQL, and what it is on a row."""

    sql: str
    on: Callable[[Row], Truth]


# ---- plain Python ----------------------------------------------------------------------------------------------------


def among(name: str, values: Sequence[Any], written: str) -> Asked:
    """Membership; NULL where the column is."""
    return Asked(written, lambda row: None if row[name] is None else row[name] in values)


def negated(asked: Asked) -> Asked:
    def on(row: Row) -> Truth:
        truth = asked.on(row)
        return None if truth is None else not truth

    return Asked(f"NOT ({asked.sql})", on)


def both(parts: Sequence[Asked]) -> Asked:
    def on(row: Row) -> Truth:
        truths = [part.on(row) for part in parts]
        return False if False in truths else None if None in truths else True

    return Asked("(" + " AND ".join(part.sql for part in parts) + ")", on)


def either(parts: Sequence[Asked]) -> Asked:
    turned = negated(both([negated(part) for part in parts]))
    return Asked("(" + " OR ".join(part.sql for part in parts) + ")", turned.on)


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
predicates = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(both)
        | st.lists(inner, min_size=2, max_size=3).map(either)
        | inner.map(negated)
    ),
    max_leaves=6,
)


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


def rows_of(random: np.random.Generator, count: int, first: int) -> list[Row]:
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
        for i in range(count)
    ]


def written(path: Path, rows: Sequence[Row], group: int, page: int) -> None:
    pq.write_table(
        pa.Table.from_pylist(list(rows), SCHEMA),
        path,
        row_group_size=group,
        write_page_index=True,
        max_rows_per_page=page,
        write_batch_size=page,
    )


@dataclass
class Lake:
    """A table and its rows by file."""

    root: Path
    rows: dict[str, list[Row]]

    def add(self, random: np.random.Generator, name: str) -> None:
        first = 1000 * (len(self.rows) + 1)
        self.rows[name] = rows_of(random, int(random.choice([1, 30, 70])), first)
        group, page = int(random.choice([7, 20, 64])), int(random.choice([3, 10, 64]))
        written(self.root / name, self.rows[name], group, page)

    @property
    def table(self) -> Any:
        return sec.open_table(str(self.root))


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Callable[[int, int], Lake]]:
    """Makes tables of some files, each below a folder of its own."""
    made = iter(range(10**6))

    def make(seed: int, files: int) -> Lake:
        root = tmp_path / str(next(made))
        root.mkdir()
        new, random = Lake(root, {}), np.random.default_rng(seed)
        for i in range(files):
            new.add(random, f"f{i}.parquet")
        return new

    yield make


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


def check(lake: Lake, asked: Asked, *, strict: bool = True) -> Scan:
    """The rows are those that match; every one lies in a row range of its block."""
    plan = sec.prune(lake.table, asked.sql, strict=strict)
    expected = sorted(row["rid"] for rows in lake.rows.values() for row in rows if asked.on(row))
    assert sorted(plan.to_arrow(columns=["rid"])["rid"].to_pylist()) == expected
    assert plan.count() == len(expected)
    selected = set()
    for block in plan.blocks.to_pylist():
        rows, before = lake.rows[block["file"]], rows_before(lake, block["file"], block["row_group"])
        for span in block["row_ranges"]:
            assert 0 <= span["start"] < span["stop"] <= block["row_count"]
            selected |= {rows[before + row]["rid"] for row in range(span["start"], span["stop"])}
    assert selected >= set(expected)
    return plan


def rows_before(lake: Lake, file: str, row_group: int) -> int:
    footer = pq.read_metadata(lake.root / file)
    return sum(footer.row_group(i).num_rows for i in range(row_group))


def audited(lake: Lake) -> list[AuditFault]:
    """What the values of all blocks contradict."""
    opened = opened_strictly(lake.table)
    findings, blocks = compared(opened, run_in_process, lambda count: 1, None, 0, lambda *progress: None)
    assert findings.blocks == blocks > 0
    assert findings.skipped == []
    return findings.faults


# ---- laws ------------------------------------------------------------------------------------------------------------


@examples(150, shrink=False)
@given(st.integers(0, 10**6), st.integers(1, 3), limits, st.lists(predicates, min_size=3, max_size=6))
def test_c35_rows_are_those_of_plain_python(
    lake: Callable[[int, int], Lake], seed: int, files: int, limit: tuple[float, int, int, int], asked: list[Asked]
) -> None:
    """AND, OR, NOT and IN over columns whose postings say rows, and over one that has none."""
    made = lake(seed, files)
    with small(*limit):
        sec.build_index(made.table, postings=WITH_ROWS)
        for predicate in asked:
            check(made, predicate)


@examples(60, shrink=False)
@given(st.integers(0, 10**6), limits, st.lists(predicates, min_size=2, max_size=4))
def test_c05_rows_stay_true_over_time(
    lake: Callable[[int, int], Lake], seed: int, limit: tuple[float, int, int, int], asked: list[Asked]
) -> None:
    """New, changed and removed files, columns added by a refresh, segments merged; deleted files leave no trace."""
    made, random = lake(seed, 3), np.random.default_rng(seed)
    with small(*limit):
        sec.build_index(made.table, postings={"k": "rows", "s": "blocks"}, segment_blocks=4)
        made.add(random, "new.parquet")
        (made.root / "f1.parquet").unlink()
        del made.rows["f1.parquet"]
        made.add(random, "f2.parquet")
        for predicate in asked:
            check(made, predicate)
        sec.refresh_index(made.table, postings=WITH_ROWS)
        for predicate in asked:
            check(made, predicate)
        sec.optimize_index(made.table)
        for predicate in asked:
            check(made, predicate)
    assert sec.verify_index(made.table).faults == ()
    assert audited(made) == []


def test_c35_rows_of_expressions_over_several_batches_are_those_of_python(tmp_path: Path) -> None:
    """A row group of several batches. Upper case depends on the locale: a row may have two texts, and is not listed."""
    names = [f"{'éi' if i % 1000 == 0 else 'x'}{i}" for i in range(150_000)]
    written = pa.table({"rid": pa.array(range(len(names)), pa.int64()), "name": names})
    pq.write_table(written, tmp_path / "f.parquet", row_group_size=len(names), write_page_index=True)
    table = sec.open_table(str(tmp_path))
    with pytest.raises(InvalidOption, match="the locale"):
        sec.build_index(table, postings={"upper(name)": "rows"})
    sec.build_index(table, postings={"substring(name, 2, 9)": "rows"})
    for i in (0, 5, 70_003, 120_000, 149_999):
        plan = sec.prune(table, f"substring(name, 2, 9) = '{names[i][1:]}'")
        assert plan.to_arrow()["rid"].to_pylist() == [j for j, name in enumerate(names) if name[1:] == names[i][1:]]
        assert [stage.name for stage in plan.report.stages[-2:]] == ["rows", "pages"]


def test_c35_conditions_that_no_row_meets_together_leave_nothing(tmp_path: Path) -> None:
    """Though every block has rows for each of them; OR leaves the rows of both, and nothing is read elsewhere."""
    rows = [
        {"rid": i, "k": 1 if i % 100 == 3 else None, "s": "a" if i % 100 == 60 else "b", "x": i % 100, "tags": None}
        for i in range(1000)
    ]
    written(tmp_path / "f.parquet", rows, 100, 10)
    made = Lake(tmp_path, {"f.parquet": rows})
    sec.build_index(made.table, postings=WITH_ROWS)
    one, other = among("k", [1], "k = 1"), among("s", ["a"], "s = 'a'")
    assert len(check(made, both([one, other])).blocks) == 0
    plan = check(made, either([one, other]))
    assert [[(span["start"], span["stop"]) for span in spans] for spans in plan.blocks["row_ranges"].to_pylist()] == [
        [(3, 4), (60, 61)]
    ] * 10
    assert [stage.name for stage in plan.report.stages[-2:]] == ["rows", "pages"]
    assert check(made, negated(one)).blocks.num_rows == 0  # k is 1 or NULL
    many = check(made, among("s", ["b"], "s = 'b'"))
    assert reduce(operator.add, many.blocks["row_ranges"].to_pylist()) == [{"start": 0, "stop": 100}] * 10


def test_pages_are_asked_only_where_row_lists_do_not_say_all(tmp_path: Path) -> None:
    """Of `x`, which has no row lists, pages narrow what the lists of `k` leave; of `k` alone they are not read."""
    rows = [{"rid": i, "k": i % 50, "s": "a", "x": i, "tags": None} for i in range(1000)]
    written(tmp_path / "f.parquet", rows, 500, 10)
    made = Lake(tmp_path, {"f.parquet": rows})
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
    lake: Callable[[int, int], Lake], seed: int, position: int, bit: int, asked: list[Asked]
) -> None:
    """A bit of any segment file: what cannot be believed keeps its blocks whole."""
    made = lake(seed, 2)
    with small(2.0, 5, 256):
        sec.build_index(made.table, postings=WITH_ROWS)
        (segment,) = (made.root / "_secateur" / "segments").iterdir()
        data = bytearray(segment.read_bytes())
        data[position % len(data)] ^= 1 << bit
        segment.write_bytes(data)
        for predicate in asked:
            check(made, predicate, strict=False)


@pytest.mark.parametrize("column", ["k", "s", "tags"])
def test_a_row_that_is_not_listed_is_found_by_an_audit(lake: Callable[[int, int], Lake], column: str) -> None:
    """One of every block that has values."""
    group = row_sketch._grouped
    asked = []

    def without_a_row(hashes: np.ndarray, rows: np.ndarray) -> ValueRows:
        others = rows != rows[:1].sum()
        asked.append(len(rows) > others.sum())
        return group(hashes[others], rows[others])

    made = lake(5, 2)
    with patch.object(row_sketch, "_grouped", without_a_row):
        sec.build_index(made.table, postings={column: "rows"})
    faults = [fault for fault in audited(made) if fault.statistic == "the row list of a value"]
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
