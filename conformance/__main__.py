"""The command line: ``python -m conformance [--engine NAME] [--format F] [--class N] [--list]``."""

from __future__ import annotations

import itertools
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from conformance.classes import CLASSES
from conformance.engine import FORMATS, Engine
from conformance.engines import ENGINES
from conformance.oracle import Oracle
from conformance.registry import BugClass
from conformance.run import Result, run_class
from secateur.session import local_session

NARROWEST = 140  # columns, where the output is no terminal


@click.command()
@click.option("--engine", "name", type=click.Choice(list(ENGINES)), default="secateur", show_default=True)
@click.option("--format", "formats", type=click.Choice(FORMATS), multiple=True, help="One, instead of all.")
@click.option("--class", "numbers", type=int, multiple=True, help="One, instead of all.")
@click.option("--all-findings", is_flag=True, help="Print every wrong answer and every refusal.")
@click.option("--list", "only_list", is_flag=True, help="Name the classes.")
def main(name: str, formats: Sequence[str], numbers: Sequence[int], all_findings: bool, only_list: bool) -> None:
    """Hold an engine to the classes of bugs by which pruning engines have lost rows.

    Ends with 1 where a row was lost.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=NARROWEST)
    unknown = sorted(set(numbers) - set(CLASSES))
    if unknown:
        raise click.UsageError(f"no class {', '.join(map(str, unknown))}; see --list")
    chosen = [CLASSES[number] for number in sorted(numbers or CLASSES)]
    if only_list:
        console.print(_listed(chosen))
        return
    spark = local_session()
    spark.sparkContext.setLogLevel("OFF")  # failures are printed below
    logging.disable()
    engine = ENGINES[name](spark)
    with tempfile.TemporaryDirectory() as directory:
        started = time.perf_counter()
        oracle = Oracle(spark, Path(directory))
        results = [[run_class(engine, oracle, bug, format) for format in formats or FORMATS] for bug in chosen]
    console.print(_table(engine, chosen, results, formats or FORMATS))
    for result in itertools.chain.from_iterable(results):
        _tell(console, result, None if all_findings else 3)
    console.print(f"{time.perf_counter() - started:.0f} s")
    sys.exit(any(result.lost for row in results for result in row))


def _listed(chosen: Sequence[BugClass]) -> Table:
    table = Table(box=None)
    for name in ("class", "title", "what went wrong elsewhere"):
        table.add_column(name)
    for bug in chosen:
        table.add_row(bug.name, bug.title, bug.about)
    return table


def _table(
    engine: Engine, chosen: Sequence[BugClass], results: Sequence[Sequence[Result]], formats: Sequence[str]
) -> Table:
    table = Table(box=None, title=engine.version, title_justify="left")
    for name in ("class", "", *formats):
        table.add_column(name)
    for bug, row in zip(chosen, results, strict=True):
        table.add_row(bug.name, bug.title, *map(summary, row))
    return table


def summary(result: Result) -> str:
    """The result of a class on a format, in a few words."""
    if result.outside:
        return f"- {result.outside}"
    counts = []
    if result.wrong:
        counts.append(f"WRONG {len(result.wrong)} of {result.asked}" + (", rows lost" if result.lost else ""))
    if result.refused:
        counts.append(f"refused {len(result.refused)} of {result.asked}")
    return "; ".join(counts) or f"right ({result.asked})"


def _tell(console: Console, result: Result, most: int | None) -> None:
    lines = [*map(str, result.wrong), *(f"refused: {reason}" for reason in result.refused)]
    for line in lines[:most]:
        console.print(f"C{result.number} {result.format}: {line}", highlight=False, markup=False)
    if most is not None and len(lines) > most:
        console.print(f"C{result.number} {result.format}: and {len(lines) - most} more")


if __name__ == "__main__":
    main(prog_name="python -m conformance")
