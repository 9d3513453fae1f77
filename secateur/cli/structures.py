"""Structures of an index on the command line, and what an argument of build_index is there."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

_SUFFIXES = re.compile(r"(?P<column>.+?)(?::(?P<n>\d+))?(?P<fold>:fold)?", re.DOTALL)


def postings_of(by_block: Sequence[str], by_row: Sequence[str], ordered: Sequence[str]) -> dict[str, str]:
    """Return the columns with postings, and what these say."""
    settings = (by_block, "blocks"), (by_row, "rows"), (ordered, "ordered")
    return {column: setting for columns, setting in settings for column in columns}


def text_filters(names: Iterable[str]) -> dict[str, object]:
    """Return text columns with settings, given as ``message``, ``message:4``, ``message:fold`` or ``message:4:fold``.

    The number is the bytes of an n-gram; `fold` ignores case.
    """
    filters: dict[str, object] = {}
    for name in names:
        match = _SUFFIXES.fullmatch(name)
        column, n, fold = (name, None, None) if match is None else match.group("column", "n", "fold")
        settings = {**({"n": int(n)} if n else {}), **({"fold": True} if fold else {})}
        filters[column] = settings or None
    return filters


def flag_of(argument: str) -> str:
    """Return the option for an argument of build_index, such as ``--bloom user_id`` for ``bloom=['user_id']``."""
    name, _, written = argument.partition("=")
    columns = ast.literal_eval(written)
    if not isinstance(columns, Mapping):
        return _option(name, columns)
    flags = [_option(*_setting(name, column, setting)) for column, setting in columns.items()]
    return " ".join(flags)


def _setting(name: str, column: str, setting: object) -> tuple[str, list[str]]:
    """Return the option and the column with its setting."""
    match setting:
        case "rows" | "ordered" | "native":
            return {"rows": "row_postings", "ordered": "ordered_postings", "native": "native"}[setting], [column]
        case int():
            return name, [f"{column}:{setting}"]
        case {**given}:
            n, fold = given.get("n"), given.get("fold")
            return name, [f"{column}{f':{n}' if n else ''}{':fold' if fold else ''}"]
        case _:
            return name, [column]


def _option(name: str, columns: Iterable[str]) -> str:
    return f"--{name.replace('_', '-')} {shlex.quote(','.join(columns))}"
