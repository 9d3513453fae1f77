"""Bind expressions: nodes to typed operands, with the casts that Spark would insert; constants are folded."""

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
from secateur.pruning.functions.calendar import DAY
from secateur.pruning.functions.registry import function_of, rule
from secateur.pruning.functions.types import INSTANT, LOCAL
from secateur.pruning.interval import Argument, Function, constant, key_range, numbers
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.binding.constants import decimal_of_text, text_of, value_of
from secateur.pruning.predicate.binding.folding import LONGEST, constant_of_scalar
from secateur.pruning.predicate.binding.literals import Subject, positions
from secateur.pruning.predicate.binding.resolve import Binder, Fold, resolve
from secateur.pruning.predicate.binding.temporal import date_of, local_micros, moment_of
from secateur.pruning.predicate.binding.variants import value_at, variant_value
from secateur.pruning.predicate.binding.without_ansi import single
from secateur.pruning.predicate.bound import Apply, Conditional, Constant, Field, Operand, Tested, Varying
from secateur.pruning.predicate.interval_literals import micros_of
from secateur.pruning.predicate.nodes import Call, Case, Cast, Column, Duration, Expression, Literal, Test
from secateur.pruning.predicate.trees import Steps, each_of
from secateur.values import COLLATED, Keys, Kind, float_key, kind_of

if TYPE_CHECKING:
    from secateur.pruning.predicate.nodes import Predicate

_TYPES = {**{name.lower(): type_ for name, type_ in types.NAMED.items()}, "null": pa.null()}  # types of literals


Casts = Callable[[pa.DataType, pa.DataType, dt.tzinfo], Function | None]


class NoRule(Exception):
    """An expression that pruning cannot bound, with the reason. Never leaves binding."""


def bound_operand(
    expression: Expression, binder: Binder, as_condition: Callable[[Predicate], Predicate]
) -> Steps[Operand]:
    """Bind an expression; yields the expressions and conditions below it, and is sent their bound forms.

    `as_condition` converts a bound condition for use inside an operand. Raises NoRule, and for the caller's mistakes
    UnknownColumn, AmbiguousColumn.
    """
    match expression:
        case Column():
            return field_of(expression, binder)
        case Literal():
            return constant_of(expression, binder.zone)
        case Cast() | Call() if binder.variant_values and (known := _at_path(expression, binder)) is not None:
            return known
        case Test(predicate):
            return Tested(as_condition((yield predicate)))
        case Cast(operand, type_, safe):
            return _cast((yield operand), type_, safe, binder)
        case Case(branches, otherwise):
            conditions, values = [], []
            for condition, value in branches:
                conditions.append(as_condition((yield condition)))
                values.append((yield value))
            return _choice(conditions, values, (yield otherwise), binder)
        case Duration():
            raise NoRule(f"{expression} has no rule but beside +, - and a difference of times")
        case Call(("+" | "-") as sign, (moment, Duration() as duration)):
            return _moved((yield moment), sign, duration, binder)
        case Call("+", (Duration() as duration, moment)):
            return _moved((yield moment), "+", duration, binder)
        case Call(("try_add" | "try_subtract") as name, (moment, Duration() as duration)):
            sign = "+" if name == "try_add" else "-"
            return _moved((yield moment), sign, duration, binder, safe=True)
        case Call("try_add", (Duration() as duration, moment)):
            return _moved((yield moment), "+", duration, binder, safe=True)
        case Call(function, ()) if function in _CLOCK:
            return _now(function, binder)
        case Call("variant_get" | "try_variant_get" | "is_variant_null"):
            raise NoRule("only Spark reads the values of VARIANT")
        case Call(function, arguments):
            return apply(function, (yield from each_of(arguments)), binder)


def _at_path(expression: Expression, binder: Binder) -> Operand | None:
    """Return the value at a path into VARIANT; None for other expressions. Raises UnknownColumn, AmbiguousColumn."""
    match variant_value(expression):
        case (column, path, type_, safe):
            return value_at(resolve(column, binder), path, type_, safe=safe)
        case _:
            return None


