"""Columns whose values come from a table's format or directories, one per file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.arrays import present


@dataclass(frozen=True)
class Partitions:
    """The partition columns of a listing: their fields, and one value per file."""

    fields: tuple[pa.Field, ...]
    values: tuple[pa.Array, ...]

    def take(self, files: pa.Array) -> Partitions:
        """Return the values of some files, given by their positions."""
        return Partitions(self.fields, tuple(values.take(files) for values in self.values))


def overlapping(schema: pa.Schema, partitions: Sequence[pa.Field]) -> pa.Schema:
    """Return the table's schema: data columns, typed as a partition column of the same name, then other partitions."""
    by_name = {field.name.lower(): field for field in partitions}
    data = [by_name.pop(field.name.lower(), field) for field in schema]
    return pa.schema([*data, *by_name.values()])


def constant(value: pa.Scalar, n: int) -> pa.Array:
    """Repeat a partition value n times."""
    return pa.nulls(n, value.type) if not value.is_valid else pa.repeat(value, n)


def null_counts(values: pa.Array) -> np.ndarray:
    """Return 1 for NULL, else 0: the null count if every file counts as one row."""
    return (~present(values)).astype(np.int64)
