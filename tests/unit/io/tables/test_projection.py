"""Columns of files, found by field id, in the table's types."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import pyarrow as pa
import pytest

from secateur.io.tables.projection import projected


def numbered(name: str, type_: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(number)})


def of_items(item: pa.DataType) -> pa.DataType:
    return pa.list_(numbered("element", item, 2))


def of_entries(item: pa.DataType) -> pa.DataType:
    return pa.map_(numbered("key", pa.string(), 2).with_nullable(False), numbered("value", item, 3))


@pytest.mark.parametrize(
    ("values", "stored", "wanted"),
    [
        ([[1, 2], None, [3, None], [], None, [4]], of_items(pa.int32()), of_items(pa.int64())),
        ([[("a", 1)], None, [("b", 2), ("c", None)], [], None], of_entries(pa.int32()), of_entries(pa.int64())),
    ],
)
def test_parts_of_nested_columns_are_projected(values: list[Any], stored: pa.DataType, wanted: pa.DataType) -> None:
    """Rows that a scan leaves out are cut away before, also where no type differs."""
    array, field = pa.array(values, stored), numbered("v", wanted, 1)
    for begin, end in combinations_with_replacement(range(len(values) + 1), 2):
        for source in (array, array.cast(wanted)):
            part = projected(source.slice(begin, end - begin), numbered("v", source.type, 1), field, {})
            part.validate(full=True)
            assert part == pa.array(values[begin:end], wanted)
