"""Results as tables for a terminal, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rich.console import Console
from rich.table import Table

from benchmarks.results import Kept, Ratio, Result

_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def show(console: Console, name: str, description: str, seconds: float, result: Result) -> None:
    """Print one result."""
    console.rule(f"[bold]{name}[/bold]  {description}", align="left")
    console.print(", ".join(f"{size:,} {what.replace('_', ' ')}" for what, size in result.sizes.items()))
    if result.ratios:
        console.print(_ratios(result.ratios))
    for table, kept in groupby(result.kept, lambda kept: kept.table):
        console.print(_kept(table, list(kept)))
    for note in result.notes:
        console.print(note, highlight=False, markup=False)
    console.print(f"[dim]{seconds:.1f} s in all[/dim]\n")


def _ratios(ratios: Iterable[Ratio]) -> Table:
    table = Table("measured", "reference", box=None, header_style="bold")
    for head in ("figure", "of reference", "ratio", "quartiles", "goal"):
        table.add_column(head, justify="right")
    for r in ratios:
        quartiles = "" if r.low is None or r.high is None else f"{r.low:,.3g} to {r.high:,.3g}"
        goal = "" if r.goal is None else f"{r.goal:g}"
        figures = amount(r.value, r.unit), amount(r.reference_value, r.unit)
        table.add_row(r.subject, r.reference, *figures, _ratio(r), quartiles, goal)
    return table


def _ratio(r: Ratio) -> str:
    if r.ratio is None:
        return "-"
    text = f"{r.ratio:,.3g}" if r.ratio < 1000 else f"{r.ratio:,.0f}"
    missed = r.goal is not None and r.ratio > r.goal
    return f"[red]{text}[/red]" if missed else text


def _kept(title: str, rows: list[Kept]) -> Table:
    pruners = list(dict.fromkeys(name for row in rows for name in row.kept))
    table = Table("predicate", "unit", title=f"kept of {title}", title_justify="left", box=None, header_style="bold")
    for head in ("total", "ideal", *pruners):
        table.add_column(head, justify="right")
    for predicate, units in groupby(rows, lambda row: row.predicate):
        for i, row in enumerate(units):
            ideal = "" if row.ideal is None else f"{row.ideal:,}"
            counts = (f"{row.kept[name]:,}" if name in row.kept else "" for name in pruners)
            table.add_row("" if i else predicate, row.unit, f"{row.total:,}", ideal, *counts)
    return table


def amount(value: float, unit: str) -> str:
    """A figure for people: ``1.25 ms``."""
    if unit != "s":
        return f"{value:,.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"
    size, name = next(((size, name) for size, name in _STEPS if abs(value) >= size), _STEPS[-1])
    return f"{value / size:.3g} {name}"
