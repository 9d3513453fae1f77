"""Tests of values on rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.rows.text_rows import inside, value_outcomes
from secateur.values.conversion import float_keys, keys_of
from secateur.values.key import INT64_MAX, INT64_MIN, NAN_KEY
from secateur.values.kinds import Kind

LEAST, GREATEST = np.finfo(np.float64).smallest_subnormal, np.finfo(np.float64).max
EDGES = [-np.inf, -GREATEST, -1.5, -LEAST, -0.0, 0.0, LEAST, 1.5, GREATEST, np.inf, np.nan]
OTHER_NANS = np.array([-1, 0x7FF0_0000_0000_0001, INT64_MAX]).view(np.float64)


def _sets() -> list[RangeSet]:
    """All sets of one or two thresholds that are at, or just above, the key of a value, or beyond all keys."""
    at = float_keys(np.array(EDGES))
    cuts = np.unique(np.concatenate([at - 1, at, at + 1, [INT64_MIN, NAN_KEY - 5, INT64_MAX]]))
    thresholds = [(), *((cut,) for cut in cuts.tolist()), *combinations(cuts.tolist(), 2), tuple(cuts[::4].tolist())]
    return [RangeSet(Kind.WORD, np.array(of_set, np.int64)) for of_set in thresholds]


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()])
def test_doubles_are_compared_as_their_keys(type_: pa.DataType) -> None:
    with np.errstate(all="ignore"):
        values = pa.array(np.concatenate([EDGES, OTHER_NANS]).astype(type_.to_pandas_dtype()))
    for ranges in _sets():
        keys = keys_of(values).words[0]
        expected = [bool((ranges.thresholds <= key).sum() % 2) for key in keys]
        assert inside(values, ranges).tolist() == expected, ranges.thresholds


@pytest.mark.parametrize("type_", [pa.int64(), pa.int8()])
def test_integers_of_one_range_are_compared_as_those_of_several(type_: pa.DataType) -> None:
    values = pa.array([-128, -1, 0, 1, 127], type_)
    for thresholds in [(), (INT64_MIN,), (1,), (-1, 1), (127, INT64_MAX), (-5, 0, 1, 2)]:
        ranges = RangeSet(Kind.WORD, np.array(thresholds, np.int64))
        expected = [sum(threshold <= value for threshold in thresholds) % 2 == 1 for value in values.to_pylist()]
        assert inside(values, ranges).tolist() == expected, thresholds


def test_null_has_its_outcome_whatever_its_slot_holds() -> None:
    slots = pa.array([0.0, 5.0, 0.0, 5.0])
    values = pa.Array.from_buffers(pa.float64(), 4, [pa.py_buffer(b"\x03"), slots.buffers()[1]])
    ranges = RangeSet(Kind.WORD, float_keys(np.array([1.0])))
    assert value_outcomes(ranges, values).tolist() == [FALSE, TRUE, NULL, NULL]
    assert value_outcomes(ranges, values.slice(1, 2)).tolist() == [TRUE, NULL]
