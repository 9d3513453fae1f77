"""Functions and casts applied to bound operands, with the casts that Spark would insert; constants are folded."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur.errors import IncomparableLiteral
from secateur.pruning.functions import casts, overflow, types
from secateur.pruning.functions.registry import function_of, rule
from secateur.pruning.interval import Argument, Function, constant, key_range
from secateur.pruning.predicate.binding.constants import decimal_of_text, text_of, value_of
from secateur.pruning.predicate.binding.literals import Subject, positions
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.binding.texts_as_moments import texts_as_moments
from secateur.pruning.predicate.binding.typed_constants import NoRule, constant_of, literal_of
from secateur.pruning.predicate.binding.without_ansi import single
from secateur.pruning.predicate.bound import Apply, Conditional, Constant, Operand
from secateur.values.key import float_key
from secateur.values.kinds import kind_of

if TYPE_CHECKING:
    from secateur.pruning.predicate.nodes import Predicate

Casts = Callable[[pa.DataType, pa.DataType, dt.tzinfo], Function | None]


def converted(operand: Operand, target: str, safe: bool, binder: Binder) -> Operand:
    type_ = types.named(target)
    if type_ is None:
        raise NoRule(f"a cast to {target} has no rule")
    cast = overflow.try_cast if safe else casts.cast if binder.ansi else overflow.cast
    return _cast_by(cast, operand, type_, binder.zone)


def coerced(operand: Operand, type_: pa.DataType, zone: dt.tzinfo) -> Operand:
    """Cast an operand to a wider type. Raises NoRule if the cast does not preserve order."""
    if isinstance(operand, Constant) and types.is_integer(operand.type) and type_ == pa.float32():
        return Constant(type_, None if operand.key is None else float_key(single(int(operand.key))))
    return _cast_by(casts.cast, operand, type_, zone)


def _cast_by(cast: Casts, operand: Operand, type_: pa.DataType, zone: dt.tzinfo) -> Operand:
    if operand.type == type_:
        return replace(operand, written=False) if isinstance(operand, Constant) else operand
    if isinstance(operand, Constant) and operand.key is None:
        return Constant(type_, None)
    if isinstance(operand, Constant) and (constant := _cast_constant(operand, type_, zone)) is not None:
        return constant
    arguments = operand.type, type_, zone
    function = cast(*arguments)
    if function is None:
        raise NoRule(f"a cast from {operand.type} to {type_} does not keep the order of values")
    return _folded(replace(function, source=(cast, arguments)), (operand,))


def _cast_constant(operand: Constant, type_: pa.DataType, zone: dt.tzinfo) -> Constant | None:
    """Cast constant text to another type, or a literal to text, if the result is certain."""
    literal = literal_of(operand)
    if literal is None or type_ in (operand.type, pa.binary(), pa.float32()):
        return None
    if type_ == pa.string():
        text = text_of(literal)
        return None if text is None else Constant(type_, text.encode())
    if literal.type != "string":
        return None
    if types.is_decimal(type_):
        number = decimal_of_text(str(literal.value), type_.precision, type_.scale)
        return None if number is None else Constant(type_, int(number.scaleb(type_.scale)))
    try:
        places = positions(Subject("a constant", type_), [literal], zone)
    except IncomparableLiteral:
        return None
    key = None if places is None else places[0].at
    least, greatest = key_range(type_)
    return Constant(type_, key) if isinstance(key, int) and least <= key <= greatest else None


def common_type(operands: Sequence[Operand], *, ansi: bool) -> pa.DataType:
    """Return the type that all operands are cast to. Raises NoRule."""
    type_ = reduce(lambda a, b: a if a is None else types.common(a, b, ansi=ansi), [o.type for o in operands])
    if type_ is None or kind_of(type_) is None:
        raise NoRule(_apart(operands))
    return type_


def _apart(operands: Sequence[Operand]) -> str:
    """Say why operands have no common type, and what to write in place of a literal among them."""
    kinds = [operand.type for operand in operands]
    for literal in (literal_of(operand) for operand in operands if isinstance(operand, Constant)):
        if literal is None or len(operands) != 2:
            continue
        time = next(filter(types.is_temporal, kinds), None)
        if literal.type == "string" and time is not None:
            return f"the cast of {literal} to {time} is left to Spark; write dates and times as '2020-01-31 12:00:00'"
        if isinstance(literal.value, int | float | Decimal) and literal.type != "boolean" and pa.string() in kinds:
            return f"Spark casts text beside a number to a number; write '{literal.value}' to compare texts"
    return f"{' and '.join(map(str, kinds))} have no common type with an order"


def choice(conditions: list[Predicate], values: list[Operand], otherwise: Operand, binder: Binder) -> Operand:
    *values, otherwise = alike([*values, otherwise], binder)
    return Conditional(tuple(zip(conditions, values, strict=True)), otherwise)


def alike(operands: Sequence[Operand], binder: Binder) -> list[Operand]:
    """Cast the operands to one type. Raises NoRule."""
    type_ = common_type(operands, ansi=binder.ansi)
    return [coerced(operand, type_, binder.zone) for operand in operands]


_ALIKE = ("coalesce", "greatest", "least")  # arguments are cast to one type
_ARITHMETIC = ("+", "-", "*", "/", "%", "negative", "abs")  # NULL if any argument is NULL


def apply(name: str, arguments: list[Operand], binder: Binder) -> Operand:
    """Apply a named function to operands; constants are folded. Raises NoRule."""
    if name in _ARITHMETIC and any(isinstance(a, Constant) and a.key is None for a in arguments):
        return Constant(pa.null(), None)
    if name == "concat":  # if all arguments are binary, so is the result
        arguments = [_as_text(a, binder.zone) for a in arguments]
    elif name in ("lpad", "rpad"):
        arguments = [_as_text(arguments[0], binder.zone), *arguments[1:]]
    if name in _ALIKE or _meet_as_floats(name, arguments, binder):
        arguments = alike(arguments, binder)
    if (value := _computed(name, arguments, binder.zone)) is not None:
        return value
    name, arguments = _date_arithmetic(name, texts_as_moments(name, arguments, binder.zone))
    if any(pa.types.is_null(a.type) or kind_of(a.type) is None for a in arguments):
        raise NoRule(f"{name} of {', '.join(str(a.type) for a in arguments)} has no rule")
    known = [Argument(a.type, a.key, a.written) if isinstance(a, Constant) else Argument(a.type) for a in arguments]
    if rule(name) is None:
        raise NoRule(f"{name} has no rule")
    asked = name, known, binder.zone, binder.ansi
    function = function_of(*asked)
    if function is None:
        raise NoRule(f"{name} of {', '.join(str(a.type) for a in arguments)} has no rule")
    return _folded(replace(function, source=(function_of, asked)), tuple(arguments))


_SUMS_AND_PRODUCTS = ("+", "-", "*", "try_add", "try_subtract", "try_multiply")


def _meet_as_floats(name: str, arguments: list[Operand], binder: Binder) -> bool:
    """Return whether integers and floats are combined as floats, which they are without ANSI."""
    if binder.ansi or name not in _SUMS_AND_PRODUCTS:
        return False
    integers = [types.is_integer(a.type) for a in arguments]
    floats = [a.type == pa.float32() for a in arguments]
    return any(integers) and any(floats) and all(map(or_, integers, floats))


def _computed(name: str, arguments: list[Operand], zone: dt.tzinfo) -> Constant | None:
    """Return the value of a function of constants that is certain regardless of bounds."""
    literals = [literal_of(a) for a in arguments if isinstance(a, Constant)]
    known = [literal for literal in literals if literal is not None]
    if not known or len(known) < len(arguments):
        return None
    result = value_of(name, known, zone)
    return None if result is None else replace(constant_of(result, zone), written=False)


def _as_text(operand: Operand, zone: dt.tzinfo) -> Operand:
    return coerced(operand, pa.string(), zone) if types.is_integer(operand.type) else operand


def _date_arithmetic(name: str, arguments: list[Operand]) -> tuple[str, list[Operand]]:
    """Replace the sum or difference of a date and a number of days by Spark's separate functions for these."""
    match name, [pa.types.is_date32(a.type) for a in arguments]:
        case (("+" | "try_add"), [True, False]):
            return "date_add", arguments
        case (("+" | "try_add"), [False, True]):
            return "date_add", arguments[::-1]
        case (("-" | "try_subtract"), [True, False]):
            return "date_sub", arguments
        case _:
            return name, arguments


def _folded(function: Function, arguments: tuple[Operand, ...]) -> Operand:
    """Apply a function; if all arguments are constants, compute its value. Raises NoRule if Spark would fail."""
    if not all(isinstance(a, Constant) for a in arguments):
        return Apply(function, arguments)
    interval = function.bounds([constant(a.type, a.key, 1) for a in arguments if isinstance(a, Constant)])
    if interval.fails[0]:
        raise NoRule(f"{function.name} of these constants has no value")
    if not interval.value[0]:
        return Constant(function.type, None)
    if not (function.exact and interval.is_point[0]):
        return Apply(function, arguments)
    return Constant(function.type, interval.lower.at(0))