def asked(expression: Expression, fold: Fold) -> Constant:
    """Return the value that Spark gives an expression over constants. Raises NoRule if it gives none."""
    text = str(expression)
    value = fold(text) if len(text) <= LONGEST else None
    constant = None if value is None else constant_of_scalar(value)
    if constant is None:
        raise NoRule(f"{brief(text)} has no value that is known when planning")
    return constant


def field_of(column: Column, binder: Binder) -> Field:
    """Return the field of an orderable column. Raises NoRule, UnknownColumn, AmbiguousColumn."""
    field = resolve(column, binder)
    if pa.types.is_struct(field.type) and len(field.path) < len(column.path):
        raise NoRule("only Spark knows it")
    if field.type == COLLATED:
        raise NoRule(f"column {field} has a collation, which compares strings otherwise than by their bytes")
    if kind_of(field.type) is None:
        raise NoRule(f"values of {field} of type {field.type} have no order that bounds are kept in")
    return field


# ---- constants -------------------------------------------------------------------------------------------------------


def constant_of(literal: Literal, zone: dt.tzinfo) -> Constant:
    """Convert a literal to a typed constant. Raises NoRule for text that is not a date here."""
    if literal.value is None:
        return Constant(_TYPES[literal.type], None)
    type_ = _decimal_type(literal.value) if isinstance(literal.value, Decimal) else _TYPES[literal.type]
    places = positions(Subject(str(literal), type_), [literal], zone)
    if places is None or places[0].at is None:
        raise NoRule(f"{literal} is left to Spark")
    suffixed = types.is_integer(type_) and literal.type != "int"
    return Constant(type_, places[0].at, written=None if suffixed else True)


def _decimal_type(value: Decimal) -> pa.DataType:
    precision, scale = types.size_of(value)
    if precision > types.MOST_DIGITS:
        raise NoRule(f"{value} has more digits than a decimal")
    return pa.decimal128(precision, scale)


def literal_of(operand: Constant) -> Literal | None:
    """Convert a constant to a literal, or None if Python has no value for it."""
    key, type_ = operand.key, operand.type
    name = next((name for name, known in _TYPES.items() if known == type_), "decimal")
    match key:
        case None:
            return Literal(None, "null")
        case bytes():
            return Literal(key, name) if name == "binary" else _text_literal(key)
        case _ if types.is_decimal(type_):
            return Literal(Decimal(key).scaleb(-type_.scale), "decimal") if abs(key) < 10**28 else None
        case _ if types.is_integer(type_):
            return Literal(key, name)
        case _ if pa.types.is_boolean(type_):
            return Literal(bool(key), name)
        case _ if types.is_temporal(type_):
            return _moment_literal(key, type_, name)
        case _:
            keys = Keys(Kind.WORD, (pa.array([key], pa.int64()).to_numpy(),))
            return Literal(float(numbers(keys, type_)[0]), name)


def _text_literal(key: bytes) -> Literal | None:
    try:
        return Literal(key.decode(), "string")
    except UnicodeDecodeError:
        return None


def _moment_literal(key: int, type_: pa.DataType, name: str) -> Literal | None:
    try:
        if pa.types.is_date32(type_):
            return Literal(date_of(key), name)
        moment = moment_of(key)
        return Literal(moment.replace(tzinfo=dt.UTC) if type_ == INSTANT else moment, name)
    except (ValueError, OverflowError):
        return None


_DATE, _MOMENT = "date", "timestamp"
_TEXTS = {  # functions, and the type that Spark casts text to for each argument
    **dict.fromkeys(("add_months", "date_add", "date_sub", "next_day", "trunc"), (_DATE, None)),
    **dict.fromkeys(("date_format", "from_utc_timestamp", "to_utc_timestamp"), (_MOMENT, None)),
    "date_trunc": (None, _MOMENT),
    "datediff": (_DATE, _DATE),
    **dict.fromkeys(("last_day", "year", "quarter", "month", "day"), (_DATE,)),
    **dict.fromkeys(("dayofweek", "dayofyear", "weekday", "weekofyear"), (_DATE,)),
    "months_between": (_MOMENT, _MOMENT, None),
    "timestampadd": (None, None, _MOMENT),
    "timestampdiff": (None, _MOMENT, _MOMENT),
}


