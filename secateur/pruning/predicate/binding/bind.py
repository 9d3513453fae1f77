"""Binding: resolve names to fields of the table's schema, and literals to sets of keys.

The caller's mistakes are raised here: UnknownColumn, AmbiguousColumn, IncomparableLiteral. What Spark can evaluate and
this package cannot becomes Unsupported, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.pruning import rangeset
from secateur.pruning.functions.text import LONGEST, TRIMS, unfolded
from secateur.pruning.functions.types import is_integer, is_temporal
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.interval import constant, of_zones
from secateur.pruning.predicate import nodes
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.binding import without_ansi
from secateur.pruning.predicate.binding.containers import holds, needs
from secateur.pruning.predicate.binding.folding import is_computed, is_foldable
from secateur.pruning.predicate.binding.listed_keys import listed_keys, of_positions
from secateur.pruning.predicate.binding.literals import Position, Subject, plain_keys, positions
from secateur.pruning.predicate.binding.operands import (
    NoRule,
    alike,
    apply,
    asked,
    bound_operand,
    coerced,
    constant_of,
    interval_operand,
    literal_of,
)
from secateur.pruning.predicate.binding.resolve import Binder, Fold, resolve
from secateur.pruning.predicate.binding.unwrapped_casts import is_cast, unwrapped
from secateur.pruning.predicate.bound import (
    Apply,
    Compared,
    Constant,
    Field,
    Holds,
    Missing,
    OfValue,
    Operand,
    TextMatch,
    Unsupported,
    Within,
    is_repeatable,
    leaves,
)
from secateur.pruning.predicate.calls import CONTAINMENTS, build, escaped
from secateur.pruning.predicate.inverse import pull_back, strictly
from secateur.pruning.predicate.joins.semi_join import joined
from secateur.pruning.predicate.nodes import (
    And,
    Call,
    Column,
    Expression,
    Is,
    Literal,
    Not,
    Or,
    Predicate,
    Sql,
    Truth,
    as_expression,
    as_predicate,
)
from secateur.pruning.predicate.patterns.finite_patterns import matching_texts
from secateur.pruning.predicate.patterns.like import Pattern, encoded, read_pattern
from secateur.pruning.predicate.patterns.regular_expressions import (
    literal_parts,
    literal_start,
    token_of,
    tokens_of,
)
from secateur.pruning.predicate.patterns.substrings import Alternatives, Substring, alternatives_of, anywhere, in_bytes
from secateur.pruning.predicate.patterns.text_tests import InLowerCase, TextTest, ilike, in_lower_case, like, rlike
from secateur.pruning.predicate.patterns.trimming import untrimmed
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.pruning.predicate.value_lists import ValueList, present
from secateur.pruning.rangeset import RangeSet
from secateur.values import INT64_MAX, INT64_MIN, Kind, kind_of, least_key, ordered_kind

EQUALITIES = ("=", "<=>")
_CASES = ("lower", "upper", "initcap")
_PARTS = ("substring[", "split_part[", "split[")  # functions whose values are contiguous parts of a text

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
) -> Predicate:
    """Bind a predicate to the fields of `schema`; its leaves are those of :mod:`..bound`.

    `fold` is called for the values of constants that have no rule here. Expressions in `indexed` become fields.

    Raises UnknownColumn, AmbiguousColumn, IncomparableLiteral, and ValueError for an unknown time zone.
    """
    zone = known_zone(session_time_zone)
    return bound_by(predicate, Binder(schema, zone, case_sensitive, ansi, fold=fold, indexed=indexed or {}))


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
    named = tuple(dict.fromkeys(resolve(column, binder) for column in nodes.columns(predicate)))
    hides = any(not opaque.columns for opaque in nodes.opaque(predicate))
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
            return _missing((yield operand), sql)
        case nodes.Comparison("=", Call(function) as call, Literal(True, "boolean")) if function in CONTAINMENTS:
            return holds(call, sql, binder)
        case nodes.Comparison(
            "=",
            Call(function, (text, pattern)),
            Literal(True, "boolean"),
        ) if function in PATTERN_CALLS:
            return (yield _with_pattern(function, text, (yield pattern)))
        case nodes.Comparison(op, left, Literal() as right):
            return _with_literal(op, (yield left), right, predicate, binder)
        case nodes.Comparison(op, left, right):
            if nodes.Duration in (type(left), type(right)):
                return (yield from _between_intervals(op, left, right, predicate, binder))
            first = yield left
            return _comparison(op, first, (yield right), predicate, binder)
        case nodes.Among(operand, options):
            first = yield operand
            return _among(first, (yield from each_of(options)), sql, binder)
        case nodes.In(operand, literals):
            return _in((yield operand), literals, sql, binder)
        case nodes.Like(operand, pattern, escape):
            return _like((yield operand), read_pattern(pattern, escape, sql), sql)
        case nodes.ILike(operand, pattern, escape):
            lower = apply("lower", [(yield operand)], binder)
            if pattern.isascii():  # the only patterns whose lower case is known
                lower = _or_field(lower, binder)
            return _ilike(lower, read_pattern(pattern, escape, sql), sql)
        case nodes.RLike(operand, pattern):
            return _rlike((yield operand), pattern, sql)
    raise NoRule("no rule for this expression")


def _as_condition(predicate: Predicate) -> Predicate:
    """Prepare a bound condition for use inside an operand, evaluated from bounds, also on rows. Raises NoRule."""
    for leaf in leaves(predicate):
        if isinstance(leaf, Holds):
            raise NoRule(f"{brief(leaf.sql)} has a rule as a condition of its own only")
    return predicate


# ---- leaves ----------------------------------------------------------------------------------------------------------


def within(operand: Operand, ranges: RangeSet, sql: Sql) -> Predicate:
    """Test whether an operand is in a set of keys; pulled back to the column below it if its functions allow.

    Keys of the column for which a function wraps around, or is NULL, are handled separately.
    """
    if isinstance(operand, Constant):
        if operand.key is None:
            return Truth(None)
        return Truth(bool(ranges.contains(constant(operand.type, operand.key, 1).lower)[0]))
    plain = strictly(operand)
    if (test := pull_back(plain, ranges)) is not None:
        if test.fails is None or plain is operand:
            return Within(test.field, test.ranges, sql, test.fails)
        elsewhere = Within(test.field, rangeset.intersection(test.ranges, rangeset.complement(test.fails)), sql)
        return Or((elsewhere, And((Within(test.field, test.fails, sql), Within(operand, ranges, sql)))))
    if isinstance(operand, Apply) and operand.function.name in _CASES:
        prefix = unfolded(operand.function.name, ranges) or rangeset.everything(Kind.BYTES)
        if operand.function.name != "lower":  # ß and ligatures become ASCII: filters could not use such texts
            return TextMatch(operand.arguments[0], OfValue(operand, ranges), prefix, sql)
        alternatives = in_bytes(alternatives_of(ranges), folded=True)
        return TextMatch(operand.arguments[0], in_lower_case(ranges), prefix, sql, alternatives, folded=True)
    if isinstance(operand, Apply) and operand.function.name.startswith(("instr[", "locate[")):
        return _placed(operand, ranges, sql)
    if isinstance(operand, Apply) and operand.function.name in TRIMS:
        return _trimmed(operand, ranges, alternatives_of(ranges), sql)
    if isinstance(operand, Apply) and operand.function.name.startswith(_PARTS) and not _may_fail(operand):
        return _part(operand, ranges, alternatives_of(ranges), sql)
    return Within(operand, ranges, sql)


def _trimmed(operand: Apply, test: RangeSet | TextTest, alternatives: Alternatives, sql: Sql) -> TextMatch:
    """Test trimmed text; TRUE only if one of the alternatives is contained."""
    name, (text,) = operand.function.name, operand.arguments
    starts, loose = untrimmed(name, alternatives)
    certain = in_bytes(loose, folded=False) if isinstance(text, Field) else ()
    return TextMatch(text, OfValue(operand, test), starts, sql, certain)


def _part(operand: Apply, test: RangeSet | TextTest, alternatives: Alternatives, sql: Sql) -> Predicate:
    """Test a part of a text, which contains what the part does."""
    text, loose = operand.arguments[0], anywhere(alternatives)
    certain = in_bytes(loose, folded=False) if isinstance(text, Field) else ()
    return TextMatch(text, OfValue(operand, test), rangeset.everything(Kind.BYTES), sql, certain)


def _may_fail(operand: Apply) -> bool:
    """Whether a function of a text may fail, or be NULL though its text is not."""
    whole = [of_zones(None, argument.type, 1) for argument in operand.arguments]
    interval = operand.function.bounds([replace(part, null=np.zeros(1, np.uint8)) for part in whole])
    return bool(interval.fails[0] or interval.null[0])


def _placed(operand: Apply, ranges: RangeSet, sql: Sql) -> Predicate:
    """Test the place of a part in a text: at 1 or later, or 0 if it is nowhere."""
    plain = Within(operand, ranges, sql)
    is_instr = operand.function.name.startswith("instr[")
    text, part = operand.arguments[:2] if is_instr else operand.arguments[1::-1]
    literal = escaped(part.key.decode()) if isinstance(part, Constant) and isinstance(part.key, bytes) else None
    holds_none = bool(ranges.contains(constant(operand.type, 0, 1).lower)[0])
    places = rangeset.between(Kind.WORD, 1, LONGEST + 1)
    asked = rangeset.intersection(ranges, places)
    if literal is None or (holds_none and not asked.is_empty):
        return plain
    with suppress(NoRule):
        contained = _like(text, read_pattern(f"%{literal}%", "\\", sql), sql)
        if holds_none:
            return Not(contained) if is_instr else plain
        if is_instr and rangeset.intersection(rangeset.complement(ranges), places).is_empty:
            return contained
        if is_instr and asked.points is not None and asked.points.tolist() == [1]:
            return _like(text, read_pattern(f"{literal}%", "\\", sql), sql)
        return And((contained, plain))
    return plain


def _missing(operand: Operand, sql: Sql) -> Predicate:
    """Test for NULL; functions of clocks are NULL exactly if their argument is, in any zone."""
    while isinstance(operand, Apply) and operand.function.is_steady is not None:
        moving = [argument for argument in operand.arguments if not isinstance(argument, Constant)]
        if len(moving) != 1 or any(isinstance(a, Constant) and a.key is None for a in operand.arguments):
            break
        (operand,) = moving
    return Truth(operand.key is None) if isinstance(operand, Constant) else Missing(operand, sql)


def _subject(operand: Operand, sql: Sql) -> Subject:
    return Subject(operand if isinstance(operand, Field) else sql, operand.type)


def _with_literal(op: str, operand: Operand, literal: Literal, sql: Sql, binder: Binder) -> Predicate:
    if not binder.ansi:
        literal = _without_ansi(op, operand.type, literal)
    if literal.value is None:
        return _missing(operand, sql) if op == "<=>" else Truth(None)
    if (always := _beyond_long(op, operand.type, literal)) is not None:
        return Truth(always)
    place = _position(op, operand, literal, sql, binder)
    kind = kind_of(operand.type)
    if place is None or kind is None:
        return _comparison(op, operand, constant_of(literal, binder.zone), sql, binder)
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
            return And((equal, Not(_missing(operand, nodes.IsNull(sql.left)))))
        case _:
            raise ValueError(f"unknown comparison {op!r}")


def _without_ansi(op: str, type_: pa.DataType, literal: Literal) -> Literal:
    """Cast a literal as a session without ANSI would. Raises NoRule if only Spark knows the result."""
    if literal.type == "boolean" and op not in EQUALITIES:
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
        if pa.types.is_boolean(operand.type) and op in EQUALITIES:
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


def _comparison(op: str, left: Operand, right: Operand, sql: Sql, binder: Binder) -> Predicate:
    """Compare two operands; one that proves constant becomes a literal."""
    if isinstance(left, Constant) and not isinstance(right, Constant):
        left, right, op = right, left, nodes.FLIPPED[op]
    if isinstance(right, Constant) and right.type == pa.string() != left.type:  # Spark casts it as it would a literal
        text = literal_of(right)
        if text is not None and _is_cast_like_a_literal(op, left, text, sql, binder):
            return _with_literal(op, left, text, sql, binder)
    if isinstance(right, Constant) and is_temporal(left.type) and is_integer(right.type):  # `d > 2020-01-31` is one
        number = literal_of(right)
        if number is not None:
            return _with_literal(op, left, number, sql, binder)
    left, right = alike([left, right], binder)
    if isinstance(right, Constant) and right.key is None:
        return _missing(left, sql) if op == "<=>" else Truth(None)
    literal = literal_of(right) if isinstance(right, Constant) else None
    if literal is not None and _position(op, left, literal, sql, binder) is not None:
        return _with_literal(op, left, literal, sql, binder)
    if op in (">", ">="):
        left, right, op = right, left, nodes.FLIPPED[op]
    return _compared(op, left, right, sql)


def _is_cast_like_a_literal(op: str, left: Operand, text: Literal, sql: Sql, binder: Binder) -> bool:
    """Whether constant text beside another type has a place among its keys, once it is cast. Raises as `bind` does."""
    if binder.ansi:
        return _position(op, left, text, sql, binder) is not None
    beside = without_ansi.beside(left.type, text)
    return beside is not None and beside.type != "string"


def _between_intervals(op: str, left: Expression, right: Expression, sql: Sql, binder: Binder) -> Steps[Predicate]:
    """Compare a difference of times with an interval."""
    first = yield from interval_operand(left, binder)
    second = yield from interval_operand(right, binder)
    if first is None or second is None:
        raise NoRule("no rule for this interval")
    return _comparison(op, first, second, sql, binder)


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


def _in(operand: Operand, literals: Sequence[Literal], sql: Sql, binder: Binder) -> Predicate:
    if not literals:
        return Truth(False)  # even on NULL, as in Spark
    values = present(literals)
    if not binder.ansi:
        operand, values = _listed_without_ansi(operand, values, binder)
    if len(values) == len(literals) == 1 and is_cast(operand):
        return _with_literal("=", operand, values[0], sql, binder)
    listed = within(operand, _listed(operand, values, sql, binder), sql)
    # `x IN (1, NULL)` is `x = 1 OR NULL`.
    return listed if len(values) == len(literals) else Or((listed, Truth(None)))


def _listed_without_ansi(
    operand: Operand, literals: Sequence[Literal], binder: Binder
) -> tuple[Operand, Sequence[Literal]]:
    """Cast an operand and an IN list as a session without ANSI would. Raises NoRule if both become text."""
    if without_ansi.are_cast_to_text(operand.type, literals):
        raise NoRule(f"a {operand.type} beside a list with text is compared as text")
    if without_ansi.meet_as_floats(operand.type, literals):
        return coerced(operand, pa.float32(), binder.zone), without_ansi.as_floats(literals)
    return operand, literals


def _among(left: Operand, values: Sequence[Operand], sql: Sql, binder: Binder) -> Predicate:
    """Bind IN with values that are not literals: constants, or one comparison each, all in one type."""
    literals = [literal_of(value) for value in values if isinstance(value, Constant)]
    known = tuple(literal for literal in literals if literal is not None)
    if len(known) == len(values) and not isinstance(left, Constant):
        return _in(left, known, sql, binder)
    left, *values = alike([left, *values], binder)
    return Or(tuple(_comparison("=", left, value, sql, binder) for value in values))


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


# ---- patterns --------------------------------------------------------------------------------------------------------


def _with_pattern(function: str, text: Expression, pattern: Operand) -> Predicate:
    """Bind a condition whose pattern is a constant expression. Raises NoRule if it is not."""
    literal = literal_of(pattern) if isinstance(pattern, Constant) else None
    if literal is None or literal.type != "string":
        raise NoRule("the pattern is not a constant")
    test = build(function, (text, literal))
    return test if isinstance(test, Predicate) else as_predicate(test)


def _like(operand: Operand, pattern: Pattern, sql: Sql) -> Predicate:
    if operand.type != pa.string():
        raise NoRule(f"LIKE on a {operand.type} has no rule")
    if pattern.is_literal:
        return within(operand, rangeset.points(Kind.BYTES, [pattern.prefix]), sql)
    if pattern.is_prefix:
        return within(operand, rangeset.starting_with(pattern.prefix), sql)
    return _matching(operand, like(pattern), pattern.alternatives, pattern.prefix, sql)


def _ilike(lower: Operand, pattern: Pattern, sql: Sql) -> Predicate:
    """Test text in lower case by a pattern, which Spark puts in lower case too."""
    leaf = _like(lower, pattern.in_lower_case(), sql)
    return replace(leaf, test=ilike(pattern)) if isinstance(leaf, TextMatch) else leaf


def _rlike(operand: Operand, pattern: str, sql: Sql) -> Predicate:
    if operand.type != pa.string():
        raise NoRule(f"RLIKE on a {operand.type} has no rule")
    if (ranges := matching_texts(pattern)) is not None:
        return within(operand, ranges, sql)
    word, test = token_of(pattern), rlike(pattern)
    if word is None:
        return _matching(operand, test, literal_parts(pattern), encoded(literal_start(pattern)), sql)
    leaf = _matching(operand, test, ((Substring(encoded(word)),),), b"", sql)
    return replace(leaf, tokens=tokens_of(word, folded=leaf.folded)) if leaf.alternatives else leaf


def _matching(operand: Operand, test: TextTest, alternatives: Alternatives, prefix: bytes, sql: Sql) -> TextMatch:
    """Test decoded text, which needs the text itself: of a column here, of anything else only in Spark."""
    starts = rangeset.starting_with(prefix.partition(encoded("\ufffd"))[0])
    if isinstance(operand, Field):
        return TextMatch(operand, test, starts, sql, in_bytes(alternatives, folded=False))
    if isinstance(operand, Apply) and operand.function.name in TRIMS:
        return _trimmed(operand, test, in_bytes(alternatives, folded=False), sql)
    leaf = within(operand, starts, sql)
    match leaf:
        case TextMatch(inner, InLowerCase(), ranges):
            certain = in_bytes(alternatives, folded=True) if isinstance(inner, Field) else ()
            return TextMatch(inner, in_lower_case(test), ranges, sql, certain, folded=True)
        case Within(inner, ranges, _, None) | TextMatch(inner, _, ranges, _):
            return TextMatch(inner, OfValue(operand, test), ranges, sql)
        case _:
            raise NoRule("a pattern on this expression has no rule")
