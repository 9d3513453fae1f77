"""Functions of decimals of many digits, over units without a value."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import secateur as sec
from tests.support.tables import write_file

NOWHERE = [
    "-d > d + 1",
    "abs(d) < d - 1",
    "-nullif(d, d) > 0.5D",
    "abs(CASE WHEN i > 9 THEN d END) > i",
    "greatest(CAST(NULL AS DECIMAL(20,0)), -d) > d",
]


@pytest.mark.parametrize("sql", NOWHERE)
def test_decimals_of_units_that_are_null(tmp_path: Path, sql: str) -> None:
    """Their bounds are any keys, also the least, whose negative is no key."""
    for name, value in (("a", Decimal(1)), ("b", None)):
        columns = {"i": [1, 2], "d": pa.array([value, value], pa.decimal128(20, 0))}
        write_file(tmp_path / f"{name}.parquet", columns, row_group_size=1)
    assert sec.prune(tmp_path, sql).count() == 0
    sec.build_index(tmp_path, segment_blocks=1)
    assert sec.prune(tmp_path, sql).count() == 0
    assert sec.prune(tmp_path, f"({sql}) IS NULL OR NOT ({sql})").count() == 4