def texts_as_moments(name: str, arguments: list[Operand], zone: dt.tzinfo) -> list[Operand]:
    """Convert constant text among the arguments of a date or timestamp function, as Spark would.

    Raises NoRule for text that is not readable here.
    """
    wanted: tuple[str | None, ...] = _TEXTS.get(name, ())
    if name == "elapsed":  # text is read as the type of the other side
        wanted = tuple(_DATE if pa.types.is_date32(other.type) else _MOMENT for other in reversed(arguments))
        wanted = wanted if LOCAL not in [argument.type for argument in arguments] else ()
    pairs = zip(arguments, (*wanted, *(None,) * len(arguments)), strict=False)
    return [_as_moment(argument, type_, zone) for argument, type_ in pairs]


def _as_moment(operand: Operand, type_: str | None, zone: dt.tzinfo) -> Operand:
    match operand:
        case Constant(key=bytes(text)) if type_ is not None and operand.type == pa.string():
            try:
                return constant_of(Literal(text.decode("utf-8", "replace"), type_), zone)
            except IncomparableLiteral as error:  # Spark fails on a row, if there is one
                raise NoRule(str(error)) from None
        case _:
            return operand


# ---- time ------------------------------------------------------------------------------------------------------------

_CLOCK = {
    **dict.fromkeys(("current_timestamp", "now"), INSTANT),
    "localtimestamp": LOCAL,
    **dict.fromkeys(("current_date", "curdate"), pa.date32()),
}
_SLOW = dt.timedelta(hours=1)  # how much Spark's clock may be behind this one
_END = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)


def _now(function: str, binder: Binder) -> Varying:
    """Return the time when the query runs, which is not before the time when it is planned.

    So `ts >= now() - INTERVAL 1 DAY` rules out older rows, no matter how late the plan is used.
    """
    earliest = binder.now - _SLOW
    type_ = _CLOCK[function]
    if type_ != INSTANT:
        earliest = earliest.astimezone(binder.zone).replace(tzinfo=dt.UTC)
    ends = [local_micros(moment) // (DAY if pa.types.is_date32(type_) else 1) for moment in (earliest, _END)]
    return Varying(type_, *ends)


def _moved(operand: Operand, sign: str, duration: Duration, binder: Binder, *, safe: bool = False) -> Operand:
    """Add an interval to a date or timestamp, or subtract it."""
    amount = duration.amount if sign == "+" else -duration.amount
    unit = Constant(pa.string(), duration.unit.encode())
    return apply(
        "try_plus_interval" if safe else "plus_interval", [unit, Constant(pa.int64(), amount), operand], binder
    )


def interval_operand(expression: Expression, binder: Binder) -> Steps[Operand | None]:
    """Return the microseconds of a day-time interval or of a difference of times; None for anything else.

    Yields the expressions below it, as :func:`bound_operand`. Raises NoRule.
    """
    match expression:
        case Duration(unit="DAY" | "MICROSECOND"):
            return Constant(pa.int64(), micros_of(expression))
        case Call(("-" | "try_subtract"), (later, earlier)):
            bound = yield from each_of((later, earlier))
            operands = texts_as_moments("elapsed", bound, binder.zone)
            if not all(types.is_temporal(operand.type) for operand in operands):
                return None
            mixed = {INSTANT, LOCAL} <= {operand.type for operand in operands}
            # as in Spark's DateTimeOperations
            type_ = LOCAL if mixed else common_type(operands, ansi=binder.ansi)
            return apply("elapsed", [coerced(operand, type_, binder.zone) for operand in operands], binder)
        case _:
            return None


# ---- functions -------------------------------------------------------------------------------------------------------


def _cast(operand: Operand, target: str, safe: bool, binder: Binder) -> Operand:
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
        raise NoRule(f"{' and '.join(str(o.type) for o in operands)} have no common type with an order")
    return type_


def _choice(conditions: list[Predicate], values: list[Operand], otherwise: Operand, binder: Binder) -> Operand:
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
