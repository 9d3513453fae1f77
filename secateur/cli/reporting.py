"""The command report: the state of an index."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from secateur.cli.options import TableArguments, columns_option, json_option, table_options
from secateur.cli.output import (
    CAUTION,
    Cell,
    OutputColumn,
    Sheet,
    count,
    print_json,
    say,
    share,
    show_facts,
    show_sheet,
)
from secateur.cli.status import on_the_command_line
from secateur.pruning.report import human_bytes, human_seconds
from secateur.reporting import IndexReport, report_index

MOST_SHOWN = 30  # structures in the table of text


@click.command()
@table_options
@columns_option("--by", help="Columns whose clustering is measured. By default the sort key's and those with filters.")
@click.option(
    "--html", "page", type=click.Path(dir_okay=False), metavar="FILE", help="Write a page that needs no server."
)
@json_option
def report(source: TableArguments, by: tuple[str, ...], page: str | None, as_json: bool) -> None:
    """Report what an index covers, what it costs, its age, and how well the table is clustered.

    \b
    Examples:
      secateur report lake/events
      secateur report lake/events --by user_id,ts --html report.html
    """
    state = report_index(source.open(), by=by or None)
    if page is not None:
        Path(page).write_text(state.to_html(), encoding="utf-8")
        say(f"written to {page}")
    if as_json:
        print_json({**asdict(state), "age_seconds": state.index.age_seconds, "other_bytes": state.other_bytes})
    elif page is None:
        _show(state)
    uncovered = state.live_files - state.covered_files
    if uncovered:
        hint = on_the_command_line("secateur refresh PATH")
        say(f"{uncovered:,} files are not covered and pruned by their footers only: {hint}", CAUTION)


def _show(state: IndexReport) -> None:
    age = ("age", human_seconds(state.index.age_seconds))
    covers = ("covers", f"{state.covered_files:,} of {state.live_files:,} live files")
    show_facts([*state.index.facts(), age, covers])
    click.echo()
    show_sheet(_structures(state))
    click.echo()
    show_sheet(_clustering(state))


def _structures(state: IndexReport) -> Sheet:
    total = state.index.index_bytes
    rows = [
        (
            Cell(covered.column),
            Cell(covered.structure),
            Cell(human_bytes(covered.bytes)),
            Cell(share(covered.bytes, total)),
            Cell(count(covered.blocks)),
            Cell(covered.why or "", CAUTION),
        )
        for covered in state.structures[:MOST_SHOWN]
    ]
    rest = sum(covered.bytes for covered in state.structures[MOST_SHOWN:]) + state.other_bytes
    rows.append((Cell("all else"), Cell(""), Cell(human_bytes(rest)), Cell(share(rest, total)), Cell(""), Cell("")))
    return Sheet(
        (
            OutputColumn("column", right=False),
            OutputColumn("structure", right=False),
            OutputColumn("bytes"),
            OutputColumn("of the index"),
            OutputColumn("blocks covered"),
            OutputColumn("not covered", right=False),
        ),
        tuple(rows),
    )


def _clustering(state: IndexReport) -> Sheet:
    heads = ("blocks", "mean depth", "greatest depth", "one value", "without bounds")
    rows = tuple(
        (
            Cell(column.column),
            Cell(count(column.blocks)),
            Cell("-" if column.mean_depth is None else f"{column.mean_depth:,.4g}"),
            Cell(count(column.max_depth)),
            Cell(count(column.constant)),
            Cell(count(column.unbounded)),
        )
        for column in state.clustering
    )
    return Sheet((OutputColumn("clustered by", right=False), *map(OutputColumn, heads)), rows)
