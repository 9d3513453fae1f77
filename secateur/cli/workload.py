"""The command workload: what is asked of a table, from the log of plans."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from secateur.cli.options import json_option
from secateur.cli.output import Cell, OutputColumn, Sheet, count, print_json, say, share, show_sheet
from secateur.errors import SecateurError
from secateur.io.tables.open import as_table
from secateur.maintain.index_state import ColumnClustering, clustering_of_known
from secateur.pruning.report import human_bytes
from secateur.workloads import Workload
from secateur.workloads import workload as workload_of

MOST_SHOWN = 20  # shapes in the table of text
_WIDEST = 90  # characters of a shape there


@click.command()
@click.argument("path", required=False, metavar="[PATH]")
@click.option("--log", metavar="FILE", help="The log of plans. By default what SECATEUR_LOG names.")
@click.option(
    "--html", "page", type=click.Path(dir_okay=False), metavar="FILE", help="Write a page that needs no server."
)
@json_option
def workload(path: str | None, log: str | None, page: str | None, as_json: bool) -> None:
    """Show which predicates are asked of a table, how often, and what they read.

    Every plan of a process with SECATEUR_LOG=FILE leaves a line there. Literals are hashed, unless
    SECATEUR_LOG_LITERALS=1. Without PATH all tables are shown. The most expensive shapes come first. "ideal" is what an
    index would read that leaves only row groups with a match, where reads have told which these are.

    \b
    Examples:
      SECATEUR_LOG=/var/log/plans.jsonl secateur prune lake/events "user_id = 42"
      secateur workload lake/events --log /var/log/plans.jsonl --html workload.html
    """
    logged = workload_of(path, log=log)
    if page is not None:
        from secateur.html.workload_page import workload_page

        Path(page).write_text(workload_page(logged, _clustering(path, logged)), encoding="utf-8")
        say(f"written to {page}")
    if as_json:
        sums = {name: getattr(logged, name) for name in ("bytes_read", "bytes_judged", "ideal_bytes")}
        columns = [asdict(use) for use in logged.columns]
        print_json({**asdict(logged), **sums, "columns": columns})
    elif page is None:
        _show(logged)


def _clustering(path: str | None, logged: Workload) -> tuple[ColumnClustering, ...]:
    """Return how well the table is clustered by the columns asked for; nothing for all tables, or one that is gone."""
    try:
        return () if path is None else clustering_of_known(as_table(path), [use.column for use in logged.columns])
    except (SecateurError, OSError, ValueError):
        return ()


def _show(logged: Workload) -> None:
    heads = ("plans", "read", "ideal", "of all read", "of the table", "planning ms")
    rows = tuple(
        (
            Cell(use.shape if len(use.shape) <= _WIDEST else f"{use.shape[:_WIDEST]} ..."),
            Cell(count(use.plans)),
            Cell(human_bytes(use.bytes_read)),
            Cell("-" if use.ideal_bytes is None else human_bytes(use.ideal_bytes)),
            Cell(share(use.bytes_read, logged.bytes_read)),
            Cell(share(use.bytes_read, use.bytes_before)),
            Cell(f"{use.planning_ms:.1f}"),
        )
        for use in logged.shapes[:MOST_SHOWN]
    )
    show_sheet(Sheet((OutputColumn("shape", right=False), *map(OutputColumn, heads)), rows))
    more = f", {len(logged.shapes) - MOST_SHOWN:,} shapes not shown" if len(logged.shapes) > MOST_SHOWN else ""
    say(f"{logged.plans:,} plans read {human_bytes(logged.bytes_read)}{more}")
    if logged.bytes_judged:
        say(
            f"of {human_bytes(logged.bytes_judged)}, of which it is known what held a match, an ideal index would read "
            f"{human_bytes(logged.ideal_bytes)}"
        )
    if logged.unreadable:
        say(f"{logged.unreadable:,} lines of the log are not plans")
