"""Ordered postings are simulated as look-ups use them: ranges of too many values are left to bounds."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.index.advise.simulate import SimulatedFilter, are_too_many
from secateur.pruning.bounds.rangeset import between
from secateur.pruning.predicate.bound import Field, Within
from secateur.values.kinds import Kind

LEAF = Within(Field(("a",), pa.int64()), between(Kind.WORD, 0, 10), "a < 10")


@pytest.mark.parametrize(
    ("rows", "hits", "blocks", "too_many"),
    [
        (1_000_000, 0, 10_000, False),  # a segment has 156 blocks
        (1_000_000, 200, 10_000, False),  # 16 pages of 2,048 values, of some 76,000
        (1_000_000, 15_000, 10_000, False),  # less than a 64th
        (1_000_000, 16_000, 10_000, True),
        (400, 300, 200, False),  # a segment has 13 pages
        (400, 400, 2_000_000, True),  # it has 800
        (0, 0, 10, False),
    ],
)
def test_a_64th_of_the_pages_and_more_than_16(rows: int, hits: int, blocks: int, too_many: bool) -> None:
    simulated = [SimulatedFilter(rows, {LEAF: True}, {LEAF: hits})] * 3
    assert are_too_many(simulated, LEAF, blocks) == too_many


def test_values_that_lie_apart_count_together() -> None:
    """A clustered range fills some blocks and is in no others: its share is that of the table."""
    full, empty = (SimulatedFilter(100_000, {LEAF: True}, {LEAF: hits}) for hits in (100_000, 0))
    assert not are_too_many([full, *[empty] * 99], LEAF, 10_000)
    assert are_too_many([full, *[empty] * 9], LEAF, 10_000)
