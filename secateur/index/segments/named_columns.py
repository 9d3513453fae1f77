"""The columns that build options name: expressions among them, and their names in the index and in the table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from secateur.errors import InvalidOption, UnknownColumn
from secateur.index.model import BuildOptions, IndexedColumn, indexed_columns
from secateur.index.naming import ByFieldId, ColumnNaming, Path
from secateur.index.zones.sort_key import parse_sort_key
from secateur.pruning.aggregates.sums import is_summed, kept_sum
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.indexed.indexed_expressions import IndexedExpression, indexed_expression
from secateur.pruning.predicate.indexed.indexed_expressions import renamed as with_names
from secateur.pruning.predicate.nodes import Column


def expressions_of(options: BuildOptions, schema: pa.Schema) -> list[IndexedExpression]:
    """Return the indexed expressions of a table, except those that its columns no longer allow."""
    expressions = []
    for sql in options.expressions:
        with suppress(InvalidOption, UnknownColumn):
            expressions.append(indexed_expression(sql, schema))
    return expressions


def computed(options: BuildOptions, schema: pa.Schema) -> list[IndexedColumn]:
    """Return the columns of an index that hold the values of expressions."""
    fields = [expression.field for expression in expressions_of(options, schema)]
    return [IndexedColumn(field.path, field.type) for field in fields]


def sum_columns(options: BuildOptions, schema: pa.Schema) -> list[IndexedColumn]:
    """Return the columns of an index that keep sums, except those that the table's columns no longer allow."""
    fields = {".".join(column.path): Field(column.path, column.type) for column in indexed_columns(schema)}
    kept = [kept_sum(fields[name]) for name in options.sums if name in fields and is_summed(fields[name].type)]
    return [IndexedColumn(field.path, field.type) for field in kept]


def called_in_index(
    options: BuildOptions, auto: Sequence[str] | bool, schema: pa.Schema, naming: ByFieldId
) -> tuple[BuildOptions, Sequence[str] | bool]:
    """Translate options, and the columns left to a sample, to the names that the index uses.

    `options` are checked against the schema. Raises UnknownColumn for one of `auto` that it does not have.
    """
    if not isinstance(auto, bool):
        binder = Binder(schema, dt.UTC)
        auto = [".".join(naming.index_paths[resolve(Column(split_name(name)), binder).path]) for name in auto]
    return _renamed(options, naming.index_paths), auto


def called_in_table(options: BuildOptions, naming: ColumnNaming) -> BuildOptions:
    """Translate options to the table's column names; columns that it no longer has keep their ids."""
    return _renamed(options, naming.table_paths) if isinstance(naming, ByFieldId) else options


def _renamed(options: BuildOptions, names: Mapping[Path, Path]) -> BuildOptions:
    def renamed(column: str) -> str:
        if column in options.expressions:
            return with_names(column, lambda path: names.get(path, path))
        return ".".join(next((new for old, new in names.items() if ".".join(old) == column), (column,)))

    key = (replace(item, path=names.get(item.path, item.path)) for item in parse_sort_key(options.sort_key))
    return replace(
        options,
        sort_key=tuple(map(str, key)),
        filters=tuple(replace(item, column=renamed(item.column)) for item in options.filters),
        gaps=tuple(map(renamed, options.gaps)),
        expressions=tuple(map(renamed, options.expressions)),
        sums=tuple(map(renamed, options.sums)),
        choices=tuple(replace(item, column=renamed(item.column)) for item in options.choices),
    )
