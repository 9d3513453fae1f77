"""What a filtered read asks for: a condition on rows, columns, and what earlier row groups told about reading late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.arrays import flags
from secateur.pruning.predicate.bound_walks import columns
from secateur.pruning.predicate.nodes import Predicate

LEAST_GAIN = 0.2  # of the other columns' bytes: a second read of a row group takes about a tenth of its time
WEIGHT = 0.25  # of the row group read last


@dataclass(frozen=True)
class RowCondition:
    """A condition on rows."""

    predicate: Predicate
    rows: Callable[[Predicate, pa.RecordBatch], np.ndarray]  # bool, for a batch that has the predicate's columns

    @cached_property
    def columns(self) -> frozenset[str]:
        """The top-level columns that the condition needs."""
        return frozenset(columns(self.predicate))

    def __call__(self, batch: pa.RecordBatch) -> np.ndarray:
        return self.rows(self.predicate, batch)

    def among(self, batch: pa.RecordBatch, selected: np.ndarray) -> np.ndarray:
        """Return which of the selected rows of a batch meet the condition, which is evaluated on no other row."""
        passing = selected.copy()
        if selected.any():
            tested = batch.select([name for name in batch.schema.names if name in self.columns])
            passing[selected] = self(tested.filter(flags(selected)))
        return passing


@dataclass
class Gain:
    """What reading other columns later has spared, or would have, in the row groups read so far; threads share it."""

    share: float = 1.0  # of the bytes of the other columns, the last row groups counting most
    is_expected: bool = True  # before any row group was read

    def note(self, spared: float) -> None:
        """Note what share was spared in some row groups."""
        self.share = spared if self.is_expected else self.share + WEIGHT * (spared - self.share)
        self.is_expected = False

    @property
    def is_little(self) -> bool:
        """Whether reading all columns at once is expected to take less time."""
        return self.share < LEAST_GAIN


@dataclass(frozen=True)
class FilteredRead:
    """What is read of the rows that meet a condition."""

    condition: RowCondition
    wanted: Sequence[pa.Field]  # what is returned of them
    fields: Sequence[pa.Field]  # these, and all columns of the condition
    gain: Gain = field(default_factory=Gain, compare=False)

    @cached_property
    def first(self) -> list[pa.Field]:
        """The columns of the condition."""
        return [column for column in self.fields if column.name in self.condition.columns]

    @cached_property
    def others(self) -> list[pa.Field]:
        """The returned columns that the condition does not need."""
        return [column for column in self.wanted if column.name not in self.condition.columns]
