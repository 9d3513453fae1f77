"""What statistics tell of aggregates, combined with the aggregates over the rest, is what all rows give.

Classes C48, C49 and C59: blocks without statistics are read, NULLs are not counted as values, rows are counted once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.io.scan.aggregate import aggregated, bound, bound_groups, grouped
from secateur.io.spark.planner import known_aggregates
from secateur.io.spark.planner.file_list import Reader
from secateur.io.spark.planner.known_aggregates import Rest, rest_of
from secateur.pruning.aggregates.answers import AggregateCall, LeftOut
from secateur.pruning.predicate.nodes import Column
from secateur.scan import Scan
from tests.support.profiles import examples

ROWS = 60
CALLS = [AggregateCall("count", None, "rows")] + [
    AggregateCall(function, Column((name,)), f"{function} {name}")
    for function in ("count", "min", "max")
    for name in ("id", "k", "f")
]
CALLS += [AggregateCall("sum", Column((name,)), f"sum {name}") for name in ("id", "k", "one")]
WHERES = ["TRUE", "id >= 20", "id >= 25", "id < 7 OR id > 33", "k IS NULL", "k > 3", "f > 0", "id > 100", "f <=> NULL"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("known")
    floats = [math.nan, 0.0, -0.0, 1.5, -math.inf]
    columns = {
        "id": pa.array(range(ROWS)),
        "k": pa.array([None if i // 10 in (1, 4) or i % 7 == 0 else i % 9 for i in range(ROWS)], pa.int64()),
        "one": pa.array([[None, 7, -1, 7, None, 3][i // 10] for i in range(ROWS)], pa.int32()),
        "text": pa.array([["a", "b" * 70, "a", "", None, "a" if i % 2 else "c"][i // 10] for i in range(ROWS)]),
        "zero": pa.array([[0.0, -0.0, math.nan, 0.0 if i % 2 else -0.0, None, 1.0][i // 10] for i in range(ROWS)]),
        "f": pa.array([floats[i % 5] if 20 <= i < 40 else None if i % 3 == 0 else i / 2 for i in range(ROWS)]),
    }
    pq.write_table(pa.table(columns), root / "a.parquet", row_group_size=10)
    postings = dict.fromkeys(("k", "f", "text"), "ordered")
    sec.build_index(sec.open_table(str(root)), sums=["id", "k"], postings=postings)
    return str(root)


def told(rest: Rest, calls: list[AggregateCall]) -> list[float | None]:
    """The values that Java reads; none of no call where nothing is left out."""
    reader = Reader(rest.known)
    count = reader.number()
    assert count == (len(calls) if rest.left_out else 0)
    texts = [reader.optional_text() for _ in range(count)] or [None] * len(calls)
    return [None if text is None else number(text, call) for text, call in zip(texts, calls, strict=True)]


def number(text: str, call: AggregateCall) -> float:
    """A count or an integer, or the bits of a double."""
    is_float = not call.function.startswith("count") and call.column == Column(("f",))
    return float(struct.unpack("d", struct.pack("q", int(text)))[0]) if is_float else int(text)


def combined(function: str, a: float | None, b: float | None) -> float | None:
    """As Spark combines them: NaN is the greatest, NULL is nothing."""
    known = [value for value in (a, b) if value is not None]
    if function in ("count", "sum") or not known:
        return sum(known) if known else None
    nan = [value for value in known if math.isnan(value)]
    if function == "max":
        return nan[0] if nan else max(known)
    return min((value for value in known if not math.isnan(value)), default=math.nan)


def in_units(plan: Scan, rows: int) -> LeftOut:
    """Blocks of so many neighbours are read together, as those of one file may be; others one by one."""
    unit = plan.survivors.blocks.row_group // rows
    return lambda answered: ~np.isin(unit, unit[~answered])


@examples(300)
@given(
    st.sampled_from(WHERES),
    st.lists(st.sampled_from(CALLS), min_size=1, max_size=3, unique=True),
    st.sampled_from([1, 2, 3, 6]),
)
def test_parts_make_the_whole(table: str, where: str, calls: list[AggregateCall], together: int) -> None:
    plan = Scan.of(sec.prune(sec.open_table(table), where))
    asked = bound(plan, calls, case_sensitive=True)
    whole = [column[0].as_py() for column in aggregated(plan, asked).columns]
    rest = rest_of(plan, calls, left_out=in_units(plan, together))
    left = rest.scan.survivors.blocks.row_group // together
    assert rest.left_out == np.count_nonzero(~np.isin(plan.survivors.blocks.row_group // together, left))
    read = [column[0].as_py() for column in aggregated(rest.scan, asked).columns]
    parts = zip(calls, told(rest, calls), read, strict=True)
    assert repr([combined(call.function, *pair) for call, *pair in parts]) == repr(whole)


@examples(300)
@given(
    st.sampled_from(WHERES),
    st.lists(st.sampled_from(CALLS), max_size=3, unique=True),
    st.lists(st.sampled_from(["one", "text", "zero", "k"]), min_size=1, max_size=2, unique=True),
    st.sampled_from([1, 2, 3]),
)
def test_parts_of_groups_make_the_whole(
    table: str, where: str, calls: list[AggregateCall], names: list[str], together: int
) -> None:
    plan = Scan.of(sec.prune(sec.open_table(table), where))
    columns = [Column((name,)) for name in names]
    asked, by = bound(plan, calls, case_sensitive=True), bound_groups(plan, columns, case_sensitive=True)
    rest = rest_of(plan, calls, columns, in_units(plan, together))
    united = by_group(grouped(rest.scan, asked, by), len(by))
    for values, told_of in known_rows(rest, calls, [field.type for field in by]):
        read = united.get(values, tuple(0 if call.function == "count" else None for call in calls))
        parts = zip(calls, told_of, read, strict=True)
        united[values] = tuple(combined(call.function, *pair) for call, *pair in parts)
    whole = by_group(grouped(plan, asked, by), len(by))
    assert {key: repr(row) for key, row in united.items()} == {key: repr(row) for key, row in whole.items()}


@examples(100)
@given(
    st.sampled_from(WHERES),
    st.lists(st.sampled_from(["id", "k", "one", "zero", "f", "text"]), min_size=1, max_size=2, unique=True),
    st.lists(st.sampled_from(CALLS), max_size=2, unique=True),
    st.booleans(),
)
def test_different_values_are_known_wholly_or_not_at_all(
    table: str, where: str, names: list[str], others: list[AggregateCall], is_all: bool
) -> None:
    """Two parts may have the same values: so no part is known by itself, nor beside files that are not in the plan."""
    calls = [AggregateCall("count distinct", Column((name,)), name) for name in names] + others
    plan = Scan.of(sec.prune(sec.open_table(table), where))
    rest = rest_of(plan, calls, is_all=is_all)
    assert is_all or not rest.left_out
    if rest.left_out:
        assert not len(rest.scan.survivors.blocks)
        whole = [column[0].as_py() for column in aggregated(plan, bound(plan, calls, case_sensitive=True)).columns]
        assert repr(told(rest, calls)) == repr(whole)
    else:
        assert len(rest.scan.survivors.blocks) == len(plan.survivors.blocks)


def test_different_values_that_are_listed_are_known(table: str) -> None:
    def is_known(where: str, name: str) -> bool:
        call = AggregateCall("count distinct", Column((name,)), "")
        return rest_of(Scan.of(sec.prune(sec.open_table(table), where)), [call]).left_out > 0

    assert is_known("TRUE", "k") and is_known("id >= 20", "f") and is_known("TRUE", "one")
    assert is_known("k > 1", "k")  # also where blocks match in part
    assert not is_known("id >= 25", "k")  # no postings tell the rows of a block that matches in part
    assert not is_known("TRUE", "id")  # no postings list it
    assert not is_known("TRUE", "text")  # postings have the first bytes only


def test_values_in_order_answer_where_blocks_match_in_part(table: str) -> None:
    plan = Scan.of(sec.prune(sec.open_table(table), "k > 3"))
    calls = [AggregateCall("count", None, ""), AggregateCall("min", Column(("k",)), "")]
    assert len(plan.survivors.blocks) and not plan.complete_blocks.any()
    rest = rest_of(plan, calls)
    assert rest.left_out == len(plan.survivors.blocks)
    assert rest_of(plan, calls, left_out=lambda answered: answered & (np.arange(len(answered)) > 0)).left_out > 0
    for others in (AggregateCall("sum", Column(("k",)), ""), AggregateCall("max", Column(("id",)), "")):
        assert not rest_of(plan, [*calls, others]).left_out  # no postings tell it


def by_group(result: pa.Table, columns: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The aggregates of every group: the first columns, with NaN as a text, which equals itself."""
    rows = [tuple(row.values()) for row in result.to_pylist()]
    return {named(row[:columns]): row[columns:] for row in rows}


