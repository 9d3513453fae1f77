"""Comparisons of bound operands: with a literal, with another operand, and with a list of values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.functions.types import is_integer, is_temporal
from secateur.pruning.predicate import nodes
from secateur.pruning.predicate.binding import without_ansi
from secateur.pruning.predicate.binding.application import alike, coerced
from secateur.pruning.predicate.binding.conditions import missing, within
from secateur.pruning.predicate.binding.listed_keys import listed_keys, of_positions
from secateur.pruning.predicate.binding.literals import Position, Subject, plain_keys, positions
from secateur.pruning.predicate.binding.operands import interval_operand
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.binding.typed_constants import NoRule, constant_of, literal_of
from secateur.pruning.predicate.binding.unwrapped_casts import is_cast, unwrapped
from secateur.pruning.predicate.bound import Compared, Constant, Field, Operand
from secateur.pruning.predicate.bound_walks import is_repeatable
from secateur.pruning.predicate.constructors import FLIPPED
from secateur.pruning.predicate.nodes import And, Expression, Literal, Not, Or, Predicate, Sql, Truth
from secateur.pruning.predicate.trees import Steps
from secateur.pruning.predicate.value_lists import ValueList, present
from secateur.values.key import INT64_MAX, INT64_MIN, least_key
from secateur.values.kinds import kind_of, ordered_kind

_EQUALITIES = ("=", "<=>")


def with_literal(op: str, operand: Operand, literal: Literal, sql: Sql, binder: Binder) -> Predicate:
    """Compare an operand with a literal: as keys where the literal has a place among them. Raises NoRule."""
    if not binder.ansi:
        literal = _without_ansi(op, operand.type, literal)
    if literal.value is None:
        return missing(operand, sql) if op == "<=>" else Truth(None)
    if (always := _beyond_long(op, operand.type, literal)) is not None:
        return Truth(always)
    place = _position(op, operand, literal, sql, binder)
    kind = kind_of(operand.type)
    if place is None or kind is None:
        return comparison(op, operand, constant_of(literal, binder.zone), sql, binder)
    operand, position = unwrapped(op, operand, place, binder.zone)
    at, after = position.at, position.after
    least = least_key(kind)
    match op:
        case "=":
            return within(operand, rangeset.between(kind, at, after), sql)
        case "<":
            return within(operand, rangeset.between(kind, least, at), sql)
        case "<=":
            return within(operand, rangeset.between(kind, least, after), sql)
        case ">":
            return within(operand, rangeset.between(kind, after, None), sql)
        case ">=":
            return within(operand, rangeset.between(kind, at, None), sql)
        case "<=>" if isinstance(
            sql, nodes.Comparison
        ):  # FALSE instead of NULL on NULL: `x = c AND x IS NOT NULL` is FALSE there
            equal = within(operand, rangeset.between(kind, at, after), sql)
            return And((equal, Not(missing(operand, nodes.IsNull(sql.left)))))
        case _:
            raise ValueError(f"unknown comparison {op!r}")


def comparison(op: str, left: Operand, right: Operand, sql: Sql, binder: Binder) -> Predicate:
    """Compare two operands; one that proves constant becomes a literal."""
    if isinstance(left, Constant) and not isinstance(right, Constant):
        left, right, op = right, left, FLIPPED[op]
    if isinstance(right, Constant) and right.type == pa.string() != left.type:  # Spark casts it as it would a literal
        text = literal_of(right)
        if text is not None and _is_cast_like_a_literal(op, left, text, sql, binder):
            return with_literal(op, left, text, sql, binder)
    if isinstance(right, Constant) and is_temporal(left.type) and is_integer(right.type):  # `d > 2020-01-31` is one
        number = literal_of(right)
        if number is not None:
            return with_literal(op, left, number, sql, binder)
    left, right = alike([left, right], binder)
    if isinstance(right, Constant) and right.key is None:
        return missing(left, sql) if op == "<=>" else Truth(None)
    literal = literal_of(right) if isinstance(right, Constant) else None
    if literal is not None and _position(op, left, literal, sql, binder) is not None:
        return with_literal(op, left, literal, sql, binder)
    if op in (">", ">="):
        left, right, op = right, left, FLIPPED[op]
    return _compared(op, left, right, sql)


def between_intervals(op: str, left: Expression, right: Expression, sql: Sql, binder: Binder) -> Steps[Predicate]:
    """Compare a difference of times with an interval."""
    first = yield from interval_operand(left, binder)
    second = yield from interval_operand(right, binder)
    if first is None or second is None:
        raise NoRule("no rule for this interval")
    return comparison(op, first, second, sql, binder)


def in_list(operand: Operand, literals: Sequence[Literal], sql: Sql, binder: Binder) -> Predicate:
    """Bind IN with a list of literals, NULL perhaps among them. Raises NoRule."""
    if not literals:
        return Truth(False)  # even on NULL, as in Spark
    values = present(literals)
    if not binder.ansi:
        operand, values = _listed_without_ansi(operand, values, binder)
    if len(values) == len(literals) == 1 and is_cast(operand):
        return with_literal("=", operand, values[0], sql, binder)
    listed = within(operand, _listed(operand, values, sql, binder), sql)
    # `x IN (1, NULL)` is `x = 1 OR NULL`.
    return listed if len(values) == len(literals) else Or((listed, Truth(None)))


def among(left: Operand, values: Sequence[Operand], sql: Sql, binder: Binder) -> Predicate:
    """Bind IN with values that are not literals: constants, or one comparison each, all in one type."""
    literals = [literal_of(value) for value in values if isinstance(value, Constant)]
    known = tuple(literal for literal in literals if literal is not None)
    if len(known) == len(values) and not isinstance(left, Constant):
        return in_list(left, known, sql, binder)
    left, *values = alike([left, *values], binder)
    return Or(tuple(comparison("=", left, value, sql, binder) for value in values))


def _subject(operand: Operand, sql: Sql) -> Subject:
    return Subject(operand if isinstance(operand, Field) else sql, operand.type)


def _without_ansi(op: str, type_: pa.DataType, literal: Literal) -> Literal:
    """Cast a literal as a session without ANSI would. Raises NoRule if only Spark knows the result."""
    if literal.type == "boolean" and op not in _EQUALITIES:
        return literal
    beside = without_ansi.beside(type_, literal)
    if beside is None:
        raise NoRule(f"the cast of {literal} to {type_} is left to Spark")
    return beside


def _position(op: str, operand: Operand, literal: Literal, sql: Sql, binder: Binder) -> Position | None:
    """Return a literal's position among the keys of an operand, if no cast of the operand is needed."""
    if not binder.ansi:
        if is_integer(operand.type) and without_ansi.meet_as_floats(operand.type, [literal]):
            return None
        if pa.types.is_boolean(operand.type) and op in _EQUALITIES:
            among = without_ansi.place_among_booleans(literal)
            if among is not None:
                return among
    places = positions(_subject(operand, sql), [literal], binder.zone)
    return None if places is None else places[0]


