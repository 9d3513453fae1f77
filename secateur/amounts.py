"""Budgets of bytes, as users write them."""

from __future__ import annotations

import re

from secateur.errors import InvalidOption

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%|B|kB|MB|GB|TB)?\s*", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def bytes_of(budget: float | str, data_bytes: int) -> int:
    """Return a budget in bytes: a number, ``"20MB"``, or a share of the data, ``"5%"``.

    Raises InvalidOption for what is no amount.
    """
    require_amount(budget)
    if not isinstance(budget, str):
        return int(budget)
    match = _AMOUNT.fullmatch(budget)
    assert match is not None, "checked"
    number, unit = float(match[1]), (match[2] or "B").lower()
    return int(number * data_bytes / 100) if unit == "%" else int(number * _UNITS[unit])


def require_amount(budget: object, name: str = "budget") -> None:
    """Raise InvalidOption, which names the option, unless a budget is an amount of bytes."""
    match budget:
        case bool():
            pass
        case int() | float() if 0 <= budget < float("inf"):
            return
        case str() if _AMOUNT.fullmatch(budget):
            return
    raise InvalidOption(f"{name} is {budget!r}; write bytes, '20MB', or a share of the data's bytes: '5%'")
