"""Columns of files in the table's types."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import pyarrow as pa
import pytest

from secateur.io.parquet.arrow_types import conform_array

LISTS = [[1, 2], None, [3, None], [], None, [4]]
MAPS = [[("a", 1)], None, [("b", 2), ("c", None)], [], None]
STRUCTS = [{"a": [1]}, None, {"a": None}, {"a": [2, 3]}]
PAIRS = [[1, 2], None, [3, None], None, [4, 5]]


@pytest.mark.parametrize(
    ("values", "stored", "wanted"),
    [
        (LISTS, pa.list_(pa.int32()), pa.list_(pa.int64())),
        (LISTS, pa.large_list(pa.int32()), pa.list_(pa.int64())),
        (PAIRS, pa.list_(pa.int32(), 2), pa.list_(pa.int64())),
        (MAPS, pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())),
        (STRUCTS, pa.struct([("a", pa.list_(pa.int32()))]), pa.struct([("a", pa.list_(pa.int64()))])),
    ],
)
def test_parts_of_nested_columns_are_widened(values: list[Any], stored: pa.DataType, wanted: pa.DataType) -> None:
    """Rows that a scan leaves out are cut away before."""
    array = pa.array(values, stored)
    for begin, end in combinations_with_replacement(range(len(values) + 1), 2):
        widened = conform_array(array.slice(begin, end - begin), wanted)
        widened.validate(full=True)
        assert widened == pa.array(values[begin:end], wanted)
