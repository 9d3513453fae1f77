"""Values of expressions on rows: of every type, through functions on arrays and through intervals alike."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from secateur.pruning.predicate.binding.bind import operand_of
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.sql.parse import parse_value
from secateur.pruning.rows.row_values import Rows

BATCH = pa.record_batch(
    {
        "s": pa.array(["Ab c", " x ", None]),
        "i": pa.array([7, -(2**31), None], pa.int32()),
        "d": pa.array([1.5, float("nan"), None]),
        "m": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(5, 2)),
        "w": pa.array([Decimal(-(10**25)), Decimal(3), None], pa.decimal128(30, 0)),
        "t": pa.array([dt.datetime(2024, 2, 29, 12), dt.datetime(1960, 1, 1), None], pa.timestamp("us", "UTC")),
        "b": pa.array([b"\xff", b"", None]),
    }
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("s", ["Ab c", " x ", None]),
        ("upper(trim(s))", ["AB C", "X", None]),
        ("concat(s, '-', i)", ["Ab c-7", " x --2147483648", None]),
        ("length(trim(s))", [4, 1, None]),
        ("coalesce(lower(s), 'none')", ["ab c", " x ", "none"]),
        ("CASE WHEN upper(s) LIKE 'A%' THEN s ELSE 'other' END", ["Ab c", "other", "other"]),
        ("i - 1", [6, "?", None]),
        ("d * 2", [3.0, float("nan"), None]),
        ("m + m", [Decimal("3.00"), Decimal("-4.50"), None]),
        ("w + 1", [Decimal(1 - 10**25), Decimal(4), None]),
        ("CAST(t AS DATE)", [dt.date(2024, 2, 29), dt.date(1960, 1, 1), None]),
        ("coalesce(t, TIMESTAMP '2000-01-01')", [2024, 1960, 2000]),
        ("i > 0", [True, False, None]),
        ("split(s, ' ')[2]", ["?", "", None]),
        ("coalesce(b, X'01')", [b"\xff", b"", b"\x01"]),
    ],
)
def test_values_are_computed_row_by_row(text: str, values: list[object]) -> None:
    answer = Rows(BATCH).values(operand_of(parse_value(text), Binder(BATCH.schema, dt.UTC)))
    printable = ["?" if u else v for v, u in zip(answer.values.to_pylist(), answer.unknown.tolist(), strict=True)]
    assert str([v.year if isinstance(v, dt.datetime) else v for v in printable]) == str(values)
