"""Openers of tables for objects of libraries that no table format imports, such as Spark's DataFrames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Opener = Callable[..., Any]  # from the object, with index_location, freshness and disk_cache by name

_openers: dict[tuple[str, str], Opener] = {}  # by library and class


class SparkFrame(Protocol):
    """A DataFrame of PySpark."""

    def alias(self, alias: str) -> Any: ...

    def tail(self, num: int) -> list[Any]: ...


def add_opener(library: str, name: str, opener: Opener) -> None:
    """Open objects of a library's class by this function."""
    _openers[library, name] = opener


def opener_of(source: object) -> Opener | None:
    """Return the function that opens an object; None if there is none."""
    return next((opener for (library, name), opener in _openers.items() if is_of(source, library, name)), None)


def is_of(source: object, library: str, name: str) -> bool:
    """Return whether something is an object of a library's class, or of one derived from it, without importing it."""
    kinds = type(source).__mro__
    return any(kind.__module__.partition(".")[0] == library and kind.__name__ == name for kind in kinds)
