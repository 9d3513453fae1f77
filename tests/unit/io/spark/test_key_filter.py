"""The bloom filter of join keys passes every row that has a key, and few others."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.io.spark.key_filter import FPR, KeyedRows, KeyFilter, tuple_hashes
from secateur.pruning.bounds.rangeset import integer_points
from secateur.pruning.predicate.bound import Field, Unsupported, Within
from secateur.pruning.predicate.nodes import And, Truth
from tests.support.profiles import examples

PAIRS = [  # of a column's type and of the keys' type, whose values a join compares as they are
    (pa.int64(), pa.int64(), st.integers(-3, 3)),
    (pa.int32(), pa.int64(), st.integers(-3, 3)),
    (pa.float32(), pa.float64(), st.sampled_from([0.0, -0.0, float("nan"), 1.5, float("inf")])),
    (pa.string(), pa.large_string(), st.text("ab\0", max_size=3)),
    (pa.decimal128(30, 2), pa.decimal128(38, 2), st.integers(-9, 9).map(lambda n: Decimal(n) / 4)),
    (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Zurich"), st.integers(0, 5)),
    (pa.date32(), pa.date32(), st.dates(dt.date(2026, 1, 1), dt.date(2026, 1, 9))),
]


@examples(200)
@given(st.data(), st.lists(st.sampled_from(range(len(PAIRS))), min_size=1, max_size=3, unique=True), st.booleans())
def test_rows_with_a_key_pass(data: st.DataObject, chosen: list[int], null_safe: bool) -> None:
    pairs = [PAIRS[i] for i in chosen]
    tuples = st.tuples(*(st.none() | values for _, _, values in pairs))
    keys = data.draw(st.lists(tuples, max_size=8))
    rows = data.draw(st.lists(tuples, max_size=8)) + keys
    columns = {str(i): pa.array([row[i] for row in rows], pair[0]) for i, pair in enumerate(pairs)}
    hashes, _ = tuple_hashes([pa.array([key[i] for key in keys], pair[1]) for i, pair in enumerate(pairs)])
    fields = tuple(Field((name,), array.type) for name, array in columns.items())
    keyed = KeyedRows(fields, KeyFilter.of(hashes), null_safe)
    passed = keyed(Unsupported(Truth(True), "", fields), pa.record_batch(columns))
    wanted = {repr(key) for key in map(plain, keys) if null_safe or None not in key}
    for row, passes in zip(rows, passed.tolist(), strict=True):
        assert passes or repr(plain(row)) not in wanted
        assert null_safe or None not in row or not passes


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values as a join compares them: both zeros are one, and so is NaN."""
    return tuple("NaN" if value != value else value + 0.0 if isinstance(value, float) else value for value in row)


def test_few_other_rows_pass_and_conditions_still_hold() -> None:
    keys, others = np.arange(0, 300_000, 3), np.arange(1, 300_000, 3)
    filter_ = KeyFilter.of(tuple_hashes([pa.array(keys)])[0])
    assert filter_.may_hold(tuple_hashes([pa.array(keys)])[0]).all()
    assert filter_.may_hold(tuple_hashes([pa.array(others)])[0]).mean() < 2 * FPR
    field = Field(("x",), pa.int64())
    keyed = KeyedRows((field,), filter_, null_safe=False)
    within = Within(field, integer_points(np.arange(100)), Truth(True))
    passed = keyed(And((within, Unsupported(Truth(True), "", (field,)))), pa.record_batch({"x": keys[:60]}))
    assert passed.tolist() == [key < 100 for key in keys[:60].tolist()]
    nothing = KeyFilter.of(np.zeros(0, np.uint64))
    assert not nothing.may_hold(np.arange(9, dtype=np.uint64)).any()
