"""Rewrite files of a Delta table: OPTIMIZE takes whole partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from secateur.index.advise.row_orders import Curve, RowOrder
from secateur.io.tables.rewriter import RewrittenFiles, sql_columns
from secateur.pruning.predicate.nodes import quoted_name


@dataclass(frozen=True)
class DeltaRewriter:
    """Delta's OPTIMIZE, whose Z-order is one of ranges of ranks; see :class:`secateur.io.tables.rewriter.Rewriter`."""

    location: str
    whole_partitions: bool = True
    orders_values: bool = False
    done: str = "rewritten; refresh the index now"

    def orders(self, columns: Sequence[str]) -> list[RowOrder]:
        """Return the order by each column alone, and the Z-order of all."""
        alone = [RowOrder(Curve.SORT, (name,)) for name in columns]
        return [*alone, *([RowOrder(Curve.ZORDER, tuple(columns))] if len(columns) > 1 else [])]

    def statement(self, files: RewrittenFiles, order: RowOrder, number: int) -> str:
        """Return SQL. ZORDER BY one column sorts by it."""
        where = f" WHERE {files.condition}" if files.partition else ""
        return f"OPTIMIZE delta.{quoted_name(self.location)}{where} ZORDER BY ({sql_columns(order)})"
