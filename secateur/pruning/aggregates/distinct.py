"""The different values of a column, as Spark tells them apart: both zeros are one, so is NaN, and NULL is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.pruning.rows.row_values import values_of
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, is_float, kind_of


@dataclass(frozen=True)
class DistinctValues:
    """The different values of a column over some rows."""

    parts: tuple[pa.Array, ...] = ()  # no value twice in a part

    @classmethod
    def of(cls, values: pa.Array) -> DistinctValues:
        """Return the different values of an array."""
        values = values.drop_null()
        if is_float(values.type):
            signless = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 + 0.0 = 0.0
            values = pc.if_else(pc.is_nan(values), pa.scalar(np.nan, values.type), signless)
        return cls((_with_long_offsets(values).unique(),) if len(values) else ())

    @classmethod
    def of_keys(cls, keys: Keys, type_: pa.DataType) -> DistinctValues:
        """Return the different values that some keys have."""
        return cls.of(values_of(keys, type_, np.ones(len(keys), bool)))

    @classmethod
    def of_different_keys(cls, keys: Keys, type_: pa.DataType) -> DistinctValues:
        """Return the values of some keys, none of which is there twice."""
        return cls((_with_long_offsets(values_of(keys, type_, np.ones(len(keys), bool))),) if len(keys) else ())

    def joined(self, other: DistinctValues) -> DistinctValues:
        """Return the values of either; parts are merged when those behind the first hold more than it does."""
        parts = (*self.parts, *other.parts)
        if sum(map(len, parts)) <= 2 * len(parts[0] if parts else ()):
            return DistinctValues(parts)
        return DistinctValues((_merged(parts),))

    @property
    def count(self) -> int:
        """The number of different values."""
        match self.parts:
            case ():
                return 0
            case (only,):
                return len(only)
            case several:
                return len(_merged(several))


def _with_long_offsets(values: pa.Array) -> pa.Array:
    """Return texts as large binary, since many long ones need offsets of 64 bits; other values as they are."""
    return values.cast(pa.large_binary()) if kind_of(values.type) is Kind.BYTES else values


def _merged(parts: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays(parts).unique()
