"""The different values of blocks by ordered postings: those of their rows, or unknown."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.index.read import listed_values
from secateur.pruning.predicate.bound import Field
from secateur.scan import Scan
from tests.support.profiles import examples

POOLS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, 2**63 - 1, -(2**63), 77],
    pa.int8(): [0, 1, -128, 127],
    pa.float64(): [0.0, -0.0, math.nan, math.inf, -1.5, 5e-324],
    pa.float32(): [0.0, -0.0, math.nan, 1.5],
    pa.bool_(): [True, False],
    pa.date32(): [dt.date(1969, 12, 31), dt.date(2026, 1, 1)],
    pa.timestamp("us", "UTC"): [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(1900, 1, 1, 1, tzinfo=dt.UTC)],
    pa.decimal128(12, 2): [Decimal("0.00"), Decimal("-1.25"), Decimal("99999.99")],
    pa.decimal128(30, 3): [Decimal("0.125"), Decimal(-(2**40)), Decimal(2**64) + Decimal("0.5")],
    pa.string(): ["", "a", "user-1", "user-12", "user-\0", "user-é", "user-123456789", "user-1\0", "x" * 20],
    pa.binary(): [b"", b"\0", b"\0\0", b"\xff" * 8, b"\xff" * 9, b"ab"],
}
ROWS, GROUP = 24, 4


def plan_of(root: Path, values: pa.Array, **options: Any) -> Scan:
    """A plan of all rows of a table with one column, whose values are listed, in two files."""
    for i in (0, 1):
        piece = pa.table({"x": values.slice(i * ROWS // 2, ROWS // 2)})
        pq.write_table(piece, root / f"{i}.parquet", row_group_size=GROUP)
    table = sec.open_table(str(root))
    sec.build_index(table, postings={"x": "ordered"}, **options)
    return Scan.of(sec.prune(sec.open_table(str(root)), "TRUE", strict=True))


@examples(12, shrink=False)
@given(st.data())
@pytest.mark.parametrize("type_", list(POOLS), ids=str)
def test_listed_values_are_those_of_the_rows(
    tmp_path_factory: pytest.TempPathFactory, type_: pa.DataType, data: st.DataObject
) -> None:
    pool = data.draw(st.lists(st.sampled_from(POOLS[type_]), min_size=1, unique_by=repr))
    values = data.draw(st.lists(st.none() | st.sampled_from(pool), min_size=ROWS, max_size=ROWS))
    plan = plan_of(tmp_path_factory.mktemp("t"), pa.array(values, type_), segment_blocks=data.draw(st.integers(1, 6)))
    blocks = plan.survivors.blocks
    n = len(blocks)
    asked = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    listed = blocks.listed_values(Field(("x",), type_), asked)
    if listed is None:
        return
    assert not (listed.is_known & ~asked).any()
    chosen = listed.is_known & np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    begins = (blocks.file * (ROWS // 2) + blocks.row_group * GROUP)[chosen].tolist()
    rows = [value for begin in begins for value in values[begin : begin + GROUP]]
    known = {same(value) for part in listed.over(chosen) for value in part.to_pylist()}
    assert known == {same(value) for value in rows if value is not None}


def same(value: Any) -> Any:
    """A value as Spark tells it from others: zeros of either sign are one, and so is NaN. Texts are their bytes."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value.encode() if isinstance(value, str) else value


def test_what_is_left_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of which few blocks are asked for, values that heads do not tell, and more entries than are read."""
    every = np.ones(6, bool)
    numbers = plan_of(tmp_path, pa.array(range(ROWS)), segment_blocks=3)

    def known(asked: np.ndarray) -> list[bool] | None:
        listed = numbers.survivors.blocks.listed_values(Field(("x",), pa.int64()), asked)
        return None if listed is None else listed.is_known.tolist()

    assert known(every) == [True] * 6
    monkeypatch.setattr(listed_values, "LEAST_SHARE", 0.5)
    assert known(np.array([True, False, False, True, True, False])) == [False] * 3 + [True, True, False]
    assert known(~every) is None
    monkeypatch.setattr(listed_values, "MOST_ENTRIES", 12)
    assert known(every) == [True] * 3 + [False] * 3
    texts = plan_of(tmp_path, pa.array([f"user-{i:04d}-and-more" for i in range(ROWS)]))
    assert texts.survivors.blocks.listed_values(Field(("x",), pa.string()), every) is None
    assert numbers.survivors.blocks.listed_values(Field(("y",), pa.int64()), every) is None
