"""Binding: names become fields of the table's schema, literals become sets of keys.

Mistakes of the caller end here: UnknownColumn, AmbiguousColumn, IncomparableLiteral. What Spark can evaluate and
this package cannot reason about becomes Unsupported, with the reason.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from secateur.errors import AmbiguousColumn, InvalidPredicate, UnknownColumn, UnsupportedPredicate
from secateur.pruning import rangeset
from secateur.pruning.predicate import nodes
from secateur.pruning.predicate.bound import Field, Matches, Missing, Unsupported, Within
from secateur.pruning.predicate.literals import positions
from secateur.pruning.predicate.monotone import Step, pull_back, step
from secateur.pruning.predicate.nodes import And, Call, Column, Is, Literal, Not, Operand, Or, Predicate, Truth
from secateur.pruning.predicate.temporal import zone_of
from secateur.pruning.rangeset import RangeSet
from secateur.values import COLLATED, INT64_MAX, INT64_MIN, Key, Kind, kind_of, least_key


@dataclass(frozen=True)
class Binder:
    """What binding needs to know of a table and a session."""

    schema: pa.Schema
    zone: dt.tzinfo
    case_sensitive: bool = False


def bind(
    predicate: Predicate, schema: pa.Schema, *, session_time_zone: str = "UTC", case_sensitive: bool = False
) -> Predicate:
    """The predicate over the fields of `schema`, whose leaves are those of :mod:`.bound`.

    Raises UnknownColumn, AmbiguousColumn, IncomparableLiteral, and ValueError for an unknown time zone.
    """
    zone = zone_of(session_time_zone)
    if zone is None:
        raise ValueError(f"unknown time zone {session_time_zone!r}")
    return _bind(predicate, Binder(schema, zone, case_sensitive))


def _bind(predicate: Predicate, binder: Binder) -> Predicate:
    match predicate:
        case And(children):
            return And(tuple(_bind(child, binder) for child in children))
        case Or(children):
            return Or(tuple(_bind(child, binder) for child in children))
        case Not(child):
            return Not(_bind(child, binder))
        case Is(child, value):
            return Is(_bind(child, binder), value)
        case Truth():
            return predicate
        case nodes.Opaque(sql, columns):
            named = tuple(_compared(column, binder) for column in columns)
            every = tuple(Field((field.name,), field.type) for field in binder.schema)
            return Unsupported(sql, "no rule for this expression", named or every)
        case nodes.IsNull(operand):
            return _on(operand, binder, lambda field: Missing(field, str(predicate)))
        case nodes.Comparison(op, operand, literal):
            return _on(operand, binder, lambda field: _comparison(op, field, literal, str(predicate), binder))
        case nodes.In(operand, literals):
            return _on(operand, binder, lambda field: _in(field, literals, str(predicate), binder))
        case nodes.Like(column, pattern, escape):
            return _like(_compared(column, binder), pattern, escape, str(predicate))
        case _:
            raise TypeError(f"{predicate!r} is no predicate: use SQL text or expressions on secateur.col()")


def _on(operand: Operand, binder: Binder, condition: Callable[[Field], Predicate]) -> Predicate:
    """A condition on a column, or on monotone functions of one: then pulled back to the column."""
    calls: list[Call] = []
    inner = operand
    while isinstance(inner, Call):
        calls.append(inner)
        inner = inner.operand
    field = _compared(inner, binder)
    type_, steps = field.type, []
    for call in reversed(calls):
        found = step(call.function, call.parameter, type_, binder.zone)
        if found is None:
            return Unsupported(str(operand), f"{call.function} of a {type_} is not known to be monotone", (field,))
        steps.append(found)
        type_ = found.result
    bound = condition(Field(field.path, type_))
    return _pulled_back(bound, steps, field, binder) if steps else bound


def _pulled_back(predicate: Predicate, steps: Sequence[Step], field: Field, binder: Binder) -> Predicate:
    match predicate:
        case And(children):
            return And(tuple(_pulled_back(child, steps, field, binder) for child in children))
        case Or(children):
            return Or(tuple(_pulled_back(child, steps, field, binder) for child in children))
        case Not(child):
            return Not(_pulled_back(child, steps, field, binder))
        case Missing(sql=sql):
            return Missing(field, sql)  # these functions are NULL on NULL alone
        case Unsupported(sql, reason):
            return Unsupported(sql, reason, (field,))
        case Within(ranges=ranges, sql=sql):
            pulled = pull_back(ranges, steps, field, binder.zone)
            reason = "the bound lies beyond the years 1 to 9999, or where the clock changes"
            return Unsupported(sql, reason, (field,)) if pulled is None else Within(field, pulled, sql)
        case _:
            return predicate


def _comparison(op: str, field: Field, literal: Literal, sql: str, binder: Binder) -> Predicate:
    if literal.value is None:
        return Missing(field, sql) if op == "<=>" else Truth(None)
    found = positions(field, [literal], binder.zone)
    kind = kind_of(field.type)
    if found is None or kind is None:
        return Unsupported(
            sql, f"{field} of type {field.type} does not compare with a {literal.type} in key order", (field,)
        )
    if (always := _beyond_long(op, field, literal)) is not None:
        return Truth(always)
    at, after = found[0].at, found[0].after
    least = least_key(kind)
    match op:
        case "=":
            ranges = rangeset.between(kind, at, after)
        case "<":
            ranges = rangeset.between(kind, least, at)
        case "<=":
            ranges = rangeset.between(kind, least, after)
        case ">":
            ranges = rangeset.between(kind, after, None)
        case ">=":
            ranges = rangeset.between(kind, at, None)
        case "<=>":  # FALSE instead of NULL on NULL: `x = c AND x IS NOT NULL` is FALSE there
            return And((Within(field, rangeset.between(kind, at, after), sql), Not(Missing(field, f"{field} IS NULL"))))
        case _:
            raise ValueError(f"unknown comparison {op!r}")
    return Within(field, ranges, sql)


def _beyond_long(op: str, field: Field, literal: Literal) -> bool | None:
    """What ``<``, ``<=``, ``>``, ``>=`` of an integer column give beside a decimal beyond a long, even on NULL.

    Source: Spark's ``DecimalPrecision.integralAndDecimalLiteral``, which replaces the comparison by a constant.
    """
    match op, literal:
        case (("<" | "<=" | ">" | ">="), Literal(int() | Decimal() as number, "int" | "decimal")):
            if not pa.types.is_signed_integer(field.type) or INT64_MIN <= number <= INT64_MAX:
                return None
            return (number > INT64_MAX) == (op in ("<", "<="))
        case _:
            return None


def _in(field: Field, literals: Sequence[Literal], sql: str, binder: Binder) -> Predicate:
    if not literals:
        return Truth(False)  # also on NULL, as in Spark
    values = [literal for literal in literals if literal.value is not None]
    found = positions(field, values, binder.zone)
    kind = kind_of(field.type)
    if found is None or kind is None:
        return Unsupported(
            sql, f"{field} of type {field.type} does not compare with all of the list in key order", (field,)
        )
    listed = Within(field, _listed(kind, [(p.at, p.after) for p in found]), sql)
    # `x IN (1, NULL)` is `x = 1 OR NULL`.
    return listed if len(values) == len(literals) else Or((listed, Truth(None)))


def _listed(kind: Kind, spans: list[tuple[object, object]]) -> RangeSet:
    """The union of [at, after): points in one step, the rare wider spans (double against integer) one by one."""
    single: list[Key] = []
    ranges = rangeset.empty(kind)
    for at, after in spans:
        if at is None or at == after:
            continue
        if isinstance(at, bytes) or (after is not None and after - at == 1):  # type: ignore[operator]
            single.append(at)  # type: ignore[arg-type]
        else:
            ranges = rangeset.union(ranges, rangeset.between(kind, at, after))  # type: ignore[arg-type]
    return rangeset.union(ranges, rangeset.points(kind, single))


def _like(field: Field, pattern: str, escape: str, sql: str) -> Predicate:
    if not pa.types.is_string(field.type):
        return Unsupported(sql, f"LIKE on {field} of type {field.type}", (field,))
    prefix, regex, wildcard = _read_pattern(pattern, escape, sql)
    key = prefix.encode("utf-8", "surrogatepass")
    match wildcard:
        case "":
            return Within(field, rangeset.points(Kind.BYTES, [key]), sql)
        case "%":
            return Within(field, rangeset.starting_with(key), sql)
        case _:
            return Matches(field, regex, rangeset.starting_with(key), sql)


def _read_pattern(pattern: str, escape: str, sql: str) -> tuple[str, str, str]:
    """The literal prefix of a LIKE pattern, its regular expression, and what follows the prefix.

    Raises InvalidPredicate where the escape character does not stand before ``%``, ``_`` or itself, which Spark
    refuses (INVALID_FORMAT.ESC_IN_THE_MIDDLE, ESC_AT_THE_END).
    """
    prefix, regex, rest = "", "", ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            literal = next(characters, None)
            if literal not in ("%", "_", escape):
                raise InvalidPredicate(f"{sql}: the escape character {escape!r} must precede %, _ or itself")
        elif character in "%_":
            rest += character
            regex += ".*" if character == "%" else "."
            continue
        else:
            literal = character
        regex += re.escape(literal)
        if rest:
            rest += literal
        else:
            prefix += literal
    return prefix, f"(?s)\\A{regex}\\z", rest


def _compared(column: Column, binder: Binder) -> Field:
    """The field that a predicate looks at. Raises UnsupportedPredicate for one whose strings have a collation."""
    field = resolve(column, binder)
    if field.type == COLLATED:
        raise UnsupportedPredicate(
            f"column {field} has a collation, which compares strings otherwise than by their bytes: "
            "query it through spark.read.parquet"
        )
    return field


def named_columns(predicate: Predicate, binder: Binder) -> Iterator[str]:
    """The top-level columns that the text of a predicate names: every one for an expression that hides its names."""
    match predicate:
        case And(children) | Or(children):
            for child in children:
                yield from named_columns(child, binder)
        case Not(child) | Is(child):
            yield from named_columns(child, binder)
        case nodes.Opaque(columns=()):
            yield from binder.schema.names
        case nodes.Opaque(columns=columns):
            yield from (resolve(column, binder).path[0] for column in columns)
        case nodes.Comparison(operand=operand) | nodes.In(operand=operand) | nodes.IsNull(operand=operand):
            while isinstance(operand, Call):
                operand = operand.operand
            yield resolve(operand, binder).path[0]
        case nodes.Like(column=column):
            yield resolve(column, binder).path[0]


def resolve(column: Column, binder: Binder) -> Field:
    """The field that a column name means.

    Raises UnknownColumn with the nearest names, AmbiguousColumn.
    """
    type_: pa.DataType = pa.struct(list(binder.schema))
    path: tuple[str, ...] = ()
    for name in column.path:
        found = _child(type_, name, column, binder)
        path, type_ = (*path, found.name), found.type
    return Field(path, type_)


def _child(type_: pa.DataType, name: str, column: Column, binder: Binder) -> pa.Field:
    children = list(type_) if pa.types.is_struct(type_) else []
    exact = [child for child in children if child.name == name]
    folded = [child for child in children if child.name.lower() == name.lower()]
    matches = exact if binder.case_sensitive else folded
    if len(matches) > 1:
        names = ", ".join(child.name for child in matches)
        raise AmbiguousColumn(f"column {column} could be any of {names}: pass case_sensitive=True")
    if not matches:
        raise UnknownColumn(_unknown(name, column, [child.name for child in children]))
    return matches[0]


def _unknown(name: str, column: Column, names: list[str]) -> str:
    by_folded = {known.lower(): known for known in names}
    near = [by_folded[match] for match in difflib.get_close_matches(name.lower(), by_folded, n=3)]
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"the table has {', '.join(names[:20]) or 'no such struct'}"
    )
    return f"unknown column {column}: {hint}"
