"""Rewrite files of a directory: Spark writes a sorted copy beside it, which the user puts in place of the old files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from secateur.index.advise.row_orders import Curve, RowOrder, orders_by
from secateur.io.tables.rewriter import RewrittenFiles


@dataclass(frozen=True)
class DirectoryRewriter:
    """Spark's Parquet writer; see :class:`secateur.io.tables.rewriter.Rewriter`."""

    location: str
    whole_partitions: bool = False
    orders_values: bool = False
    done: str = "copies are written; put them in place of the old files, then refresh the index"

    def orders(self, columns: Sequence[str]) -> list[RowOrder]:
        """Return the sorted orders: Spark has no function that makes a curve of columns of any type."""
        return [order for order in orders_by(columns) if order.curve is Curve.SORT]

    def statement(self, files: RewrittenFiles, order: RowOrder, number: int) -> str:
        """Return Python that reads the files, and writes their rows sorted, in as many files."""
        columns = ", ".join(map(repr, order.columns))
        return (
            f"spark.read.option('mergeSchema', True)"
            f".parquet({', '.join(map(repr, files.paths))})"
            f".repartitionByRange({len(files.paths)}, {columns}).sortWithinPartitions({columns})"
            f".write.parquet({self.copy(files, order, number)!r})"
        )

    def copy(self, files: RewrittenFiles, order: RowOrder, number: int) -> str:
        """Return where the copy of a group of files is written.

        The directories of a partition keep their names. Spark would guess a type for their values, and name them anew:
        ``day=01`` as ``day=1``.
        """
        names = re.sub(r"[^\w.]+", "_", "_".join(order.columns))
        root = self.location.rstrip("/")
        first = posixpath.dirname(files.paths[0]).removeprefix(root)
        return f"{root}_by_{names}/{number}{first if files.partition else ''}"
