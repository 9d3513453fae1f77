"""Paths under which an index keeps what is no column of the table: expressions, and sums of columns."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

_EXPRESSION, _SUM = ("", ""), ("", "sum")


def expression_path(text: str, types: Iterable[pa.DataType]) -> tuple[str, ...]:
    """Return the path of an indexed expression over columns of these types: two names of it are empty."""
    return (*_EXPRESSION, text, *map(str, types))


def is_expression(path: tuple[str, ...]) -> bool:
    """Whether a path is that of an indexed expression."""
    return path[:2] == _EXPRESSION


def text_of_expression(path: tuple[str, ...]) -> str:
    """Return the SQL of an indexed expression."""
    return path[2]


def sum_path(path: tuple[str, ...], scale: int) -> tuple[str, ...]:
    """Return the path under which an index keeps the sums of a column, whose values have this scale."""
    return (*_SUM, str(scale), *path)


def is_sum(path: tuple[str, ...]) -> bool:
    """Whether an index keeps the sums of a column under a path."""
    return path[:2] == _SUM


def summed_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of the column whose sums are kept under a path."""
    return path[3:]
