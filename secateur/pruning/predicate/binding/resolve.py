"""Resolve names to fields of a table's schema."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from secateur.errors import AmbiguousColumn, UnknownColumn
from secateur.pruning.predicate import node_walks
from secateur.pruning.predicate.bound import Field, Operand
from secateur.pruning.predicate.nodes import Column, Predicate

# evaluates a deterministic expression over constants, given in SQL
Fold: TypeAlias = Callable[[str], "pa.Scalar | None"]


_LEFT = b"left to Spark"


def left_to_spark(name: str, type_: pa.DataType) -> pa.Field:
    """A field of a struct that predicates may name, and whose values only Spark knows."""
    return pa.field(name, type_, metadata={_LEFT: b""})


@dataclass(frozen=True)
class Binder:
    """What binding must know of a table and a session."""

    schema: pa.Schema
    zone: dt.tzinfo
    case_sensitive: bool = False
    ansi: bool = True  # spark.sql.ansi.enabled
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    fold: Fold | None = None
    indexed: Mapping[Operand, Field] = field(default_factory=dict)  # expressions that stand as fields of their own
    variant_values: bool = False  # whether values at paths into VARIANT do, which statistics alone know


def resolve(column: Column, binder: Binder) -> Field:
    """Return the field that a column name means; for a part of a map or an array, the map or the array.

    For a field that is left to Spark, return its struct.

    Raises UnknownColumn with the nearest names, AmbiguousColumn.
    """
    type_: pa.DataType = pa.struct(list(binder.schema))
    path: tuple[str, ...] = ()
    for name in column.path:
        if pa.types.is_map(type_) or pa.types.is_list(type_):
            break
        child = _child(type_, name, column, binder)
        if _LEFT in (child.metadata or {}):
            break
        path, type_ = (*path, child.name), child.type
    return Field(path, type_)


def _child(type_: pa.DataType, name: str, column: Column, binder: Binder) -> pa.Field:
    children = list(type_) if pa.types.is_struct(type_) else []
    exact = [child for child in children if child.name == name]
    folded = [child for child in children if child.name.lower() == name.lower()]
    matches = exact if binder.case_sensitive else folded
    if len(matches) > 1:
        names = ", ".join(child.name for child in matches)
        raise AmbiguousColumn(f"column {column} could be any of {names}: pass case_sensitive=True")
    if not matches:
        raise UnknownColumn(_unknown(name, column, [child.name for child in children]))
    return matches[0]


def _unknown(name: str, column: Column, names: list[str]) -> str:
    by_folded = {known.lower(): known for known in names}
    near = [by_folded[match] for match in difflib.get_close_matches(name.lower(), by_folded, n=3)]
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"the table has {', '.join(names[:20]) or 'no such struct'}"
    )
    return f"unknown column {column}: {hint}"


def named_columns(predicate: Predicate, binder: Binder) -> Iterator[str]:
    """Yield the top-level columns that a predicate's text names: all columns for an expression that hides its names."""
    if any(not opaque.columns for opaque in node_walks.opaque(predicate)):
        yield from binder.schema.names
    else:
        yield from (resolve(column, binder).path[0] for column in node_walks.columns(predicate))
