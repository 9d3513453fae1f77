"""What the options of an open table's index make of a query: its expressions, and what its sort key says of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from secateur.index.model import IndexedColumn
from secateur.index.naming import ByFieldId, ColumnNaming
from secateur.index.segments.named_columns import called_in_table, expressions_of
from secateur.index.zones.sort_key import SortColumn, parse_sort_key, tuple_condition, tuple_order
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.tables.field_ids import called_by_id
from secateur.pruning.order import Order, OrderItem, bind_order
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.bound import Field, Within
from secateur.pruning.predicate.indexed.indexed_expressions import IndexedExpression
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.variant_paths import column_of


def fields_at_paths(opened: OpenedTable) -> list[Field]:
    """Return the values at paths into VARIANT that are indexed, without those of a column of partition values."""
    snapshot = opened.catalog.snapshot
    if snapshot is None or not snapshot.options.expressions:
        return []
    outside = {name.lower() for name in opened.listing.columns}
    known = expressions_of(called_in_table(snapshot.options, opened.table.naming), opened.schema)
    at_paths = (expression.at_path for expression in known)
    return [field for field in at_paths if field is not None and column_of(field.path)[0].lower() not in outside]


def indexed_expressions(opened: OpenedTable) -> list[IndexedExpression]:
    """Return the indexed expressions that are computed from columns, without those over one that is also a partition
    column.

    A partition column may have other values than the column of that name in the files.
    """
    snapshot = opened.catalog.snapshot
    if snapshot is None or not snapshot.options.expressions:
        return []
    outside = {name.lower() for name in opened.listing.columns}
    known = expressions_of(called_in_table(snapshot.options, opened.table.naming), opened.schema)
    return [
        expression
        for expression in known
        if expression.at_path is None and not any(field.path[0].lower() in outside for field in expression.fields)
    ]


def implied_by(predicate: Predicate, opened: OpenedTable) -> Within | None:
    """Return the bounds that a predicate implies for tuples of the index's sort key."""
    key = _sort_key(opened)
    return None if key is None else tuple_condition(predicate, *key)


def order_over(items: Sequence[OrderItem], opened: OpenedTable, binder: Binder) -> Order | None:
    """Bind the items of ORDER BY, and check whether the index's sort key refines them; None without items."""
    order, key = bind_order(items, binder), _sort_key(opened)
    return order if order is None or key is None else replace(order, tuples=tuple_order(order.columns, *key))


def _sort_key(
    opened: OpenedTable,
) -> tuple[Sequence[SortColumn], Sequence[IndexedColumn], pa.Schema, ColumnNaming] | None:
    """Return the index's sort key, its columns, and the table's schema with the index's names for them, and these.

    None if there is no index, or if a Hive partition column differs from the column of that name in the files.
    """
    snapshot, naming = opened.catalog.snapshot, opened.table.naming
    if snapshot is None:
        return None
    outside = {name.lower() for name in opened.listing.columns}
    key = parse_sort_key(snapshot.options.sort_key)
    if any(column.path[0].lower() in outside for column in key):
        return None
    schema = called_by_id(opened.schema) if isinstance(naming, ByFieldId) else opened.schema
    return key, snapshot.columns, schema, naming
