"""Rewrite files of a directory: Spark writes a sorted copy beside it, which the user puts in place of the old files."""

from __future__ import annotations

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

    def orders(self, columns: Sequence[str]) -> list[RowOrder]:
        """Return the sorted orders: Spark has no function that makes a curve of columns of any type."""
        return [order for order in orders_by(columns) if order.curve is Curve.SORT]

    def statement(self, files: RewrittenFiles, order: RowOrder, number: int) -> str:
        """Return Python that reads the files, and writes their rows sorted, in as many files."""
        columns = ", ".join(map(repr, order.columns))
        names = [name for name, _ in files.partition]
        by_partition = f".partitionBy({', '.join(map(repr, names))})" if names else ""
        return (
            f"spark.read.option('basePath', {self.location!r}).option('mergeSchema', True)"
            f".parquet({', '.join(map(repr, files.paths))})"
            f".repartitionByRange({len(files.paths)}, {columns}).sortWithinPartitions({columns})"
            f".write{by_partition}.parquet({self.copy(order, number)!r})"
        )

    def copy(self, order: RowOrder, number: int) -> str:
        """Return where the copy of a group of files is written."""
        names = re.sub(r"[^\w.]+", "_", "_".join(order.columns))
        return f"{self.location.rstrip('/')}_by_{names}/{number}"
