"""Conditions on the elements of arrays and the keys of maps.

Sources: Spark's ``ArrayContains``, ``ArraysOverlap``, ``MapContainsKey`` and ``GetMapValue``. They compare elements as
``=`` does, after casting both sides to the tightest common type, where nothing is cast to string. So only literals are
handled that need no rounding cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.functions import types
from secateur.pruning.functions.types import INSTANT, LOCAL
from secateur.pruning.predicate import nodes
from secateur.pruning.predicate.binding.literals import Subject, positions
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.binding.typed_constants import NoRule
from secateur.pruning.predicate.bound import Field, Holds, element_type
from secateur.pruning.predicate.nodes import INTEGERS, Call, Cast, Column, Expression, Literal, Not, Predicate, Sql
from secateur.values.kinds import COLLATED, is_float, kind_of

_NULL_WITH_THEIR_ARGUMENT = ("lower", "upper", "length")


def holds(call: Call, sql: Sql, binder: Binder) -> Holds:
    """Return the leaf of a function that searches values among elements or keys.

    Raises NoRule for what is left to Spark, and UnknownColumn, AmbiguousColumn.
    """
    match call:
        case Call("array_contains", (Call("map_keys", (Column() as column,)), Literal() as value)):
            return _any_of(_map(column, binder), [value], sql, binder)
        case Call("array_contains", (Column() as column, Literal() as value)):
            return _any_of(_array(column, binder), [value], sql, binder)
        case Call("map_contains_key", (Column() as column, Literal() as value)):
            return _any_of(_map(column, binder), [value], sql, binder)
        case Call("arrays_overlap", (Column() as column, Call("array", values))) | Call(
            "arrays_overlap", (Call("array", values), Column() as column)
        ):
            return _overlaps(_array(column, binder), values, sql, binder)
        case Call(function):
            raise NoRule(f"{function} of these arguments has no rule")


def needs(predicate: Predicate, binder: Binder) -> tuple[Holds, ...]:
    """Return what is necessary for a condition on a map's value to be TRUE: that the map has the key.

    Without the key the value is NULL, and so is any comparison of it with a literal. Raises as :func:`holds`.
    """
    match predicate:
        case nodes.Comparison(_, operand, Literal(value=value)) if value is not None:
            return _key_of(operand, predicate, binder)
        case nodes.In(operand) | nodes.Like(operand) | nodes.ILike(operand) | nodes.RLike(operand):
            return _key_of(operand, predicate, binder)
        case Not(nodes.IsNull(operand)):
            return _key_of(operand, predicate, binder)
        case _:
            return ()


def _key_of(operand: Expression, sql: Sql, binder: Binder) -> tuple[Holds, ...]:
    """Return the condition that the map has the key, if the operand is a map's value or a function of only that."""
    match operand:
        case Cast(inner):
            return _key_of(inner, sql, binder)
        case Call(function, (inner,)) if function in _NULL_WITH_THEIR_ARGUMENT:
            return _key_of(inner, sql, binder)
        case Call("element_at" | "try_element_at", (Column() as column, Literal() as key)):
            return _key(resolve(column, binder), key, sql, binder) if _is_whole(column, binder) else ()
        case Column(path):
            field = resolve(operand, binder)
            rest = path[len(field.path) :]
            return _key(field, Literal(rest[0], "string"), sql, binder) if rest else ()
        case _:
            return ()


def _key(field: Field, key: Literal, sql: Sql, binder: Binder) -> tuple[Holds, ...]:
    if not pa.types.is_map(field.type):
        return ()
    try:
        return (_any_of(field, [key], sql, binder),)
    except NoRule:
        return ()


# ---- columns ---------------------------------------------------------------------------------------------------------


def _array(column: Column, binder: Binder) -> Field:
    field = resolve(column, binder)
    if not pa.types.is_list(field.type) or not _is_whole(column, binder):
        raise NoRule(f"{column} is not an array")
    return field


def _map(column: Column, binder: Binder) -> Field:
    field = resolve(column, binder)
    if not pa.types.is_map(field.type) or not _is_whole(column, binder):
        raise NoRule(f"{column} is not a map")
    return field


def _is_whole(column: Column, binder: Binder) -> bool:
    """Return whether a name means a column, rather than something inside an array or a map."""
    return len(resolve(column, binder).path) == len(column.path)


# ---- values ----------------------------------------------------------------------------------------------------------


def _overlaps(field: Field, values: Sequence[Expression], sql: Sql, binder: Binder) -> Holds:
    """Convert ``arrays_overlap`` with an array of literals of one type, none of them NULL.

    With NULL among them it gives NULL if the column has any element, FALSE for an empty array; and it looks floating
    values up by their bits, for which 0.0 is not -0.0.
    """
    literals = [value for value in values if isinstance(value, Literal)]
    if not literals or len(literals) < len(values) or len({literal.type for literal in literals}) > 1:
        raise NoRule("arrays_overlap has a rule beside an array of literals of one type")
    if is_float(element_type(field.type)):
        raise NoRule(f"arrays_overlap of {field}, a {field.type}, has no rule")
    return _any_of(field, literals, sql, binder)


def _any_of(field: Field, values: Sequence[Literal], sql: Sql, binder: Binder) -> Holds:
    type_ = element_type(field.type)
    if type_ == COLLATED:
        raise NoRule(f"column {field} has a collation, which compares strings otherwise than by their bytes")
    return Holds(field, reduce(rangeset.union, [_ranges(field, type_, value, binder) for value in values]), sql)


def _ranges(field: Field, type_: pa.DataType, value: Literal, binder: Binder) -> RangeSet:
    """Return the keys of the elements that equal a literal."""
    kind = kind_of(type_)
    subject = Subject(f"the elements of {field}", type_)
    places = positions(subject, [value], binder.zone) if _stands_beside(type_, value) else None
    if kind is None or places is None:
        raise NoRule(f"{value} beside the elements of {field}, a {field.type}, is left to Spark")
    return rangeset.between(kind, places[0].at, places[0].after)


def _stands_beside(type_: pa.DataType, literal: Literal) -> bool:
    """Return whether Spark compares elements of a type with a literal without a rounding cast or parsing text."""
    match literal.type:
        case "string" | "binary" | "boolean" | "date":
            return type_ == types.NAMED[literal.type.upper()]
        case "timestamp":
            return type_ == INSTANT
        case "timestamp_ntz":
            return type_ == LOCAL
        case integer if integer in INTEGERS:
            return types.is_integer(type_) or types.is_decimal(type_) or type_ == pa.float64()
        case "decimal":
            return types.is_decimal(type_) or type_ == pa.float64()
        case "double" | "float":
            return is_float(type_)
        case _:
            return False