def _beyond_long(op: str, type_: pa.DataType, literal: Literal) -> bool | None:
    """Return the value of ``<``, ``<=``, ``>``, ``>=`` for an integer and a decimal beyond a long, even on NULL.

    Source: Spark's ``DecimalPrecision.integralAndDecimalLiteral``, which replaces the comparison by a constant.
    """
    match op, literal:
        case (("<" | "<=" | ">" | ">="), Literal(Decimal() as number, "decimal")):
            if not is_integer(type_) or INT64_MIN <= number <= INT64_MAX:
                return None
            return (number > INT64_MAX) == (op in ("<", "<="))
        case _:
            return None


def _is_cast_like_a_literal(op: str, left: Operand, text: Literal, sql: Sql, binder: Binder) -> bool:
    """Whether constant text beside another type has a place among its keys, once it is cast. Raises as `bind` does."""
    if binder.ansi:
        return _position(op, left, text, sql, binder) is not None
    beside = without_ansi.beside(left.type, text)
    return beside is not None and beside.type != "string"


def _compared(op: str, left: Operand, right: Operand, sql: Sql) -> Predicate:
    if left != right or not is_repeatable(left):
        return Compared(op, left, right, sql)
    kind = ordered_kind(left.type)
    match op:  # NaN equals NaN in Spark, so a value equals itself
        case "<=>":
            return Truth(True)
        case "<":
            return within(left, rangeset.empty(kind), sql)
        case _:
            return within(left, rangeset.everything(kind), sql)


def _listed_without_ansi(
    operand: Operand, literals: Sequence[Literal], binder: Binder
) -> tuple[Operand, Sequence[Literal]]:
    """Cast an operand and an IN list as a session without ANSI would. Raises NoRule if both become text."""
    if without_ansi.are_cast_to_text(operand.type, literals):
        raise NoRule(f"a {operand.type} beside a list with text is compared as text")
    if without_ansi.meet_as_floats(operand.type, literals):
        return coerced(operand, pa.float32(), binder.zone), without_ansi.as_floats(literals)
    return operand, literals


def _listed(operand: Operand, literals: Sequence[Literal], sql: Sql, binder: Binder) -> RangeSet:
    """Return the keys of an IN list without NULL."""
    kind = kind_of(operand.type)
    if kind is None:
        raise NoRule(f"a {operand.type} has no order")
    if isinstance(literals, ValueList):
        ranges = listed_keys(operand.type, literals.array, binder.zone)
        if ranges is not None:
            return ranges
        literals = tuple(literals)
    if (keys := plain_keys(operand.type, literals)) is not None:
        return rangeset.points(kind, keys)
    places = positions(_subject(operand, sql), literals, binder.zone)
    if places is None:
        raise NoRule(f"a {operand.type} does not compare with all of the list in key order")
    return of_positions(kind, places)
