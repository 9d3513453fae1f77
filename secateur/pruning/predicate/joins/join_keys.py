"""Join keys as they were given: a semi join asks for the rows whose values equal one of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa


@dataclass(frozen=True, eq=False)
class JoinKeys:
    """Keys: the rows of `table`, in any order, repeated or not, with a column for each column of the join."""

    table: pa.Table
    null_safe: bool = False  # whether NULL equals NULL

    def __len__(self) -> int:
        return self.table.num_rows

    def column(self, i: int) -> JoinKeys:
        """Return the keys of one column."""
        return JoinKeys(self.table.select([i]), self.null_safe)

    def __str__(self) -> str:
        return "1 key" if len(self) == 1 else f"{len(self):,} keys"

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, JoinKeys) and self.null_safe == other.null_safe and self.table.equals(other.table)
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((str(self.table.schema), len(self), self.null_safe))


@dataclass(frozen=True, eq=False)
class ManyKeys:
    """More keys than are collected: per column `first` and `last` of intervals that hold them all, where known.

    Sound: the value of a key in a column lies in one of the column's intervals. Only Spark knows which rows match.
    """

    intervals: tuple[pa.Table | None, ...]
    null_safe: bool = False
    frame: object = None  # the keys as a Spark DataFrame, whose columns are called by their positions

    def __getstate__(self) -> dict[str, object]:
        """Pickle the intervals; a DataFrame belongs to its session."""
        return {**self.__dict__, "frame": None}

    def __str__(self) -> str:
        return "more keys than are collected"
