"""Statistics of columns for Spark's optimizer: those of the rows of the blocks that are left, counted one by one."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.io.spark.planner.column_statistics import column_statistics, encoded_statistics
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.nodes import Column
from tests.support.profiles import examples

SCHEMA = pa.schema(
    [
        pa.field("i", pa.int32()),
        pa.field("s", pa.string()),
        pa.field("f", pa.float64()),
        pa.field("d", pa.date32()),
        pa.field("b", pa.bool_()),
    ]
)
VALUES: dict[str, list[Any]] = {
    "i": [-(2**31), -1, 0, 7],
    "s": ["", "a", "ä"],
    "f": [-0.0, 0.0, 1.5, math.nan, math.inf],
    "d": [dt.date(1969, 12, 31), dt.date(2026, 1, 1)],
    "b": [False, True],
}


@st.composite
def row_groups(draw: st.DrawFn) -> pa.Table:
    """Some rows of which few values differ, so that whole row groups often hold one or none."""
    n = draw(st.integers(1, 4))
    columns = {}
    for name, values in VALUES.items():
        chosen = draw(st.lists(st.sampled_from([None, *values]), min_size=1, max_size=2))
        rows = draw(st.lists(st.sampled_from(chosen), min_size=n, max_size=n))
        columns[name] = pa.array(rows, SCHEMA.field(name).type)
    return pa.table(columns, SCHEMA)


def signless(value: Any) -> Any:
    """A float without the sign of zero, and NaN as a text; another value as it is."""
    if not isinstance(value, float):
        return value
    return "nan" if math.isnan(value) else value + 0.0


def told(value: Any) -> str:
    """A value in Spark's internal form."""
    match value:
        case bool():
            return str(value).lower()
        case dt.date():
            return str((value - dt.date(1970, 1, 1)).days)
        case float():
            return str(pa.array([value]).view(pa.int64())[0])
    return str(value)


@examples(60, shrink=False)
@given(st.lists(row_groups(), min_size=1, max_size=4), st.sampled_from(["true", "i >= 0", "b", "s IS NULL"]))
def test_statistics_are_those_of_the_rows_left(parts: list[pa.Table], where: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        with pq.ParquetWriter(Path(directory) / "a.parquet", SCHEMA) as writer:
            for part in parts:
                writer.write_table(part)
        table = sec.open_table(directory)
        sec.build_index(table)
        plan = sec.prune(table, where, strict=True)
        left = pa.concat_tables([SCHEMA.empty_table(), *(parts[i] for i in plan.blocks["row_group"].to_pylist())])
        binder = Binder(SCHEMA, dt.UTC)
        for name in SCHEMA.names:
            of_column = column_statistics(resolve(Column((name,)), binder), plan.survivors.blocks)
            values = left[name].to_pylist()
            different = {signless(value) for value in values if value is not None}
            assert of_column is not None and of_column.nulls == values.count(None)
            assert of_column.distinct in (-1, len(different)), name
            if of_column.bounds is None:
                assert of_column.distinct == -1 or name == "s"
                continue
            assert different and name != "s" and not {"nan", math.inf} & different
            # Without NaN, and of so few bytes, the bounds of a file are values.
            assert of_column.bounds == (told(min(different)), told(max(different)))


@pytest.mark.parametrize(
    "parts", [[[math.nan, math.nan], [1.5, 1.5]], [[1.5, math.nan], [2.5, 1.5]], [[math.inf], [1.5]]]
)
def test_values_that_are_no_numbers_leave_no_bounds(tmp_path: Path, parts: list[list[float]]) -> None:
    schema = pa.schema([("f", pa.float64())])
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for part in parts:
            writer.write_table(pa.table({"f": part}, schema))
    sec.build_index(sec.open_table(str(tmp_path)))
    blocks = sec.prune(sec.open_table(str(tmp_path)), "true", strict=True).survivors.blocks
    of_column = column_statistics(resolve(Column(("f",)), Binder(schema, dt.UTC)), blocks)
    assert of_column is not None and (of_column.nulls, of_column.distinct, of_column.bounds) == (0, -1, None)


def test_bounds_of_many_values_enclose_them(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": range(7, 107), "s": ["a", "b"] * 50}), tmp_path / "a.parquet", row_group_size=30)
    scan = sec.prune(sec.open_table(str(tmp_path)), "x >= 67")
    binder = Binder(scan.opened.schema, dt.UTC)
    x, s = (column_statistics(resolve(Column((name,)), binder), scan.survivors.blocks) for name in "xs")
    assert x is not None and (x.nulls, x.distinct, x.bounds) == (0, -1, ("67", "106"))
    assert s is not None and (s.nulls, s.distinct, s.bounds) == (0, -1, None)


def test_columns_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 1], "parts": [[1], [2]]}), tmp_path / "a.parquet")
    scan = sec.prune(sec.open_table(str(tmp_path)), "true")
    assert encoded_statistics(scan, ["parts", "nowhere"]) == b"\0\0\0\0"
    assert encoded_statistics(scan, ["x", "nowhere"])[:4] == b"\0\0\0\1"
