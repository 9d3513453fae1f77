"""Bind the values at a path into VARIANT, read as one type, as by ``payload:user::int`` and ``try_variant_get``.

Statistics know them where the path is shredded and nothing at it has another type
(:mod:`secateur.io.parquet.shredded_values`). The casts of ``variant_get`` raise an error where they fail, also without
ANSI. So where nothing is known a row may raise one, and where anything is known no row does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from secateur.errors import InvalidPredicate
from secateur.pruning.functions import types
from secateur.pruning.interval import Function, Interval, keys_equal, of_zones
from secateur.pruning.predicate.bound import Apply, Field, Operand
from secateur.pruning.predicate.cast_types import sql_type
from secateur.pruning.predicate.nodes import Call, Cast, Column, Expression, Literal
from secateur.pruning.predicate.variant_paths import is_variant, is_variant_path, steps_in, variant_path
from secateur.values.kinds import kind_of

_SAFE = "try_variant_get"
VARIANT_NAMES = ("variant_get", _SAFE)
UNTYPED = 2  # arguments of them: without a type, their value is VARIANT


def variant_value(expression: Expression) -> tuple[Column, str, str, bool] | None:
    """Return the column, the path, the type, and whether failures are NULL, of a value at a path; None if it is none.

    A value without a type is VARIANT, and has no order.
    """
    match expression:
        case Cast(Call(name, (Column() as column, Literal(str(path)))), type_, safe) if name in VARIANT_NAMES:
            return column, path, type_, safe
        case Call(name, (Column() as column, Literal(str(path)), Literal(str(type_)))) if name in VARIANT_NAMES:
            return column, path, type_, name == _SAFE
        case _:
            return None


def value_at(field: Field, path: str, type_: str, *, safe: bool) -> Apply | None:
    """Return the value at a path into a VARIANT column; None if statistics never know it."""
    steps, name, is_known = steps_in(path), _type_name(type_), pa.types.is_struct(field.type)
    target = None if name is None else types.named(name)
    if steps is None or name is None or target is None or kind_of(target) is None:
        return None
    if not is_known or not is_variant(field.type):
        return None
    function = or_null(target) if safe else or_error(target)
    return Apply(function, (Field(variant_path(field.path, steps, name), target),))


def field_at_path(operand: Operand) -> Field | None:
    """Return the field that stands for the values at a path into VARIANT; None for other operands."""
    match operand:
        case Apply(_, (Field(path) as field,)) if is_variant_path(path) and operand.function.name in VARIANT_NAMES:
            return field
        case _:
            return None


def values_of(field: Field) -> tuple[Apply, Apply]:
    """Return the operands for which such a field stands: with NULL where a cast fails, and with an error.

    Where an index knows the values of all rows of a unit, no cast fails on them.
    """
    return Apply(or_null(field.type), (field,)), Apply(or_error(field.type), (field,))


def _type_name(text: str) -> str | None:
    try:
        return sql_type(text)
    except InvalidPredicate:
        return None


def or_null(type_: pa.DataType) -> Function:
    """Return ``try_variant_get``: what statistics know."""
    return Function(_SAFE, type_, _same, (0,), exact=False, source=(or_null, (type_,)))


def or_error(type_: pa.DataType) -> Function:
    """Return ``variant_get``: what statistics know, or an error on units of which nothing is known."""
    return Function("variant_get", type_, _same_or_error, (0,), exact=False, source=(or_error, (type_,)))


def _same(arguments: Sequence[Interval]) -> Interval:
    (value,) = arguments
    return value


def _same_or_error(arguments: Sequence[Interval]) -> Interval:
    (value,) = arguments
    whole = of_zones(None, value.type, len(value))
    is_open = keys_equal(value.lower, whole.lower) & keys_equal(value.upper, whole.upper)
    return replace(value, fails=value.fails | (is_open & (value.value != 0) & (value.null != 0)))
