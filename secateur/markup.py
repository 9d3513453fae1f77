"""Show values: names with values as text, and as HTML for a notebook, where every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def facts_html(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return names and values under a title; those without a value are left out."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts if value)
    return f"<b>{escape(title)}</b><table>{rows}</table>"


def text_of(facts: Iterable[tuple[str, str]]) -> str:
    """Return the same as lines of text, the values one below the other."""
    present = [(name, value) for name, value in facts if value]
    width = max((len(name) for name, _ in present), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in present)


def table_html(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with the names of its columns."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
