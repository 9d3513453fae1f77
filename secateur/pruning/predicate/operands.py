"""Binding expressions: nodes to operands with types, after the casts that Spark would insert; constants are folded."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur.errors import IncomparableLiteral
from secateur.pruning.functions import casts, types
from secateur.pruning.functions.calendar import DAY
from secateur.pruning.functions.registry import rule
from secateur.pruning.functions.types import INSTANT, LOCAL
from secateur.pruning.interval import Argument, Function, constant, key_range, numbers
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.bound import Apply, Choice, Constant, Field, Operand, Tested, Varying
from secateur.pruning.predicate.constants import decimal_of_text, text_of, value_of
from secateur.pruning.predicate.folding import LONGEST, constant_of_scalar, is_computed, is_foldable
from secateur.pruning.predicate.literals import Subject, positions
from secateur.pruning.predicate.nodes import Call, Case, Cast, Column, Duration, Expression, Literal, Test
from secateur.pruning.predicate.resolve import Binder, Fold, resolve
from secateur.pruning.predicate.temporal import date_of, local_micros, moment_of
from secateur.values import COLLATED, Keys, Kind, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from secateur.pruning.predicate.nodes import Predicate

_TYPES = {**{name.lower(): type_ for name, type_ in types.NAMED.items()}, "null": pa.null()}  # of literals


class NoRule(Exception):
    """An expression that pruning cannot bound; says why. Never leaves binding."""


def bind_operand(expression: Expression, binder: Binder, bind: Callable[[Predicate, Binder], Predicate]) -> Operand:
    """The operand of an expression; `bind` binds the conditions in it.

    Raises NoRule, and the errors of the caller's mistakes: UnknownColumn, AmbiguousColumn.
    """
    if binder.fold is None or not (is_computed(expression) and is_foldable(expression)):
        return _operand(expression, binder, bind)
    found: Operand | None = None
    with contextlib.suppress(NoRule):
        found = _operand(expression, replace(binder, fold=None), bind)
    if isinstance(found, Constant):
        return found
    try:
        return _asked(expression, binder.fold)
    except NoRule:
        if found is None:
            raise
        return found  # with bounds, as `exp(1)` has


def _asked(expression: Expression, fold: Fold) -> Constant:
    """The value that Spark gives an expression over constants. Raises NoRule where it gives none."""
    text = str(expression)
    value = fold(text) if len(text) <= LONGEST else None
    found = None if value is None else constant_of_scalar(value)
    if found is None:
        raise NoRule(f"{brief(text)} has no value that is known when planning")
    return found


def _operand(expression: Expression, binder: Binder, bind: Callable[[Predicate, Binder], Predicate]) -> Operand:
    match expression:
        case Column():
            return field_of(expression, binder)
        case Literal():
            return constant_of(expression, binder.zone)
        case Test(predicate):
            return Tested(bind(predicate, binder))
        case Cast(operand, type_, safe):
            return _cast(bind_operand(operand, binder, bind), type_, safe, binder.zone)
        case Case(branches, otherwise):
            conditions = [bind(condition, binder) for condition, _ in branches]
            values = [bind_operand(value, binder, bind) for _, value in branches]
            return _choice(conditions, values, bind_operand(otherwise, binder, bind), binder.zone)
        case Duration():
            raise NoRule(f"{expression} has no rule but beside + and -")
        case Call(("+" | "-") as sign, (moment, Duration() as duration)):
            return _moved(bind_operand(moment, binder, bind), sign, duration, binder.zone)
        case Call("+", (Duration() as duration, moment)):
            return _moved(bind_operand(moment, binder, bind), "+", duration, binder.zone)
        case Call(function, ()) if function in _CLOCK:
            return _now(function, binder)
        case Call(function, arguments):
            return _apply(function, [bind_operand(a, binder, bind) for a in arguments], binder.zone)


def field_of(column: Column, binder: Binder) -> Field:
    """The field of a column whose values have an order. Raises NoRule, UnknownColumn, AmbiguousColumn."""
    field = resolve(column, binder)
    if field.type == COLLATED:
        raise NoRule(f"column {field} has a collation, which compares strings otherwise than by their bytes")
    if kind_of(field.type) is None:
        raise NoRule(f"values of {field} of type {field.type} have no order that bounds are kept in")
    return field


# ---- constants -------------------------------------------------------------------------------------------------------


def constant_of(literal: Literal, zone: dt.tzinfo) -> Constant:
    """A literal with its type. Raises NoRule for text that is no date here."""
    if literal.value is None:
        return Constant(_TYPES[literal.type], None)
    type_ = _decimal_type(literal.value) if isinstance(literal.value, Decimal) else _TYPES[literal.type]
    found = positions(Subject(str(literal), type_), [literal], zone)
    if found is None or found[0].at is None:
        raise NoRule(f"{literal} is left to Spark")
    suffixed = types.is_integer(type_) and literal.type != "int"
    return Constant(type_, found[0].at, written=None if suffixed else True)


def _decimal_type(value: Decimal) -> pa.DataType:
    precision, scale = types.size_of(value)
    if precision > types.MOST_DIGITS:
        raise NoRule(f"{value} has more digits than a decimal")
    return pa.decimal128(precision, scale)


def literal_of(operand: Constant) -> Literal | None:
    """The literal of a constant, or None for one that Python has no value for."""
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


# ---- time ------------------------------------------------------------------------------------------------------------

_CLOCK = {
    **dict.fromkeys(("current_timestamp", "now"), INSTANT),
    "localtimestamp": LOCAL,
    **dict.fromkeys(("current_date", "curdate"), pa.date32()),
}
_SLOW = dt.timedelta(hours=1)  # by which the clock that Spark reads may be behind this one
_END = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)


def _now(function: str, binder: Binder) -> Varying:
    """The time when the query runs, which is not before the time when it is planned.

    So `ts >= now() - INTERVAL 1 DAY` rules out what is older, however much later the plan is used.
    """
    earliest = binder.now - _SLOW
    type_ = _CLOCK[function]
    if type_ != INSTANT:
        earliest = earliest.astimezone(binder.zone).replace(tzinfo=dt.UTC)
    ends = [local_micros(moment) // (DAY if pa.types.is_date32(type_) else 1) for moment in (earliest, _END)]
    return Varying(type_, *ends)


def _moved(operand: Operand, sign: str, duration: Duration, zone: dt.tzinfo) -> Operand:
    """A date or timestamp plus or minus an interval of one unit."""
    count = duration.count if sign == "+" else -duration.count
    unit = Constant(pa.string(), duration.unit.encode())
    return _apply("timestampadd", [unit, Constant(pa.int32(), count), operand], zone)


# ---- functions -------------------------------------------------------------------------------------------------------


def _cast(operand: Operand, target: str, safe: bool, zone: dt.tzinfo) -> Operand:
    type_ = types.named(target)
    if type_ is None:
        raise NoRule(f"a cast to {target} has no rule")
    return coerced(operand, type_, zone, safe=safe)


def coerced(operand: Operand, type_: pa.DataType, zone: dt.tzinfo, *, safe: bool = False) -> Operand:
    """The operand cast to a type. Raises NoRule where the cast does not keep the order of values."""
    if operand.type == type_:
        return replace(operand, written=False) if isinstance(operand, Constant) else operand
    if isinstance(operand, Constant) and operand.key is None:
        return Constant(type_, None)
    if isinstance(operand, Constant) and (found := _cast_constant(operand, type_, zone)) is not None:
        return found
    function = (casts.try_cast if safe else casts.cast)(operand.type, type_, zone)
    if function is None:
        raise NoRule(f"a cast from {operand.type} to {type_} does not keep the order of values")
    return _folded(function, (operand,))


def _cast_constant(operand: Constant, type_: pa.DataType, zone: dt.tzinfo) -> Constant | None:
    """The cast of a text to another type, or of a literal to text, where it surely has that value."""
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
        found = positions(Subject("a constant", type_), [literal], zone)
    except IncomparableLiteral:
        return None
    key = None if found is None else found[0].at
    least, greatest = key_range(type_)
    return Constant(type_, key) if isinstance(key, int) and least <= key <= greatest else None


def common_type(operands: Sequence[Operand]) -> pa.DataType:
    """The type that values of all operands are brought to. Raises NoRule."""
    found = reduce(lambda a, b: a if a is None else types.common(a, b), [o.type for o in operands])
    if found is None or kind_of(found) is None:
        raise NoRule(f"{' and '.join(str(o.type) for o in operands)} have no common type with an order")
    return found


def _choice(conditions: list[Predicate], values: list[Operand], otherwise: Operand, zone: dt.tzinfo) -> Operand:
    type_ = common_type([*values, otherwise])
    branches = tuple((c, coerced(v, type_, zone)) for c, v in zip(conditions, values, strict=True))
    return Choice(branches, coerced(otherwise, type_, zone))


_ALIKE = ("coalesce", "greatest", "least")  # whose arguments are brought to one type


_ARITHMETIC = ("+", "-", "*", "/", "%", "negative", "abs")  # NULL beside whatever is NULL


def _apply(name: str, arguments: list[Operand], zone: dt.tzinfo) -> Operand:
    if name in _ARITHMETIC and any(isinstance(a, Constant) and a.key is None for a in arguments):
        return Constant(pa.null(), None)
    if name == "concat":  # of binary alone it is binary
        arguments = [_as_text(a, zone) for a in arguments]
    elif name in ("lpad", "rpad"):
        arguments = [_as_text(arguments[0], zone), *arguments[1:]]
    if name in _ALIKE:
        type_ = common_type(arguments)
        arguments = [coerced(a, type_, zone) for a in arguments]
    if (value := _computed(name, arguments, zone)) is not None:
        return value
    name, arguments = _date_arithmetic(name, _with_dates(name, arguments, zone))
    if any(pa.types.is_null(a.type) or kind_of(a.type) is None for a in arguments):
        raise NoRule(f"{name} of {', '.join(str(a.type) for a in arguments)} has no rule")
    known = [Argument(a.type, a.key, a.written) if isinstance(a, Constant) else Argument(a.type) for a in arguments]
    function = rule(name)
    if function is None:
        raise NoRule(f"{name} has no rule")
    found = function(known, zone)
    if found is None:
        raise NoRule(f"{name} of {', '.join(str(a.type) for a in arguments)} has no rule")
    return _folded(found, tuple(arguments))


def _computed(name: str, arguments: list[Operand], zone: dt.tzinfo) -> Constant | None:
    """The value of a function of constants that has one whatever its arguments' bounds."""
    literals = [literal_of(a) for a in arguments if isinstance(a, Constant)]
    known = [literal for literal in literals if literal is not None]
    if not known or len(known) < len(arguments):
        return None
    found = value_of(name, known, zone)
    return None if found is None else replace(constant_of(found, zone), written=False)


