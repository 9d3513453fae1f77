"""Which bounds are values of their blocks.

A bound is one if

- both bounds are equal: it is the only value;
- it is a number, a date or an instant: such bounds are exact if known. Text may have been truncated;
- for floating types, it also is not zero, whose sign bounds do not record, and, as an upper bound, not NaN, which also
  stands for an unknown NaN count.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds.zones import Zones
from secateur.values.combination import same_width
from secateur.values.key import NAN_KEY, float_key, least_key
from secateur.values.keys import Keys, constant_keys, greatest_keys
from secateur.values.kinds import Kind, is_float

_ZERO = float_key(0.0)


def is_value(zones: Zones, type_: pa.DataType, greatest: bool) -> np.ndarray:
    """Return where a block with values has one of them as its bound."""
    kind, n = zones.lower.kind, len(zones.lower)
    only = _equal(zones.lower, zones.upper)
    if kind is Kind.BYTES:
        return only
    keys_at_end = zones.upper if greatest else zones.lower
    unknown = greatest_keys(kind, n) if greatest else constant_keys(least_key(kind), kind, n)
    known = ~_equal(keys_at_end, unknown)
    if is_float(type_):
        (keys,) = keys_at_end.words
        return known & (keys != _ZERO) & (only | (keys != NAN_KEY))
    return known


def has_one_value(zones: Zones) -> np.ndarray:
    """Return where all values of a block that has some are one, its bound; zeros of either sign are one value."""
    return _equal(zones.lower, zones.upper)


def _equal(a: Keys, b: Keys) -> np.ndarray:
    a, b = same_width([a, b])
    return np.logical_and.reduce([x == y for x, y in zip(a.words, b.words, strict=True)])
