"""Which types share their keys."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.values.kinds import same_keys


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (pa.int8(), pa.int64(), True),
        (pa.float32(), pa.float64(), True),
        (pa.decimal128(9, 2), pa.decimal128(18, 2), True),
        (pa.decimal128(20, 2), pa.decimal128(38, 2), True),
        (pa.decimal128(18, 2), pa.decimal128(19, 2), False),  # another kind
        (pa.decimal128(9, 2), pa.decimal128(9, 3), False),
        (pa.int32(), pa.float64(), False),
        (pa.int32(), pa.date32(), False),
        (pa.int64(), pa.timestamp("us"), False),
        (pa.string(), pa.binary(), False),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False),
        (pa.bool_(), pa.int8(), False),
    ],
)
def test_c13_types_that_share_keys(a: pa.DataType, b: pa.DataType, same: bool) -> None:
    assert same_keys(a, b) is same
    assert same_keys(b, a) is same
