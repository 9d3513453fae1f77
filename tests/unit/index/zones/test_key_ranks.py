"""Ranks order as the keys do, and are equal for equal keys."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.zones.key_ranks import ranks
from secateur.values.conversion import keys_of

TYPES = {
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "narrow": (pa.int64(), st.integers(-2, 2)),
    "decimal": (pa.decimal128(38, 2), st.integers(-(10**37), 10**37).map(lambda n: Decimal(n).scaleb(-2))),
    "text": (pa.string(), st.text(max_size=20)),
    "bytes": (pa.binary(), st.binary(max_size=20) | st.sampled_from([b"", b"\0", b"\0\0", b"a", b"a\0"])),
}


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_ranks_order_as_the_values_do(name: str, data: st.DataObject) -> None:
    """Over all parts together, dense from 0, so that n different values have the ranks below n."""
    type_, values = TYPES[name]
    parts = data.draw(st.lists(st.lists(values, max_size=12), min_size=1, max_size=4))
    ranked = ranks([keys_of(pa.array(part, type_)) for part in parts])
    assert [len(of_part) for of_part in ranked] == [len(part) for part in parts]
    every = [_ordered(value) for part in parts for value in part]
    expected = {value: rank for rank, value in enumerate(sorted(set(every)))}
    assert np.concatenate(ranked).tolist() == [expected[value] for value in every]
    assert all(of_part.dtype == np.int64 for of_part in ranked)


def _ordered(value: object) -> object:
    return value.encode() if isinstance(value, str) else value


def test_nothing_has_no_ranks() -> None:
    nothing = keys_of(pa.array([], pa.int64()))
    assert [of_part.tolist() for of_part in ranks([nothing, nothing])] == [[], []]
