"""Covers of keys: every key lies in an interval, there are no more intervals than asked for, and wide gaps are kept."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.bound_walks import is_supported
from secateur.pruning.predicate.joins.join_keys import ManyKeys
from secateur.pruning.predicate.joins.key_covers import covering
from secateur.pruning.predicate.joins.semi_join import joined
from secateur.pruning.predicate.nodes import And, Column, SemiJoin
from secateur.pruning.rows.truth import possible_rows
from tests.support.profiles import examples

TEXTS = st.one_of(
    st.text(alphabet="ab\0é", max_size=4),
    st.builds(lambda n: f"user-{n:06d}", st.integers(0, 999_999)),
    st.builds(lambda n: "the same beginning of all of them " + str(n), st.integers(0, 99)),
)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-50, 50) | st.sampled_from([2**63 - 1, -(2**63)]),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), -7.25]),
    pa.string(): TEXTS,
    pa.binary(): st.binary(max_size=3) | st.sampled_from([b"\xff" * 9, b"\xff" * 8, b"\0" * 9]),
    pa.decimal128(38, 0): st.integers(-(10**20), 10**20).map(Decimal),
    pa.decimal128(12, 2): st.decimals(-99, 99, places=2),
    pa.timestamp("us", "UTC"): st.integers(-(10**15), 10**15),
}


@examples(60)
@given(st.data(), st.integers(1, 6))
@pytest.mark.parametrize("type_", list(VALUES), ids=str)
def test_covers_hold_every_key(type_: pa.DataType, data: st.DataObject, most: int) -> None:
    """Also covers of covers, as tasks and the driver make them; and a plan drops no row that has a key."""
    parts = data.draw(st.lists(st.lists(VALUES[type_], max_size=12), min_size=1, max_size=3))
    covers = [covering(array, array, most) for part in parts for array in [pa.array(part, type_)]]
    first, last = covering(*(pa.concat_arrays(side) for side in zip(*covers, strict=True)), most)
    assert first.type == last.type == type_
    assert len(first) == len(last) <= most
    keys = pa.array([value for part in parts for value in part], type_)
    others = pa.array(data.draw(st.lists(VALUES[type_], max_size=8)), type_)
    batch = pa.record_batch({"x": pa.concat_arrays([keys, others])})
    ends = pa.table([first, last], ["first", "last"])
    join = SemiJoin((Column(("x",)),), ManyKeys((ends,)))
    bound = joined(join, Binder(batch.schema, known_zone("UTC")))
    assert isinstance(bound, And)
    known = [part for part in bound.children if is_supported(part)]
    assert len(known) == 1
    assert possible_rows(known[0], batch)[: len(keys)].all()


@pytest.mark.parametrize("prefix", ["", "a long text that every key begins with: "])
def test_the_widest_gaps_are_kept(prefix: str) -> None:
    groups = [range(100, 120), range(5000, 5010), range(700_000, 700_500)]
    keys = pa.array([f"{prefix}{i:06d}" for group in groups for i in group])
    first, last = covering(keys, keys, 3)
    assert first.to_pylist() == [f"{prefix}{group[0]:06d}" for group in groups]
    assert last.to_pylist() == [f"{prefix}{group[-1]:06d}" for group in groups]
    first, last = covering(keys, keys, 2)
    assert (first.to_pylist()[1], last.to_pylist()[0]) == (f"{prefix}700000", f"{prefix}005009")
    wide = pa.array([Decimal(10**25 * i) for i in (1, 2, 40, 41)], pa.decimal128(38, 0))
    assert covering(wide, wide, 2)[0].to_pylist() == [Decimal(10**25), Decimal(40 * 10**25)]