def named(group: Iterable[Any]) -> tuple[Any, ...]:
    return tuple("NaN" if value != value else value for value in group)


def known_rows(
    rest: Rest, calls: list[AggregateCall], types: list[pa.DataType]
) -> list[tuple[tuple[Any, ...], list[float | None]]]:
    """The rows that Java reads: the values of a group, and its aggregates."""
    reader = Reader(rest.known)
    texts = [reader.optional_text() for _ in range(reader.number())]
    width, rows = len(types) + len(calls), []
    for begin in range(0, len(texts), width):
        values = [
            None if text is None else text if pa.types.is_string(type_) else decoded(text, type_)
            for text, type_ in zip(texts[begin : begin + len(types)], types, strict=True)
        ]
        results = zip(texts[begin + len(types) : begin + width], calls, strict=True)
        row = [None if text is None else number(text, call) for text, call in results]
        rows.append((named(values), row))
    assert bool(rows) == bool(rest.left_out)
    return rows


def decoded(text: str, type_: pa.DataType) -> float:
    bits = struct.pack("q", int(text))
    return float(struct.unpack("d", bits)[0]) if pa.types.is_floating(type_) else int(text)


def test_blocks_of_one_group_are_not_read(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def left(where: str, *names: str) -> int:
        columns = [Column((name,)) for name in names]
        plan = Scan.of(sec.prune(sec.open_table(table), where))
        return len(rest_of(plan, CALLS[:1], columns).scan.survivors.blocks)

    assert left("TRUE", "one") == 0
    assert left("id >= 25", "one") == 1
    assert left("TRUE", "text", "one") == 2  # of two values, and of one that bounds cut
    assert left("TRUE", "zero") == 0
    assert left("TRUE", "k") == 4
    assert left("TRUE", "none") == 6
    monkeypatch.setattr(known_aggregates, "MOST_GROUPS", 4)
    assert left("TRUE", "one") == 0
    monkeypatch.setattr(known_aggregates, "MOST_GROUPS", 3)
    assert left("TRUE", "one") == 6


def test_blocks_that_are_known_are_not_read(table: str) -> None:
    def left(where: str, *calls: AggregateCall) -> int:
        return len(rest_of(Scan.of(sec.prune(sec.open_table(table), where)), calls).scan.survivors.blocks)

    count, least = CALLS[0], AggregateCall("min", Column(("id",)), "")
    assert left("id >= 20", count, least) == 0
    assert left("id >= 25", count) == 1
    assert left("id >= 25", least) == 1
    assert left("k > 3", least) == 4  # of six, two hold only NULL; none matches whole
    assert left("TRUE", AggregateCall("min", Column(("none",)), "")) == 6


def test_why_blocks_are_left_to_read(table: str) -> None:
    def reason(where: str, *calls: AggregateCall) -> str:
        return rest_of(Scan.of(sec.prune(sec.open_table(table), where)), calls).note

    count, total = CALLS[0], AggregateCall("sum", Column(("k",)), "")
    assert reason("id >= 20", count) == "; statistics answer for 4"
    assert reason("id >= 25", count) == "; statistics answer for 3; 1 may hold rows that do not match"
    assert reason("TRUE", AggregateCall("sum", Column(("text",)), "")).startswith("; left to Spark: sum is answered")
    assert reason("TRUE", total) == "; statistics answer for 6"
    assert reason("id > 100", count) == ""
