"""Conditions with one literal as long as a given text: planned in time that is linear in its length."""

from __future__ import annotations

from collections.abc import Callable

LONG_LITERALS: dict[str, Callable[[str], str]] = {
    "s LIKE '{}'": lambda text: f"s LIKE '{text}'",
    "s LIKE '%{}%'": lambda text: f"s LIKE '%{text}%'",
    "s LIKE '_%_%...'": lambda text: f"s LIKE '{'_%' * len(text)}'",
    "s ILIKE '{}'": lambda text: f"s ILIKE '{text}'",
    "s RLIKE '{}'": lambda text: f"s RLIKE '{text}'",
    "s RLIKE '{}|z{}'": lambda text: f"s RLIKE '{text}|z{text}'",
    "s = '{}'": lambda text: f"s = '{text}'",
    "s IN ('{}', 'z{}')": lambda text: f"s IN ('{text}', 'z{text}')",
}
