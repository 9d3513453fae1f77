"""Evaluate a predicate over statistics that the caller keeps, given as an Arrow table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.index.zones import zonemap
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.evaluate import evaluate as outcomes_of
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.values.kinds import is_float, kind_of

ROW_COUNT = "row_count"
_STATISTICS = ("lower", "upper", "null_count", "nan_count")


def evaluate(
    predicate: str | Predicate,
    zone_maps: pa.Table,
    *,
    schema: pa.Schema | None = None,
    session_time_zone: str = "UTC",
    ansi: bool = True,
    case_sensitive: bool = False,
) -> pa.Table:
    """Return which outcomes a predicate can have over the rows of each unit.

    Parameters
    ----------
    zone_maps
        One row per unit, with the column ``row_count`` and, for a column c, any of ``c.lower``, ``c.upper``,
        ``c.null_count``, ``c.nan_count``. A missing column or a null cell is unknown. Bounds ignore NaN, as in Parquet.
        Strings and binaries may have any Arrow layout (large, view); bounds and counts may be dictionary-encoded.
    schema
        The types of the table's columns; by default those of the bounds.

    Returns
    -------
    pyarrow.Table
        One row per unit; booleans ``may_be_true``, ``may_be_false``, ``may_be_null``.

    Raises
    ------
    InvalidPredicate, UnknownColumn, AmbiguousColumn, IncomparableLiteral

    Soundness
    ---------
    A unit whose ``may_be_true`` is false holds no matching row. If ``may_be_true`` is the only true one, every row
    matches.
    """
    tree = parse(predicate) if isinstance(predicate, str) else predicate
    types = _schema_of(zone_maps) if schema is None else pa.schema([_plain_field(field) for field in schema])
    bound = bind(tree, types, session_time_zone=session_time_zone, ansi=ansi, case_sensitive=case_sensitive)
    outcomes = outcomes_of(rewrite(bound), ZoneTable(zone_maps))
    names = {"may_be_true": TRUE, "may_be_false": FALSE, "may_be_null": NULL}
    return pa.table({name: pa.array((outcomes & bit) != 0) for name, bit in names.items()})


@dataclass(frozen=True)
class ZoneTable:
    """Zone maps from an Arrow table; see :class:`secateur.pruning.statistics.Statistics`."""

    table: pa.Table

    def __len__(self) -> int:
        return len(self.table)

    @property
    def row_count(self) -> np.ndarray:
        """Rows of each unit, int64 of shape (n_units,); -1 if unknown."""
        return self._counts(ROW_COUNT)

    def zones(self, column: Field) -> Zones | None:
        """Return the zone maps of a column, or None if the table has no statistics of it."""
        name = ".".join(column.path)
        if kind_of(column.type) is None or not any(f"{name}.{kind}" in self.table.column_names for kind in _STATISTICS):
            return None
        bounds = (self._bounds(name, side, column.type) for side in ("lower", "upper"))
        nan_count = self._counts(f"{name}.nan_count") if is_float(column.type) else np.zeros(len(self.table), np.int64)
        row_count = self.row_count
        lower, upper = bounds
        zone_map = zonemap.from_bounds(
            column.type, lower, upper, self._counts(f"{name}.null_count"), nan_count, row_count
        )
        return zone_map.zones(row_count)

    def _bounds(self, column: str, side: str, type_: pa.DataType) -> pa.Array:
        name = f"{column}.{side}"
        if name not in self.table.column_names:
            bounds = pa.nulls(len(self.table), type_)
        else:
            bounds = _plain(self.table[name].combine_chunks())
        if not is_float(type_) or not is_float(bounds.type):
            return bounds
        end = -math.inf if side == "lower" else math.inf  # no number lies beyond it
        return bounds.fill_null(pa.scalar(end, bounds.type))

    def _counts(self, name: str) -> np.ndarray:
        if name not in self.table.column_names:
            return np.full(len(self.table), -1, np.int64)
        counts = _plain(self.table[name].combine_chunks())
        return counts.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)


def _plain(values: pa.Array) -> pa.Array:
    """Cast values to the layout of :func:`_plain_type`."""
    type_ = _plain_type(values.type)
    return values if values.type == type_ else values.cast(type_)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the plain type of a layout: the value type of a dictionary; string and binary for large and view types."""
    if pa.types.is_dictionary(type_):
        return _plain_type(type_.value_type)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    return type_


def _plain_field(field: pa.Field) -> pa.Field:
    """Return the column, or the field of a struct, with its plain type."""
    if pa.types.is_struct(field.type):
        return field.with_type(pa.struct([_plain_field(child) for child in field.type]))
    return field.with_type(_plain_type(field.type))


def _schema_of(zone_maps: pa.Table) -> pa.Schema:
    """Derive the schema from the names ``c.lower``, ``c.null_count``, ...; dots lead into structs."""
    tree: dict[str, Any] = {}
    for name in zone_maps.column_names:
        column, _, statistic = name.rpartition(".")
        if column and statistic in _STATISTICS:
            stored = zone_maps.schema.field(name).type
            bound = _plain_type(stored) if statistic in ("lower", "upper") else pa.null()
            _insert(tree, split_name(column), bound)
    return pa.schema(list(_fields(tree)))


def _insert(tree: dict[str, Any], path: tuple[str, ...], type_: pa.DataType) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    known = tree.get(path[-1], pa.null())
    tree[path[-1]] = known if known != pa.null() else type_


def _fields(tree: dict[str, Any]) -> Iterable[pa.Field]:
    for name, inner in tree.items():
        yield pa.field(name, pa.struct(list(_fields(inner))) if isinstance(inner, dict) else inner)
