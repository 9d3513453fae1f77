"""Keys at the edges of a column's type; the casts themselves are compared with Spark's in tests/spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secateur.errors import IncomparableLiteral
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.joins.key_casts import cast_keys

BINDER = Binder(pa.schema([]), known_zone("UTC"))
DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("type_", "keys", "expected"),
    [
        (pa.int8(), pa.array([1, None, 128, -129]), [1, None, None, None]),
        (pa.int64(), pa.array([1, 2**64 - 1], pa.uint64()), [1, None]),
        (pa.int64(), pa.array([255], pa.uint8()), [255]),
        (pa.int32(), pa.array([Decimal("1.00"), None, Decimal("1.50")]), [1, None, None]),
        (pa.int64(), pa.array([], pa.float64()), []),
        (pa.int32(), pa.nulls(2), [None, None]),
        (pa.float32(), pa.array([0.1, 1e300, 0.5, None]), [None, None, 0.5, None]),
        (pa.float64(), pa.array([2**64 - 1], pa.uint64()), [2.0**64]),
        (pa.decimal128(5, 2), pa.array([Decimal("1000.00"), Decimal("999.990")]), [None, Decimal("999.99")]),
        (pa.string(), pa.array(["a", None]).dictionary_encode(), ["a", None]),
        (pa.binary(), pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        (pa.timestamp("us", "UTC"), pa.array([DAY.date(), None]), [DAY, None]),
        (pa.timestamp("us", "UTC"), pa.array([], pa.timestamp("s")), []),
        (pa.date32(), pa.array([dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, 1)]), [DAY.date(), None]),
    ],
)
def test_a_key_is_the_one_value_that_equals_it(type_: pa.DataType, keys: pa.Array, expected: list[Any]) -> None:
    cast = cast_keys(Field(("x",), type_), keys, BINDER)
    assert cast.type == type_ and cast.to_pylist() == expected


@pytest.mark.parametrize(
    ("type_", "keys", "words"),
    [
        (pa.int64(), pa.array([2.0**53]), "rounds the column from 9007199254740992"),
        (pa.decimal128(38, 30), pa.array([1]), "more than 38 digits"),
        (pa.decimal128(9, 2), pa.array([1.5]), "cast the keys to the column's type"),
        (pa.timestamp("us", "UTC"), pa.array([1], pa.timestamp("ns")), "lose data"),
        (pa.timestamp("us"), pa.array([DAY]), "timestamps without zone first"),
        (pa.date32(), pa.array([DAY]), "cast the keys to dates first"),
        (pa.int64(), pa.array(["1"]), "cast the keys"),
        (pa.list_(pa.int64()), pa.array([1]), "cast the keys"),
        (pa.large_string(), pa.array(["a"]), "cast the keys"),
    ],
)
def test_what_is_not_exact_is_refused(type_: pa.DataType, keys: pa.Array, words: str) -> None:
    with pytest.raises(IncomparableLiteral, match=words):
        cast_keys(Field(("x",), type_), keys, BINDER)
