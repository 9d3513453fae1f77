"""Where a part of a sum may be known, no sum of any of the values leaves the type in which Spark adds."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.io.scan.aggregate import bound
from secateur.pruning.aggregates.answers import AggregateCall
from secateur.pruning.aggregates.order_free import is_order_free
from secateur.pruning.predicate.nodes import Column
from tests.support.profiles import examples
from tests.support.tables import write_file

LIMITS = {  # where Spark adds: as a type of integers, or as doubles; decimals by their unscaled values
    ("sum", pa.int64()): 2**63,
    ("avg", pa.int64()): 2**53,
    ("sum", pa.decimal128(38, 2)): 10**38,
    ("avg", pa.decimal128(38, 2)): 10**38,
    ("sum", pa.decimal128(18, 2)): 10**28,
    ("avg", pa.decimal128(11, 2)): 2**53,
}


def order_free(function: str, blocks: list[list[int | None]], type_: pa.DataType) -> bool:
    with tempfile.TemporaryDirectory() as root:
        for i, values in enumerate(blocks):
            scaled = values if type_ == pa.int64() else [None if v is None else Decimal(v).scaleb(-2) for v in values]
            write_file(Path(root) / f"{i}.parquet", pa.table({"x": pa.array(scaled, type_)}))
        plan = sec.prune(sec.open_table(root), "true")
        (aggregate,) = bound(plan, [AggregateCall(function, Column(("x",)), "")], case_sensitive=True)
        return is_order_free(aggregate, plan.survivors.blocks)


@examples(60)
@given(st.sampled_from(list(LIMITS.items())), st.data())
def test_no_partial_sum_leaves_the_type(case: tuple[tuple[str, pa.DataType], int], data: st.DataObject) -> None:
    (function, type_), limit = case
    digits = 18 if type_ == pa.int64() else min(type_.precision, 27)
    greatest = min(10**digits - 1, limit // 3)
    value = st.none() | st.integers(-greatest, greatest) | st.sampled_from([-greatest, greatest])
    blocks = data.draw(st.lists(st.lists(value, min_size=1, max_size=4), min_size=1, max_size=3))
    values = [v for block in blocks for v in block if v is not None]
    most = max(sum(v for v in values if v > 0), -sum(v for v in values if v < 0))
    assert not order_free(function, blocks, type_) or most < limit


@pytest.mark.parametrize("values", [[], [None] * 3, [1, -2, None], [2**53 // 4]])
def test_what_is_far_from_the_limit_is_free(values: list[int | None]) -> None:
    assert order_free("sum", [values], pa.int64())
    assert order_free("avg", [values], pa.int64())
    assert not order_free("avg", [[2**53 // 2] * 2], pa.int64())
    assert not order_free("sum", [[2**61] * 5], pa.int64())
