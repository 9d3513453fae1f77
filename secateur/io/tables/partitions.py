"""Columns whose values a table's format or its directories give, one for each file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.arrays import present


@dataclass(frozen=True)
class Partitions:
    """The partition columns of a listing: their fields, and the value of each for every file."""

    fields: tuple[pa.Field, ...]
    values: tuple[pa.Array, ...]


def overlapping(schema: pa.Schema, partitions: Sequence[pa.Field]) -> pa.Schema:
    """Return the table's schema: data columns, typed as a partition column of the same name, then other partitions."""
    by_name = {field.name.lower(): field for field in partitions}
    data = [by_name.pop(field.name.lower(), field) for field in schema]
    return pa.schema([*data, *by_name.values()])


def constant(value: pa.Scalar, n: int) -> pa.Array:
    """n times a partition value."""
    return pa.nulls(n, value.type) if not value.is_valid else pa.repeat(value, n)


def null_counts(values: pa.Array) -> np.ndarray:
    """1 for every NULL, else 0: the null count of a file whose rows are counted as one."""
    return (~present(values)).astype(np.int64)
