"""The protocol of a table's own writer: the orders that it writes, the files that it takes, and its statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from secateur.index.advise.row_orders import RowOrder
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.nodes import quoted_name
from secateur.pruning.predicate.python_values import literal


@dataclass(frozen=True)
class RewrittenFiles:
    """Files of one partition, as a statement names them."""

    paths: Sequence[str]  # as Spark takes them
    partition: Sequence[tuple[tuple[str, ...], pa.Scalar]]  # columns that are constant in these files; their values
    is_whole_partition: bool  # whether no other file of the table has these values

    @property
    def condition(self) -> str:
        """SQL that is true in this partition."""
        return " AND ".join(
            f"{_sql(path)} = {literal(value.as_py())}" if value.is_valid else f"{_sql(path)} IS NULL"
            for path, value in self.partition
        )


def can_be_written(value: pa.Scalar) -> bool:
    """Whether SQL has a literal for a value: not for a time of day."""
    try:
        literal(value.as_py())
    except (TypeError, ValueError):
        return False
    return True


def sql_columns(order: RowOrder) -> str:
    """Return the columns of an order as SQL, in back-quotes: parsers differ in what they take without."""
    return ", ".join(_sql(split_name(name)) for name in order.columns)


def _sql(path: Sequence[str]) -> str:
    return ".".join(map(quoted_name, path))


class Rewriter(Protocol):
    """The writer of a table format."""

    @property
    def whole_partitions(self) -> bool:
        """Whether it rewrites all files of a partition, or none."""

    @property
    def orders_values(self) -> bool:
        """Whether the bits of its Z-order are those of the values, and not of their ranks."""

    @property
    def done(self) -> str:
        """What to do once all statements have run."""

    def orders(self, columns: Sequence[str]) -> list[RowOrder]:
        """Return the orders by some columns that it can write."""

    def statement(self, files: RewrittenFiles, order: RowOrder, number: int) -> str:
        """Return what rewrites files in an order; `number` counts the statements of a plan."""
