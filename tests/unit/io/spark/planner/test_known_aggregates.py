"""What statistics tell of aggregates, combined with the aggregates over the rest, is what all rows give."""

from __future__ import annotations

import math
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.io.scan.aggregate import aggregated, bound
from secateur.io.spark.planner.file_list import Reader
from secateur.io.spark.planner.known_aggregates import Rest, rest_of
from secateur.pruning.aggregates import AggregateCall
from secateur.pruning.predicate.nodes import Column
from secateur.scan import Scan
from tests.support.profiles import examples

ROWS = 60
CALLS = [AggregateCall("count", None, "rows")] + [
    AggregateCall(function, Column((name,)), f"{function} {name}")
    for function in ("count", "min", "max")
    for name in ("id", "k", "f")
]
WHERES = ["TRUE", "id >= 20", "id >= 25", "id < 7 OR id > 33", "k IS NULL", "k > 3", "f > 0", "id > 100", "f <=> NULL"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("known")
    floats = [math.nan, 0.0, -0.0, 1.5, -math.inf]
    columns = {
        "id": pa.array(range(ROWS)),
        "k": pa.array([None if i // 10 in (1, 4) or i % 7 == 0 else i % 9 for i in range(ROWS)], pa.int64()),
        "f": pa.array([floats[i % 5] if 20 <= i < 40 else None if i % 3 == 0 else i / 2 for i in range(ROWS)]),
    }
    pq.write_table(pa.table(columns), root / "a.parquet", row_group_size=10)
    sec.build_index(sec.open_table(str(root)))
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
    is_float = call.function != "count" and call.column == Column(("f",))
    return float(struct.unpack("d", struct.pack("q", int(text)))[0]) if is_float else int(text)


def combined(function: str, a: float | None, b: float | None) -> float | None:
    """As Spark combines them: NaN is the greatest, NULL is nothing."""
    known = [value for value in (a, b) if value is not None]
    if function == "count" or not known:
        return sum(known) if known else None
    nan = [value for value in known if math.isnan(value)]
    if function == "max":
        return nan[0] if nan else max(known)
    return min((value for value in known if not math.isnan(value)), default=math.nan)


@examples(300)
@given(st.sampled_from(WHERES), st.lists(st.sampled_from(CALLS), min_size=1, max_size=3, unique=True))
def test_parts_make_the_whole(table: str, where: str, calls: list[AggregateCall]) -> None:
    plan = sec.prune(sec.open_table(table), where)
    asked = bound(plan, calls, case_sensitive=True)
    whole = [column[0].as_py() for column in aggregated(plan, asked).columns]
    rest = rest_of(plan, calls)
    read = [column[0].as_py() for column in aggregated(rest.scan, asked).columns]
    parts = zip(calls, told(rest, calls), read, strict=True)
    assert repr([combined(call.function, *pair) for call, *pair in parts]) == repr(whole)


def test_blocks_that_are_known_are_not_read(table: str) -> None:
    def left(where: str, *calls: AggregateCall) -> int:
        return len(rest_of(Scan.of(sec.prune(sec.open_table(table), where)), calls).scan.survivors.blocks)

    count, least = CALLS[0], AggregateCall("min", Column(("id",)), "")
    assert left("id >= 20", count, least) == 0
    assert left("id >= 25", count) == 1
    assert left("id >= 25", least) == 1
    assert left("k > 3", least) == 4  # of six, two hold only NULL; none matches whole
    assert left("TRUE", AggregateCall("min", Column(("none",)), "")) == 6
