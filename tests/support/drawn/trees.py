"""Compare trees of predicates, and draw random ones as deep as people and programs write them."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from secateur.pruning.predicate.nodes import And, Not, Or, Predicate
from secateur.pruning.predicate.sql.parse import parse

TEXT_VALUES = ["", "a", "ab", "b", "k1", "k10", "x"]
Row = dict[str, int | str]
Holds = Callable[[Row], bool]


def flat(predicate: Predicate) -> Predicate:
    """A tree with nested ANDs and ORs as one, which operators on expressions nest and text does not."""
    match predicate:
        case And(children) | Or(children):
            kind = type(predicate)
            inner = [flat(child) for child in children]
            return kind(tuple(x for child in inner for x in (child.children if isinstance(child, kind) else (child,))))
        case Not(child):
            return Not(flat(child))
        case _:
            return predicate


@dataclass(frozen=True)
class Condition:
    """A condition in SQL, and what it means on a row; no column of these is NULL."""

    sql: str
    holds: Holds


def comparison(chance: random.Random) -> Condition:
    """One on `id` or `s`."""
    name, symbol = chance.choice(["=", "<", ">="]), {"=": operator.eq, "<": operator.lt, ">=": operator.ge}
    compare = symbol[name]
    if chance.random() < 0.8:
        number = chance.randrange(40)
        return Condition(f"id {name} {number}", lambda row: compare(row["id"], number))
    text = chance.choice(TEXT_VALUES)
    return Condition(f"s {name} '{text}'", lambda row: compare(row["s"], text))


Step = tuple[str, Callable[[bool, bool], bool]]  # {a} a comparison, {b} what is nested

CONNECTIVES: Sequence[Step] = [
    ("({a} AND {b})", lambda a, b: a and b),
    ("({b} OR {a})", lambda a, b: a or b),
    ("NOT ({b})", lambda a, b: not b),
    ("({b})", lambda a, b: b),
]
CONDITIONALS: Sequence[Step] = [
    ("if({a}, TRUE, {b})", lambda a, b: a or b),
    ("if({b}, {a}, FALSE)", lambda a, b: a and b),
    ("if({b}, FALSE, {a})", lambda a, b: a and not b),
    ("CASE WHEN {a} THEN FALSE ELSE {b} END", lambda a, b: b and not a),
    ("CASE WHEN {b} THEN {a} WHEN {a} THEN TRUE END <=> TRUE", lambda a, b: a),
    ("(({b}) <=> ({a}))", lambda a, b: a == b),
    ("(({a}) = ({b}))", lambda a, b: a == b),
    ("(({b}) != ({a}))", lambda a, b: a != b),
    ("coalesce({b}, {a})", lambda a, b: b),
    ("(({b}) IS TRUE)", lambda a, b: b),
    ("(({b}) IS NOT NULL AND {a})", lambda a, b: a),
]


def nested(levels: int, chance: random.Random, steps: Sequence[Step]) -> list[Condition]:
    """A condition, and what it is within one level more, two, and so on."""
    trees = [comparison(chance)]
    for _ in range(levels):
        (template, means), beside = chance.choice(steps), comparison(chance)
        inner = trees[-1]
        trees.append(
            Condition(
                template.format(a=beside.sql, b=inner.sql),
                lambda row, means=means, beside=beside, inner=inner: means(beside.holds(row), inner.holds(row)),
            )
        )
    return trees


def chained(conditions: Sequence[Condition], chance: random.Random) -> tuple[Predicate, Holds]:
    """Conditions joined one by one by `|`, by `&`, or by either in runs, as ``functools.reduce`` does it."""
    tree, holds = parse(conditions[0].sql), conditions[0].holds
    turns = chance.choice([0.0, 0.0, 0.02])
    either = chance.random() < 0.5
    for condition in conditions[1:]:
        either ^= chance.random() < turns
        means = operator.or_ if either else operator.and_
        tree = means(tree, parse(condition.sql))
        holds = _joined(means, holds, condition.holds)
    return tree, holds


def _joined(means: Callable[[bool, bool], bool], one: Holds, other: Holds) -> Holds:
    return lambda row: means(one(row), other(row))
