"""Command output: tables and facts, by rich on a terminal and as plain text elsewhere; JSON.

Answers go to stdout, everything else to stderr. rich is imported only for a terminal, to start faster.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from rich.table import Table

GOOD, BAD, CAUTION, QUIET, STRONG = "green", "red", "yellow", "dim", "bold"
BOUNDLESS = 10_000  # columns of a terminal on which every table fits


@dataclass(frozen=True)
class Cell:
    """A text in a table, with its style on a terminal."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class OutputColumn:
    """A column of a table: its heading, whether it holds numbers, and whether it goes first where there is no room."""

    heading: str
    right: bool = True
    spare: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table to print."""

    columns: tuple[OutputColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that supports more than plain text."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def show_sheet(sheet: Sheet) -> None:
    """Print a table."""
    if is_terminal(sys.stdout):
        _show_rich(sheet)
    else:
        click.echo(plain(sheet))


def plain(sheet: Sheet) -> str:
    """Format a table as aligned text."""
    lines = [[column.heading for column in sheet.columns], *([cell.text for cell in row] for row in sheet.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(sheet.columns))]
    texts = [_aligned(line, widths, sheet.columns) for line in lines]
    return "\n".join([texts[0], "  ".join("-" * width for width in widths), *texts[1:]])


def _aligned(line: Sequence[str], widths: Sequence[int], columns: Sequence[OutputColumn]) -> str:
    cells = zip(line, widths, columns, strict=True)
    return "  ".join(text.rjust(width) if column.right else text.ljust(width) for text, width, column in cells).rstrip()


def _show_rich(sheet: Sheet) -> None:
    """Print a table on a terminal. Texts wrap between words; where that is too wide, the terminal wraps the lines."""
    from rich.console import Console

    console = Console()
    boundless = console.options.update(width=BOUNDLESS)
    table = _rich_table(sheet)
    if console.measure(table, options=boundless).maximum > console.width:
        table = _rich_table(_without_spare(sheet))
    least = console.measure(table, options=boundless).minimum
    (Console(width=least) if least > console.width else console).print(table)


def _rich_table(sheet: Sheet) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style=STRONG)
    for i, column in enumerate(sheet.columns):
        texts = [column.heading, *(row[i].text for row in sheet.rows)]
        parts = texts if column.right else [word for text in texts for word in text.split()]
        table.add_column(
            column.heading,
            justify="right" if column.right else "left",
            no_wrap=column.right,
            min_width=max(map(len, parts), default=1),
        )
    for row in sheet.rows:
        table.add_row(*(Text(cell.text, cell.style) for cell in row))
    return table


def _without_spare(sheet: Sheet) -> Sheet:
    kept = [i for i, column in enumerate(sheet.columns) if not column.spare]
    return Sheet(tuple(sheet.columns[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in sheet.rows))


def show_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one pair per line; pairs without a value are left out."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        if value:
            click.echo(f"{click.style(name.ljust(width), dim=True)}  {value}")


def print_line(text: str, style: str = "") -> None:
    """Print a line to stdout in one of the styles above."""
    click.echo(styled(text, style))


def styled(text: str, style: str) -> str:
    """Style a text for :func:`click.echo`, which drops the style if there is no terminal; NO_COLOR drops its colour."""
    if style in (STRONG, QUIET):
        return click.style(text, bold=style == STRONG or None, dim=style == QUIET or None)
    return click.style(text, fg=style) if style and not os.environ.get("NO_COLOR") else text


def print_json(value: object) -> None:
    """Print JSON to stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def say(text: str, style: str = "") -> None:
    """Print a message to stderr."""
    click.echo(styled(text, style), err=True)


def count(number: int | None) -> str:
    """Format a number with separators; unknown is a dash."""
    return "-" if number is None else f"{number:,}"


def share(part: float, whole: float) -> str:
    """Format a share in per cent, with enough digits that a small part does not become zero."""
    if not whole:
        return "-"
    percent = 100 * part / whole
    return f"{percent:.1f} %" if percent >= 0.1 or not part else f"{percent:.2g} %"


def milliseconds(seconds: float) -> str:
    """Format a duration in milliseconds."""
    return f"{seconds * 1000:.1f}"
