"""Columns in units of rows, and their zone maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from secateur.index.zones import zonemap
from secateur.index.zones.zonemap import ZoneMap
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, kind_of
from tests.support.drawn.strategies import KINDS, ColumnKind, array_of

# A column, and its values in some units; None is NULL.
units = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(
        st.just(kind), st.lists(st.lists(kind.values | st.none(), max_size=6), min_size=1, max_size=8)
    )
)


def measured(kind: ColumnKind, values: Sequence[Sequence[Any]]) -> tuple[ZoneMap, np.ndarray]:
    """The zone maps of units as a build measures them, and the row counts."""
    maps = [zonemap.of_values(array_of(unit, kind.type), kind.type) for unit in values]
    lower, upper, null_count, nan_count = zip(*maps, strict=True)
    type_ = pa.binary() if kind_of(kind.type) is Kind.BYTES else kind.type
    row_count = np.array([len(unit) for unit in values])
    counts = np.array(null_count), np.array(nan_count)
    low, high = pa.array(list(lower), type_), pa.array(list(upper), type_)
    return zonemap.from_bounds(kind.type, low, high, *counts, row_count), row_count


def at_most(keys: Keys, bounds: Keys) -> np.ndarray:
    """Which keys are <= the bounds beside them."""
    joined = zonemap.concatenate([keys, bounds])
    first, second = (tuple(word[part] for word in joined.words) for part in (slice(len(keys)), slice(len(keys), None)))
    below, tied = np.zeros(len(keys), bool), np.ones(len(keys), bool)
    for a, b in zip(first, second, strict=True):
        below |= tied & (a < b)
        tied &= a == b
    return below | tied
