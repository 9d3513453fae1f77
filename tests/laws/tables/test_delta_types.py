"""Columns of a Delta table that change their type: rows written before and after, read with the index of before."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import numpy as np
import pyarrow as pa
import pytest

import secateur as sec
from conformance.delta_log import Action, metadata, schema_text
from tests.support.formats.delta_tables import LoggedTable
from tests.support.profiles import takes_seconds

DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 3, 1)]
NUMBERS = [-128, -1, 0, 7, 127]
WIDENED: list[tuple[pa.DataType, list[Any], pa.DataType, list[Any]]] = [  # with values of both types
    (pa.int8(), NUMBERS, pa.int64(), [*NUMBERS, 300, 5_000_000_000]),
    (pa.int32(), [*NUMBERS, 2**31 - 1], pa.float64(), [-1.0, 0.5, 7.0, float("inf")]),
    (pa.float32(), [-1.5, 0.1, 7.0, float("nan")], pa.float64(), [-1.5, 0.1, 7.0, float("nan")]),
    (pa.int16(), NUMBERS, pa.decimal128(12, 2), [Decimal("-1.00"), Decimal("7.00"), Decimal("7.25")]),
    (
        pa.decimal128(6, 2),
        [Decimal("-0.01"), Decimal("2.25"), Decimal("9999.99")],
        pa.decimal128(12, 4),
        [Decimal("-0.0100"), Decimal("2.2500"), Decimal("2.2501"), Decimal("99999999.0001")],
    ),
    (
        pa.decimal128(6, 2),
        [Decimal("2.25"), Decimal("9999.99")],
        pa.decimal128(22, 4),
        [Decimal("2.2500"), Decimal("123456789012345678.0001")],
    ),
    (pa.date32(), DAYS, pa.timestamp("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2026, 3, 1)]),
]
OPERATIONS = ("=", "<", ">")


def schema_with(type_: pa.DataType) -> pa.Schema:
    return pa.schema([("rid", pa.int64()), ("v", type_)])


def rows(start: int, values: list[Any], type_: pa.DataType) -> pa.Table:
    """Rows with ids from `start` on, the last of which has no value."""
    rids = pa.array(range(start, start + len(values) + 1), pa.int64())
    return pa.table({"rid": rids, "v": pa.array([*values, None], type_)})


def with_bounds(made: LoggedTable, part: pa.Table) -> Action:
    """Writes a file; the action that adds it, with the bounds that a writer of its types logs."""
    values = [value for value in part["v"].to_pylist() if value is not None and value == value]
    if not values:
        return made.file(part)
    lower, upper = (logged(value, part["v"].type) for value in (min(values), max(values)))
    return made.file(part, minValues={"v": lower}, maxValues={"v": upper}, nullCount={"v": part["v"].null_count})


def logged(value: Any, type_: pa.DataType) -> Any:
    match value:
        case dt.date():
            return value.isoformat()
        case float():
            return float(str(np.float32(value))) if type_ == pa.float32() else value
        case _:
            return float(value) if isinstance(value, Decimal) else value


def literal(value: Any) -> str:
    match value:
        case dt.datetime():
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return f"'{value}'"
        case _:
            return str(value)


def require_all_rows(handle: Any, held: pa.Table, values: list[Any]) -> None:
    """Comparisons with some values give what DuckDB gives, which orders as Spark does, with the index and without."""
    for predicate in ["v IS NULL", *(f"v {operation} {literal(v)}" for v in values for operation in OPERATIONS)]:
        query = f"SELECT rid FROM held WHERE {predicate.replace('TIMESTAMP_NTZ', 'TIMESTAMP')} ORDER BY rid"
        wanted = [rid for (rid,) in duckdb.query(query).fetchall()]
        for use_index in (True, False):
            plan = sec.prune(handle, predicate, strict=True, use_index=use_index)
            assert sorted(plan.to_arrow(["rid"])["rid"].to_pylist()) == wanted, (predicate, plan.explain())


@takes_seconds
@pytest.mark.parametrize(("before", "old", "after", "new"), WIDENED)
def test_c13_columns_that_widen(
    tmp_path: Path, before: pa.DataType, old: list[Any], after: pa.DataType, new: list[Any]
) -> None:
    """What the index has of the narrow type serves the wide one, or is measured again by the next refresh."""
    made = LoggedTable(tmp_path / "t", schema_with(before), ("typeWidening", "timestampNtz"))
    handle = sec.open_table(made.directory)
    narrow = [rows(0, old[:2], before), rows(10, old[2:], before)]
    made.log.commit(*(with_bounds(made, part) for part in narrow))
    sums = [] if pa.types.is_floating(before) or pa.types.is_date(before) else ["v"]
    kept = {"bloom": ["v"], "postings": {"v": "rows"}, "gaps": ["v"], "sums": sums, "zone_map": ["nullif(v, v)"]}
    sec.build_index(handle, sort_key=["v", "rid"], **kept)
    made.log.commit(metadata(schema_text(schema_with(after))))
    wide = rows(20, new, after)
    held = pa.concat_tables([part.cast(wide.schema) for part in narrow])
    require_all_rows(handle, held, new)
    sec.refresh_index(handle)
    require_all_rows(handle, held, new)
    made.append(wide)
    held = pa.concat_tables([held, wide])
    require_all_rows(handle, held, new)
    sec.refresh_index(handle)
    require_all_rows(handle, held, new)
    assert sec.verify_index(handle).sound


@pytest.mark.parametrize("value", [0.1, -0.3, 1e-45, 3.4028235e38, 16777217.0])
def test_c13_bounds_of_floats_are_no_bounds_of_doubles(tmp_path: Path, value: float) -> None:
    """A log has a float as the shortest text that names it, which as a double may be less or more than the float."""
    made = LoggedTable(tmp_path / "t", schema_with(pa.float32()), ("typeWidening",))
    narrow = rows(0, [value], pa.float32())
    text = logged(value, pa.float32())
    made.log.commit(with_bounds(made, narrow))
    made.log.commit(metadata(schema_text(schema_with(pa.float64()))))
    require_all_rows(
        sec.open_table(made.directory), narrow.cast(schema_with(pa.float64())), [text, float(narrow["v"][0].as_py())]
    )


def test_a_table_written_anew_with_another_type(tmp_path: Path) -> None:
    """A column of the same name, without the rows of before: the index is refreshed to the new type."""
    path = tmp_path / "t"
    deltalake.write_deltalake(str(path), rows(0, [1, 2, 3], pa.int64()))
    handle = sec.open_table(path)
    sec.build_index(handle, bloom=["v"], sort_key=["v"])
    texts = rows(0, ["1", "b"], pa.string())
    deltalake.write_deltalake(str(path), texts, mode="overwrite", schema_mode="overwrite")
    require_all_rows(handle, texts, ["1", "a"])
    sec.refresh_index(handle)
    require_all_rows(handle, texts, ["1", "a"])
    deltalake.write_deltalake(str(path), texts.select(["rid"]), mode="overwrite", schema_mode="overwrite")
    sec.refresh_index(handle)
    assert sorted(sec.prune(handle, "rid > 0", strict=True).to_arrow()["rid"].to_pylist()) == [1, 2]
    assert sec.verify_index(handle).sound
