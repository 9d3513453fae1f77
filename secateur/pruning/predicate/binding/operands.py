"""Bind expressions: nodes to typed operands, with the casts that Spark would insert; constants are folded."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur.pruning.functions import types
from secateur.pruning.functions.calendar import DAY
from secateur.pruning.functions.types import INSTANT, LOCAL
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.binding.application import apply, choice, coerced, common_type, converted
from secateur.pruning.predicate.binding.folding import LONGEST, constant_of_scalar
from secateur.pruning.predicate.binding.resolve import Binder, Fold, resolve
from secateur.pruning.predicate.binding.temporal import local_micros
from secateur.pruning.predicate.binding.texts_as_moments import texts_as_moments
from secateur.pruning.predicate.binding.typed_constants import NoRule, constant_of
from secateur.pruning.predicate.binding.variants import value_at, variant_value
from secateur.pruning.predicate.bound import Constant, Field, Operand, Tested, Varying
from secateur.pruning.predicate.interval_literals import micros_of
from secateur.pruning.predicate.nodes import Call, Case, Cast, Column, Duration, Expression, Literal, Test
from secateur.pruning.predicate.trees import Steps, each_of
from secateur.values.kinds import COLLATED, kind_of

if TYPE_CHECKING:
    from secateur.pruning.predicate.nodes import Predicate


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
            return converted((yield operand), type_, safe, binder)
        case Case(branches, otherwise):
            conditions, values = [], []
            for condition, value in branches:
                conditions.append(as_condition((yield condition)))
                values.append((yield value))
            return choice(conditions, values, (yield otherwise), binder)
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
