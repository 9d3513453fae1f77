"""Binding: resolve names to fields of the table's schema, and literals to sets of keys.

The caller's mistakes are raised here: UnknownColumn, AmbiguousColumn, IncomparableLiteral. What Spark can evaluate and
this package cannot becomes Unsupported, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate import node_walks, nodes
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.binding.application import apply
from secateur.pruning.predicate.binding.comparisons import among, between_intervals, comparison, in_list, with_literal
from secateur.pruning.predicate.binding.conditions import ilike_leaf, like_leaf, missing, rlike_leaf
from secateur.pruning.predicate.binding.containers import holds, needs
from secateur.pruning.predicate.binding.folding import is_computed, is_foldable
from secateur.pruning.predicate.binding.operands import asked, bound_operand
from secateur.pruning.predicate.binding.resolve import Binder, Fold, resolve
from secateur.pruning.predicate.binding.typed_constants import NoRule, literal_of
from secateur.pruning.predicate.bound import Constant, Field, Holds, Missing, Operand, Unsupported
from secateur.pruning.predicate.bound_walks import leaves
from secateur.pruning.predicate.calls import CONTAINMENTS, build
from secateur.pruning.predicate.constructors import as_expression, as_predicate
from secateur.pruning.predicate.inverse import strictly
from secateur.pruning.predicate.joins.semi_join import joined
from secateur.pruning.predicate.nodes import And, Call, Column, Expression, Is, Literal, Not, Or, Predicate, Sql, Truth
from secateur.pruning.predicate.patterns.like import read_pattern
from secateur.pruning.predicate.trees import Steps, each_of, unrolled

# conditions on a text and a pattern that is not written as a literal
PATTERN_CALLS = ("like", "ilike", "rlike", "regexp", "regexp_like", "startswith", "endswith", "contains")


def bind(
    predicate: Predicate,
    schema: pa.Schema,
    *,
    session_time_zone: str = "UTC",
    case_sensitive: bool = False,
    ansi: bool = True,
    fold: Fold | None = None,
    indexed: Mapping[Operand, Field] | None = None,
    variant_values: bool = False,
) -> Predicate:
    """Bind a predicate to the fields of `schema`; its leaves are those of :mod:`..bound`.

    `fold` is called for the values of constants that have no rule here. Expressions in `indexed` become fields; with
    `variant_values`, so do the values at paths into VARIANT, which are known by statistics alone, not on rows.

    Raises UnknownColumn, AmbiguousColumn, IncomparableLiteral, and ValueError for an unknown time zone.
    """
    zone = known_zone(session_time_zone)
    binder = Binder(schema, zone, case_sensitive, ansi, fold=fold, indexed=indexed or {}, variant_values=variant_values)
    return bound_by(predicate, binder)


def bound_by(predicate: Predicate, binder: Binder) -> Predicate:
    """Bind a predicate to a binder's schema. Raises as :func:`bind`."""
    return unrolled(partial(_bound, binder=binder), predicate, {})


def operand_of(expression: Expression, binder: Binder) -> Operand:
    """Bind an expression to a binder's schema. Raises NoRule, and as :func:`bind`."""
    return unrolled(partial(_bound, binder=binder), expression, {})


def _bound(node: Predicate | Expression, binder: Binder) -> Steps[Any]:
    """Bind a predicate or an operand; yields the predicates and expressions below it."""
    match node:
        case And(children) | Or(children):
            return type(node)(tuple((yield from each_of(children))))
        case Not(child):
            return _negated(node, (yield child), binder)
        case Is(child, value):
            return Is((yield child), value)
        case Truth():
            return node
        case nodes.SemiJoin():
            return joined(node, binder)
        case (
            nodes.Opaque()
            | nodes.Comparison()
            | nodes.In()
            | nodes.Among()
            | nodes.IsNull()
            | nodes.Like()
            | nodes.ILike()
            | nodes.RLike()
        ):
            try:
                return (yield from _leaf(node, binder))
            except NoRule as reason:
                return _unsupported(node, str(reason), binder)
        case Call(function, (text, pattern)) if function in PATTERN_CALLS and not isinstance(pattern, Literal):
            return (yield as_expression(_with_pattern(function, text, (yield pattern))))
        case Column() | Literal() | Call() | nodes.Cast() | nodes.Case() | nodes.Test() | nodes.Duration():
            if binder.fold is not None and is_computed(node) and is_foldable(node):
                return _constant(node, binder, binder.fold)
            return _or_field((yield from bound_operand(node, binder, _as_condition)), binder)
        case _:
            raise TypeError(f"{node!r} is not a predicate: use SQL text or expressions on secateur.col()")


