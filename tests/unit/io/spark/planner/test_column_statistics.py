"""Statistics of columns for Spark's optimizer: those of the rows of the blocks that are left, counted one by one."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
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


def test_columns_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 1], "parts": [[1], [2]]}), tmp_path / "a.parquet")
    scan = sec.prune(sec.open_table(str(tmp_path)), "true")
    assert encoded_statistics(scan, ["parts", "nowhere"]) == b"\0\0\0\0"
    assert encoded_statistics(scan, ["x", "nowhere"])[:4] == b"\0\0\0\1"
