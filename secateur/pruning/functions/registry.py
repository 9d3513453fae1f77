"""The registry of functions with bounds, by their names in Spark SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from secateur.pruning.functions import (
    arithmetic,
    attempts,
    conditional,
    differences,
    durations,
    elementary,
    formats,
    integers,
    joined_text,
    json_fields,
    json_text,
    overflow,
    positions,
    rounding,
    temporal,
    text,
    utc,
)
from secateur.pruning.interval import Argument, Function, Rule

RULES: dict[str, Rule] = {
    **arithmetic.RULES,
    **attempts.RULES,
    **elementary.RULES,
    **integers.RULES,
    **joined_text.RULES,
    **json_fields.RULES,
    **json_text.RULES,
    **rounding.RULES,
    **conditional.RULES,
    **temporal.RULES,
    **durations.RULES,
    **differences.RULES,
    **formats.RULES,
    **utc.RULES,
    **text.RULES,
    **positions.RULES,
}


def rule(name: str) -> Rule | None:
    """Return the rule for a function name in lower case: it makes the function for arguments and a time zone."""
    return RULES.get(name)


def function_of(name: str, arguments: Sequence[Argument], zone: dt.tzinfo, ansi: bool) -> Function | None:
    """Return the session's function of a lower-case name on these arguments, if it has bounds."""
    make = rule(name) if ansi else text.WITHOUT_ANSI.get(name, rule(name))
    function = None if make is None else make(arguments, zone)
    return function if function is None or ansi else overflow.without_errors(name, function)
