"""``try_add`` and similar: NULL where the operator would raise an error. Source: Spark's ``EvalMode.TRY``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from secateur.pruning.functions import arithmetic
from secateur.pruning.interval import Argument, Function, Interval, Rule, widened
from secateur.pruning.outcomes import NULL


def attempted(function: Function, *, certain: bool) -> Function:
    """Return a function that is NULL where another one fails; if an argument fails, so does the result.

    `certain`: if the other function is reported to fail on single values, it really does.
    """

    def bounds(args: Sequence[Interval]) -> Interval:
        found = function.bounds(args)
        failed = reduce(np.logical_or, [a.fails for a in args])
        failing = found.fails & ~failed
        surely = certain & failing & reduce(np.logical_and, [a.is_point for a in args])
        null = np.where(failing & (found.value != 0), found.null | np.uint8(NULL), found.null)
        value = np.where(surely, np.uint8(0), found.value)
        lower, upper = widened(found, failing)  # out-of-range values have wrapped around
        return Interval(found.type, lower, upper, value, null, failed)

    directions = tuple(0 for _ in function.directions)
    return Function(f"try {function.name}", function.type, bounds, directions, function.exact)


def _attempt(symbol: str) -> Rule:
    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        found = arithmetic.RULES[symbol](arguments, zone)
        if found is None:
            return None
        return attempted(found, certain=symbol != "*" or found.type != pa.int64())  # products are checked in doubles

    return rule


RULES: dict[str, Rule] = {
    "try_add": _attempt("+"),
    "try_subtract": _attempt("-"),
    "try_multiply": _attempt("*"),
    "try_divide": _attempt("/"),
    "try_mod": _attempt("%"),
}