def _or_field(operand: Operand, binder: Binder) -> Operand:
    """Return the field of an operand that is indexed.

    Where the ANSI version fails, the index knows nothing about the field, so the field may stand for both versions.
    """
    return binder.indexed.get(strictly(operand), operand) if binder.indexed else operand


def _constant(expression: Expression, binder: Binder, fold: Fold) -> Operand:
    """Evaluate an expression over constants: by the rules here, else in Spark; bounds if neither gives a value.

    Raises NoRule.
    """
    constant: Operand | None = None
    with suppress(NoRule):
        constant = operand_of(expression, replace(binder, fold=None))
    if isinstance(constant, Constant):
        return constant
    try:
        return asked(expression, fold)
    except NoRule:
        if constant is None:
            raise
        return constant  # bounds only, as for `exp(1)`


def _unsupported(predicate: Predicate, reason: str, binder: Binder) -> Unsupported:
    sql = predicate.sql if isinstance(predicate, nodes.Opaque) else predicate
    named = tuple(dict.fromkeys(resolve(column, binder) for column in node_walks.columns(predicate)))
    hides = any(not opaque.columns for opaque in node_walks.opaque(predicate))
    every = tuple(Field((field.name,), field.type) for field in binder.schema)
    return Unsupported(sql, reason, every if hides else named, needs(predicate, binder))


def _negated(predicate: Not, child: Predicate, binder: Binder) -> Predicate:
    """Negate a bound child; Spark-only ``IS NOT NULL`` becomes a leaf with its own needs if it has any."""
    needed = needs(predicate, binder)
    return replace(child, sql=predicate, needs=needed) if needed and isinstance(child, Unsupported) else Not(child)


def _leaf(predicate: Predicate, binder: Binder) -> Steps[Predicate]:
    sql: Sql = predicate
    match predicate:
        case nodes.Opaque():
            raise NoRule("no rule for this expression")
        case nodes.IsNull(Column() as column):
            field = resolve(column, binder)
            if len(field.path) < len(column.path):
                raise NoRule(f"it is a part of {field}")
            return Missing(field, sql)
        case nodes.IsNull(operand):
            return missing((yield operand), sql)
        case nodes.Comparison("=", Call(function) as call, Literal(True, "boolean")) if function in CONTAINMENTS:
            return holds(call, sql, binder)
        case nodes.Comparison(
            "=",
            Call(function, (text, pattern)),
            Literal(True, "boolean"),
        ) if function in PATTERN_CALLS:
            return (yield _with_pattern(function, text, (yield pattern)))
        case nodes.Comparison(op, left, Literal() as right):
            return with_literal(op, (yield left), right, predicate, binder)
        case nodes.Comparison(op, left, right):
            if nodes.Duration in (type(left), type(right)):
                return (yield from between_intervals(op, left, right, predicate, binder))
            first = yield left
            return comparison(op, first, (yield right), predicate, binder)
        case nodes.Among(operand, options):
            first = yield operand
            return among(first, (yield from each_of(options)), sql, binder)
        case nodes.In(operand, literals):
            return in_list((yield operand), literals, sql, binder)
        case nodes.Like(operand, pattern, escape):
            return like_leaf((yield operand), read_pattern(pattern, escape, sql), sql)
        case nodes.ILike(operand, pattern, escape):
            lower = apply("lower", [(yield operand)], binder)
            if pattern.isascii():  # the only patterns whose lower case is known
                lower = _or_field(lower, binder)
            return ilike_leaf(lower, read_pattern(pattern, escape, sql), sql)
        case nodes.RLike(operand, pattern):
            return rlike_leaf((yield operand), pattern, sql)
    raise NoRule("no rule for this expression")


def _with_pattern(function: str, text: Expression, pattern: Operand) -> Predicate:
    """Bind a condition whose pattern is a constant expression. Raises NoRule if it is not."""
    literal = literal_of(pattern) if isinstance(pattern, Constant) else None
    if literal is None or literal.type != "string":
        raise NoRule("the pattern is not a constant")
    test = build(function, (text, literal))
    return test if isinstance(test, Predicate) else as_predicate(test)


def _as_condition(predicate: Predicate) -> Predicate:
    """Prepare a bound condition for use inside an operand, evaluated from bounds, also on rows. Raises NoRule."""
    for leaf in leaves(predicate):
        if isinstance(leaf, Holds):
            raise NoRule(f"{brief(leaf.sql)} has a rule as a condition of its own only")
    return predicate