_OF_DATES: tuple[str, ...] = ("add_months", "date_add", "date_sub", "datediff", "last_day", "next_day", "trunc")
_OF_DATES += ("year", "quarter", "month", "day", "dayofweek", "dayofyear", "weekday", "weekofyear")


def _with_dates(name: str, arguments: list[Operand], zone: dt.tzinfo) -> list[Operand]:
    """The arguments, of which Spark casts text to dates."""
    if name not in _OF_DATES:
        return arguments
    count = 2 if name == "datediff" else 1
    dates = [_cast_constant(a, pa.date32(), zone) if isinstance(a, Constant) else None for a in arguments[:count]]
    return [found or a for found, a in zip(dates, arguments, strict=False)] + arguments[count:]


def _as_text(operand: Operand, zone: dt.tzinfo) -> Operand:
    return coerced(operand, pa.string(), zone) if types.is_integer(operand.type) else operand


def _date_arithmetic(name: str, arguments: list[Operand]) -> tuple[str, list[Operand]]:
    """A date and a whole number of days are added and subtracted by functions of their own."""
    match name, [pa.types.is_date32(a.type) for a in arguments]:
        case "+", [True, False]:
            return "date_add", arguments
        case "+", [False, True]:
            return "date_add", arguments[::-1]
        case "-", [True, False]:
            return "date_sub", arguments
        case _:
            return name, arguments


def _folded(function: Function, arguments: tuple[Operand, ...]) -> Operand:
    """The function of the arguments; of constants only, its value. Raises NoRule where Spark would raise an error."""
    if not all(isinstance(a, Constant) for a in arguments):
        return Apply(function, arguments)
    found = function.bounds([constant(a.type, a.key, 1) for a in arguments if isinstance(a, Constant)])
    if found.fails[0]:
        raise NoRule(f"{function.name} of these constants has no value")
    if not found.value[0]:
        return Constant(function.type, None)
    if not (function.exact and found.is_point[0]):
        return Apply(function, arguments)
    return Constant(function.type, found.lower.at(0))
