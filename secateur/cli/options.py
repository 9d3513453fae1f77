"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from secateur.pruning.predicate.temporal import zone_of

F = TypeVar("F", bound=Callable[..., Any])


def table_argument(command: F) -> F:
    """The argument PATH: the directory of a table."""
    return click.argument("path", metavar="PATH")(command)


def index_location_option(command: F) -> F:
    """The option --index-location."""
    return click.option(
        "--index-location",
        metavar="DIR",
        help="Where the index is. By default in the directory _secateur beside the data.",
    )(command)


def json_option(command: F) -> F:
    """The option --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, to stdout.")(command)


def columns_option(*names: str, help: str) -> Callable[[F], F]:
    """An option that takes column names with commas between them, and may be repeated."""
    return click.option(*names, metavar="COLUMN,...", multiple=True, callback=_names, help=help)


def _names(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for value in values for name in value.split(","))
    if not all(names):
        raise click.BadParameter("a column name is empty")
    return names


def time_zone(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Checks the name of a time zone."""
    if name is not None and zone_of(name) is None:
        raise click.BadParameter(f"unknown time zone {name!r}")
    return name
