"""Rewrite files of an Iceberg table: its rewrite_data_files, which also applies their deletes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from secateur.index.advise.row_orders import Curve, RowOrder, orders_by
from secateur.io.tables.rewriter import RewrittenFiles, sql_columns
from secateur.pruning.predicate.nodes import quoted_name

NO_STATEMENT = (
    "-- none: Iceberg's procedure takes no list of files, only a whole table by its name in a catalog, or a whole "
    "identity partition; apply=True rewrites these files"
)


@dataclass(frozen=True)
class IcebergRewriter:
    """Iceberg's procedure and its action; see :class:`secateur.io.tables.rewriter.Rewriter`."""

    location: str
    identifier: tuple[str, ...] | None  # the catalog's name first
    whole_partitions: bool = False
    orders_values: bool = True
    done: str = "rewritten; refresh the index now"

    def orders(self, columns: Sequence[str]) -> list[RowOrder]:
        """Return the sorted orders and the Z-order; Hilbert's curve came with Iceberg 1.12."""
        return [order for order in orders_by(columns) if order.curve is not Curve.HILBERT]

    def statement(self, files: RewrittenFiles, order: RowOrder, number: int) -> str:
        """Return a call of Iceberg's procedure if a partition has no other files: it takes no paths."""
        if self.identifier is None or not files.is_whole_partition:
            return NO_STATEMENT
        catalog, *name = self.identifier
        arguments = [
            f"table => {_text('.'.join(map(quoted_name, name)))}",
            "strategy => 'sort'",
            f"sort_order => {_text(sort_order(order))}",
            *([f"where => {_text(files.condition)}"] if files.partition else []),
            "options => map('rewrite-all', 'true')",
        ]
        return f"CALL {quoted_name(catalog)}.system.rewrite_data_files({', '.join(arguments)})"


def sort_order(order: RowOrder) -> str:
    """Return an order as Iceberg's procedure takes it."""
    columns = sql_columns(order)
    return columns if order.curve is Curve.SORT else f"{order.curve}({columns})"


def _text(value: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
