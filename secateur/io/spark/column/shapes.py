"""The shapes of PySpark column nodes, common to Spark Classic and Connect.

A shape holds its children as nodes of their own library: a chain of a thousand ANDs is nested a thousand deep.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.binding.temporal import date_of, moment_of
from secateur.pruning.predicate.nodes import INTEGERS, Literal

Node: TypeAlias = Any


@dataclass(frozen=True)
class Name:
    """A column."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class Value:
    """A literal and its declared Spark type."""

    literal: Literal
    type: str


@dataclass(frozen=True)
class FunctionShape:
    """A function or operator, by name."""

    name: str
    arguments: Sequence[Node]


@dataclass(frozen=True)
class Casted:
    """A cast to a SQL type."""

    child: Node
    type: str
    safe: bool


@dataclass(frozen=True)
class CaseShape:
    """CASE WHEN; NULL if there is no `otherwise`."""

    branches: Sequence[tuple[Node, Node]]
    otherwise: Node | None


@dataclass(frozen=True)
class Item:
    """A field of a struct, a value of a map, or an element of an array."""

    child: Node
    key: Node


@dataclass(frozen=True)
class Text:
    """SQL as the user wrote it: ``F.expr``."""

    sql: str


@dataclass(frozen=True)
class Renamed:
    """An alias, which has no meaning in a predicate."""

    child: Node


Shape: TypeAlias = Name | Value | FunctionShape | Casted | CaseShape | Item | Text | Renamed


def refuse(what: str) -> InvalidPredicate:
    """Return the error for a part of a column that SQL text cannot express."""
    return InvalidPredicate(f"cannot read {what} in a predicate: use SQL text, or an expression on secateur.col()")


def value_of(value: Any, type: str) -> Value:
    """Convert a Spark literal from its printed type and its internal value, such as days or microseconds."""
    try:
        return Value(_literal(value, type), type)
    except (OverflowError, ValueError):
        raise refuse(f"the {type} {value}") from None


def _literal(value: Any, type: str) -> Literal:
    match type:
        case _ if value is None or type == "void":
            return Literal(None, "null")
        case "boolean":
            return Literal(bool(value), type)
        case _ if type in INTEGERS:
            return Literal(int(value), type)
        case "float":
            return Literal(float(np.float32(value)), type)
        case "double":
            return Literal(float(value), type)
        case "string":
            return Literal(str(value), type)
        case "binary":
            return Literal(bytes(value), type)
        case "date":
            return Literal(date_of(value), type)
        case "timestamp":
            return Literal(moment_of(value).replace(tzinfo=dt.UTC), type)
        case "timestamp_ntz":
            return Literal(moment_of(value), type)
        case _ if type.startswith("decimal"):
            return Literal(Decimal(str(value)), "decimal")
        case _:
            raise refuse(f"a literal of type {type}")
