from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.pruning.predicate.joins.semi_join import are_alike

MICROS, NANOS = pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")


@pytest.mark.parametrize(
    ("column", "keys", "alike"),
    [
        (MICROS, pa.timestamp("us", "Asia/Tokyo"), True),
        (MICROS, pa.timestamp("us"), False),
        (NANOS, MICROS, False),
        (NANOS, NANOS, False),
        (pa.int16(), pa.int64(), True),
        (pa.int64(), pa.float64(), False),
        (pa.decimal128(10, 2), pa.decimal128(18, 2), True),
        (pa.decimal128(10, 2), pa.decimal128(25, 2), False),
    ],
)
def test_types_whose_equal_values_have_one_key(column: pa.DataType, keys: pa.DataType, alike: bool) -> None:
    """Nanoseconds have no key here: a filter of many keys failed in its tasks on a column of them."""
    assert are_alike(column, keys) is alike
