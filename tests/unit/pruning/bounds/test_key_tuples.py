"""Sets of tuples of keys: what a unit may hold, by its bounds."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.key_tuples import key_tuples
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.rows.text_rows import inside
from secateur.values.conversion import keys_of
from secateur.values.keys import Keys
from tests.support.profiles import examples

TYPES = [pa.int64(), pa.string(), pa.decimal128(30, 0)]
POOLS: list[list[Any]] = [
    [-(2**63), -1, 0, 1, 2, 2**63 - 1],
    ["", "a", "a\0", "b", "x" * 8, "x" * 9],
    [Decimal(sign * n) for sign in (1, -1) for n in (0, 1, 2**64 - 1, 2**64, 10**29)],
]
ROWS = st.tuples(*(st.none() | st.sampled_from(pool) for pool in POOLS))


def nulls(values: list[Any]) -> np.ndarray:
    return np.array([value is None for value in values], bool)


def keys_in(values: list[Any], type_: pa.DataType) -> Keys:
    return keys_of(pa.array(values, type_))


def zones_of(units: list[list[Any]], type_: pa.DataType) -> Zones:
    """The zone map of one column over units of values."""
    present = [[value for value in unit if value is not None] for unit in units]
    some = pa.scalar(POOLS[TYPES.index(type_)][0], type_).as_py()
    key = str.encode if type_ == pa.string() else None
    ends = [(min(unit, key=key), max(unit, key=key)) if unit else (some, some) for unit in present]
    lower, upper = (keys_in([end[side] for end in ends], type_) for side in (0, 1))
    value = np.array([TRUE | FALSE if unit else 0 for unit in present], np.uint8)
    return Zones(lower, upper, value, np.array([NULL if None in unit else 0 for unit in units], np.uint8))


@examples(600)
@given(
    st.lists(ROWS, max_size=6),
    st.lists(st.lists(ROWS, min_size=1, max_size=3), min_size=1, max_size=4),
    st.integers(1, 3),
    st.booleans(),
    st.sets(st.integers(0, 2)),
)
def test_units_may_hold_what_their_rows_are(
    given_keys: list[tuple[Any, ...]], units: list[list[Any]], width: int, null_safe: bool, unknown: set[int]
) -> None:
    wanted = [row[:width] for row in given_keys if null_safe or None not in row[:width]]
    columns = [list(column) for column in zip(*wanted, strict=True)] or [[]] * width
    tuples = key_tuples(
        [(keys_in(column, type_), nulls(column)) for column, type_ in zip(columns, TYPES, strict=False)],
        null_safe=null_safe,
    )
    held = [[row[:width] for row in unit] for unit in units]
    for single, asked in ((False, held), (True, [[row] for unit in held for row in unit])):
        zones = [
            None if i in unknown and not single else zones_of([[row[i] for row in unit] for unit in asked], TYPES[i])
            for i in range(width)
        ]
        by_unit = tuples.outcomes(zones, len(asked)).tolist()
        for unit, outcomes in zip(asked, by_unit, strict=True):
            rows = {NULL if None in row and not null_safe else TRUE if row in wanted else FALSE for row in unit}
            assert sum(rows) & ~outcomes == 0
            if single:
                assert outcomes in rows


def test_equal_sets_are_equal() -> None:
    def made(values: list[int], null_safe: bool = False) -> Any:
        keys = Keys(keys_in([0], pa.int64()).kind, (np.array(values),))
        return key_tuples([(keys, np.zeros(len(values), bool))] * 2, null_safe=null_safe)

    assert made([1, 2]) == made([2, 1, 1]) and hash(made([1, 2])) == hash(made([2, 1]))
    assert made([1, 2]) != made([1, 3]) and made([1]) != made([1], null_safe=True) and made([1]) != made([1, 2])


BYTES = st.lists(st.binary(max_size=20) | st.sampled_from([b"a", b"a\0", b"a\0\0", b"x" * 8, b"x" * 9]))


@examples(300)
@given(BYTES, BYTES)
def test_texts_are_found_among_more_keys_than_texts(keys: list[bytes], texts: list[bytes]) -> None:
    ranges = rangeset.byte_points(pa.array(keys, pa.large_binary()))
    assert inside(pa.array([*texts, None], pa.binary()), ranges).tolist() == [*(text in keys for text in texts), False]
