"""All functions that have bounds, by their names in Spark SQL."""

from __future__ import annotations

from secateur.pruning.functions import (
    arithmetic,
    attempts,
    conditional,
    durations,
    elementary,
    integers,
    joined_text,
    rounding,
    temporal,
    text,
)
from secateur.pruning.interval import Rule

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
    **text.RULES,
}


def rule(name: str) -> Rule | None:
    """The rule for a function name in lower case: gives the function for arguments and a session's time zone."""
    return RULES.get(name)
