"""All functions that have bounds, by their names in Spark SQL."""

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
    overflow,
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
    **rounding.RULES,
    **conditional.RULES,
    **temporal.RULES,
    **durations.RULES,
    **differences.RULES,
    **formats.RULES,
    **utc.RULES,
    **text.RULES,
}


def rule(name: str) -> Rule | None:
    """The rule for a function name in lower case: gives the function for arguments and a session's time zone."""
    return RULES.get(name)


def function_of(name: str, arguments: Sequence[Argument], zone: dt.tzinfo, ansi: bool) -> Function | None:
    """The function of a name in lower case on arguments, if it has bounds on them, as a session has it."""
    make = rule(name)
    found = None if make is None else make(arguments, zone)
    return found if found is None or ansi else overflow.without_errors(name, found)
