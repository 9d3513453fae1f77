"""Functions that choose among their arguments: ``coalesce``, ``greatest``, ``least``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from secateur.pruning.interval import Argument, Function, Interval, Rule, at_least, union, where
from secateur.values import Keys, choose


def _coalesce(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    if not arguments or any(a.type != arguments[0].type for a in arguments):
        return None
    return Function("coalesce", arguments[0].type, _first_value, (0,) * len(arguments))


def _first_value(arguments: Sequence[Interval]) -> Interval:
    """The hull of the arguments that can be reached, which is where all before may be NULL; NULL where all may be."""
    reached = np.ones(len(arguments[0]), bool)
    found = where(~reached, arguments[0])
    for argument in arguments:
        found = union(found, where(reached, argument))
        reached = reached & (argument.null != 0)
    return Interval(found.type, found.lower, found.upper, found.value, _null_everywhere(arguments), found.fails)


def _null_everywhere(arguments: Sequence[Interval]) -> np.ndarray:
    return reduce(np.bitwise_and, [a.null for a in arguments])


def _extreme(name: str) -> Rule:
    """``greatest`` and ``least`` skip NULL: they are NULL where all arguments are."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        if len(arguments) < 2 or any(a.type != arguments[0].type for a in arguments):
            return None
        return Function(name, arguments[0].type, _greatest if name == "greatest" else _least, (0,) * len(arguments))

    return rule


def _greatest(arguments: Sequence[Interval]) -> Interval:
    return _chosen(arguments, lambda a, b: at_least(a, b))


def _least(arguments: Sequence[Interval]) -> Interval:
    return _chosen(arguments, lambda a, b: at_least(b, a))


def _chosen(arguments: Sequence[Interval], wins: Callable[[Keys, Keys], np.ndarray]) -> Interval:
    """Both bounds are the winners among the arguments' bounds; one that may be NULL adds to what is possible."""
    found = arguments[0]
    for other in arguments[1:]:
        hull = union(found, other)
        lower = choose(wins(found.lower, other.lower), found.lower, other.lower)
        upper = choose(wins(found.upper, other.upper), found.upper, other.upper)
        sure = (found.null == 0) & (other.null == 0) & (found.value != 0) & (other.value != 0)
        found = Interval(
            found.type,
            choose(sure, lower, hull.lower),
            choose(sure, upper, hull.upper),
            hull.value,
            found.null & other.null,
            hull.fails,
        )
    return found


RULES: dict[str, Rule] = {
    "coalesce": _coalesce,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
}
