"""Functions that choose among their arguments: ``coalesce``, ``greatest``, ``least``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import reduce

import numpy as np

from secateur.pruning.interval import Argument, Function, Interval, Rule, at_least, union, where
from secateur.values.combination import choose


def _coalesce(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    if not arguments or any(a.type != arguments[0].type for a in arguments):
        return None
    return Function("coalesce", arguments[0].type, _first_value, (0,) * len(arguments))


def _first_value(arguments: Sequence[Interval]) -> Interval:
    """Return the hull of the reachable arguments, those before which all may be NULL; NULL if all may be."""
    reached = np.ones(len(arguments[0]), bool)
    result = where(~reached, arguments[0])
    for argument in arguments:
        result = union(result, where(reached, argument))
        reached = reached & (argument.null != 0)
    return Interval(result.type, result.lower, result.upper, result.value, _null_everywhere(arguments), result.fails)


def _null_everywhere(arguments: Sequence[Interval]) -> np.ndarray:
    return reduce(np.bitwise_and, [a.null for a in arguments])


def _extreme(name: str) -> Rule:
    """Make ``greatest`` or ``least``, which skip NULL: they are NULL if all arguments are."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        if len(arguments) < 2 or any(a.type != arguments[0].type for a in arguments):
            return None
        return Function(name, arguments[0].type, _greatest if name == "greatest" else _least, (0,) * len(arguments))

    return rule


def _greatest(arguments: Sequence[Interval]) -> Interval:
    """Return the greatest upper bound; the lower bound is that of arguments that cannot be NULL."""
    return reduce(_greater, arguments)


def _greater(a: Interval, b: Interval) -> Interval:
    hull = union(a, b)
    lower = choose(_always_has_value(a) & ~(_always_has_value(b) & at_least(b.lower, a.lower)), a.lower, b.lower)
    lower = choose(_always_has_value(a) | _always_has_value(b), lower, hull.lower)
    return Interval(a.type, lower, hull.upper, hull.value, a.null & b.null, hull.fails)


def _least(arguments: Sequence[Interval]) -> Interval:
    """Return the least lower bound; the upper bound is that of arguments that cannot be NULL."""
    return reduce(_lesser, arguments)


def _lesser(a: Interval, b: Interval) -> Interval:
    hull = union(a, b)
    upper = choose(_always_has_value(a) & ~(_always_has_value(b) & at_least(a.upper, b.upper)), a.upper, b.upper)
    upper = choose(_always_has_value(a) | _always_has_value(b), upper, hull.upper)
    return Interval(a.type, hull.lower, upper, hull.value, a.null & b.null, hull.fails)


def _always_has_value(a: Interval) -> np.ndarray:
    return (a.null == 0) & (a.value != 0) & ~a.fails


RULES: dict[str, Rule] = {
    "coalesce": _coalesce,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
}
