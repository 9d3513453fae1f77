"""The command prune: plans a query. It does not start Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

import secateur as sec
from secateur.cli.key_files import joined_columns, read_keys
from secateur.cli.options import TableArguments, json_option, session_options, table_options
from secateur.cli.output import (
    CAUTION,
    QUIET,
    STRONG,
    Cell,
    OutputColumn,
    Sheet,
    count,
    is_terminal,
    print_json,
    print_line,
    say,
    share,
    show_sheet,
)
from secateur.cli.status import on_the_command_line
from secateur.cli.waterfall import waterfall
from secateur.errors import IndexFault, UnknownSnapshot
from secateur.pruning.report import counted, human_bytes
from secateur.scan import Scan


def parameters(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE, where the value is JSON, or else text."""
    parsed = {}
    for value in values:
        name, sign, text = value.partition("=")
        if not (name and sign):
            raise click.BadParameter(f"{value!r} is not NAME=VALUE")
        try:
            parsed[name] = json.loads(text)
        except ValueError:
            parsed[name] = text
    return parsed


@click.command()
@table_options
@click.argument("predicate")
@click.option(
    "--param",
    "params",
    metavar="NAME=VALUE",
    multiple=True,
    callback=parameters,
    help="The value of :NAME in the predicate: JSON, or else text.",
)
@click.option(
    "--keys",
    "key_file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Ask for rows with one of the keys in this Parquet, CSV or Arrow file.",
)
@click.option(
    "--on",
    metavar="COLUMN,...",
    help="The columns that the keys are compared with; COLUMN=NAME if the file calls it NAME.",
)
@click.option(
    "--since",
    type=int,
    metavar="SNAPSHOT",
    help="Ask for rows of files that came after this snapshot: of the table, or of a directory's index.",
)
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Ask for any N matching rows.")
@click.option(
    "--order-by", metavar="COLUMN,...", help="Ask for the first N rows in this order, as in ORDER BY of Spark SQL."
)
@click.option("--files", "wanted", flag_value="files", help="Print the surviving files, one per line.")
@click.option("--blocks", "wanted", flag_value="blocks", help="Print the surviving blocks (row groups).")
@click.option("--rows", "wanted", flag_value="rows", help="Print the matching rows, one JSON object per line.")
@click.option("--count", "wanted", flag_value="count", help="Print the exact number of matching rows.")
@click.option("--explain", is_flag=True, help="Say which structures serve each condition, and which are missing.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the plan as a page of HTML."
)
@click.option("--why", metavar="FILE[:N]", help="Say why a file, or its row group N, is read or left out.")
@session_options
@click.option("--strict", is_flag=True, help="Exit with 1 if any part of the index cannot be used.")
@click.option("--no-index", is_flag=True, help="Use the footers of the files only.")
@click.option(
    "--audit",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Read this share of the pruned blocks, and exit with 1 if one of them holds a match.",
)
@json_option
def prune(
    source: TableArguments,
    predicate: str,
    params: dict[str, Any],
    key_file: str | None,
    on: str | None,
    since: int | None,
    limit: int | None,
    order_by: str | None,
    wanted: str | None,
    explain: bool,
    html: Path | None,
    why: str | None,
    time_zone: str | None,
    ansi: bool | None,
    strict: bool,
    no_index: bool,
    audit: float | None,
    as_json: bool,
) -> None:
    """Show what a query has to read, and why.

    PREDICATE is what would follow WHERE in Spark SQL. Shows what each pruning stage left. Reads no data, except for
    --rows, --count and --audit.

    \b
    Examples:
      secateur prune lake/events "user_id = 42 AND ts >= TIMESTAMP '2026-01-01'"
      secateur prune lake/events "country IN ('CH', 'LI')" --files
      secateur prune lake/events "ts < TIMESTAMP '2020-01-01'" --count
      secateur prune lake/events "user_id = 42" --order-by "ts DESC" --limit 10 --rows
      secateur prune lake/events "true" --since 7 --rows
      secateur prune lake/events "user_id = 42" --explain
      secateur prune lake/events "user_id = 42" --html report.html
      secateur prune lake/events "user_id IN (:ids)" --param "ids=[7, 42]"
      secateur prune lake/events "true" --keys forget.csv --on user_id --files
      secateur prune lake/events "user_id = 42" --why day=2026-01-01/part-0.parquet:3
      secateur prune lake/events "user_id = 42" --audit 0.01
    """
    if order_by is not None and limit is None:
        raise click.UsageError("--order-by needs --limit")
    if (key_file is None) != (on is None):
        raise click.UsageError("--keys and --on go together")
    table = source.open()
    names = joined_columns(on) if on else None
    plan = sec.prune(
        table,
        predicate,
        since=since,
        limit=limit,
        params=params or None,
        keys=read_keys(key_file, names, table) if key_file and names else None,
        on=names,
        order_by=order_by or (),
        use_index=not no_index,
        strict=strict,
        session_time_zone=time_zone,
        ansi=ansi,
        audit=audit,
    )
    if html is not None:
        html.write_text(plan.to_html(), encoding="utf-8")
        say(f"wrote {html}", QUIET)
    if why is not None:
        _show_why(plan, why, as_json)
    elif as_json:
        print_json({**_as_json(plan, wanted), **({"explanation": asdict(plan.explanation)} if explain else {})})
    elif wanted is None:
        _show_plan(plan)
        if explain:
            click.echo(f"\n{on_the_command_line(str(plan.explanation))}")
    else:
        _show_wanted(plan, wanted)


def _show_why(plan: Scan, block: str, as_json: bool) -> None:
    file, _, row_group = block.rpartition(":")
    why = plan.why(file, int(row_group)) if row_group.isdigit() else plan.why(block)
    if as_json:
        print_json(asdict(why))
    else:
        click.echo(str(why))


def _as_json(plan: Scan, wanted: str | None) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    match wanted:
        case "files":
            extra["files"] = plan.files
        case "blocks":
            extra["blocks"] = plan.blocks.to_pylist()
        case "rows":
            extra["rows"] = [json.loads(row) for row in _rows(plan)]
        case "count":
            extra["count"] = plan.count()
    survivors = asdict(plan.report.stages[-1].after)
    plan_report = plan.report
    report = {
        **asdict(plan_report),
        "seconds": plan_report.seconds,
        "degraded": plan_report.degraded,
        "metrics": plan_report.metrics(),
    }
    order = None if plan.order_by is None else str(plan.order_by)
    return {
        **report,
        "limit": plan.limit,
        "order_by": order,
        "residual": plan.residual,
        "snapshot": _snapshot(plan),
        "survivors": survivors,
        **extra,
    }


def _snapshot(plan: Scan) -> int | None:
    """Return the snapshot from which the next plan can continue; None if it is unknown."""
    with suppress(UnknownSnapshot, IndexFault):
        return plan.snapshot
    return None


def _show_wanted(plan: Scan, wanted: str) -> None:
    for reason in plan.report.degraded:
        say(f"degraded: {reason}", CAUTION)
    match wanted:
        case "files":
            for file in plan.files:
                click.echo(file)
        case "blocks":
            show_sheet(_blocks_sheet(plan))
        case "rows":
            for row in _rows(plan):
                click.echo(row)
        case "count":
            click.echo(plan.count())


def _rows(plan: Scan) -> Iterator[str]:
    """Yield every matching row as a JSON object; values that JSON lacks become text."""
    for batch in plan.to_batches():
        for row in batch.to_pylist():
            yield json.dumps(row, default=str, ensure_ascii=False)


def _blocks_sheet(plan: Scan) -> Sheet:
    columns = (
        OutputColumn("file", right=False),
        OutputColumn("row group"),
        OutputColumn("rows"),
        OutputColumn("bytes"),
        OutputColumn("matches", right=False),
        OutputColumn("row ranges", right=False),
    )
    rows = (
        (
            Cell(block["file"]),
            Cell(count(block["row_group"])),
            Cell(count(block["row_count"])),
            Cell(human_bytes(block["bytes"])),
            Cell("all" if block["fully_matching"] else "some"),
            Cell(_ranges(block["row_ranges"]), QUIET),
        )
        for block in plan.blocks.to_pylist()
    )
    return Sheet(columns, tuple(rows))


def _ranges(ranges: list[dict[str, int]], most: int = 4) -> str:
    texts = [f"{r['start']}-{r['stop']}" for r in ranges[:most]]
    return " ".join([*texts, f"... {len(ranges) - most} more"] if len(ranges) > most else texts)


def _show_plan(plan: Scan) -> None:
    if not is_terminal(sys.stdout):
        click.echo(on_the_command_line(plan.explain()))
        click.echo()
        print_line(_summary(plan))
        _suggest_index(plan)
        return
    report = plan.report
    for caution in plan.explanation.cautions:
        print_line(on_the_command_line(caution), CAUTION)
    print_line(report.predicate, STRONG)
    if report.order:
        print_line(f"order: {report.order}", QUIET)
    print_line(f"table: {report.described_table()}", QUIET)
    print_line(f"index: {report.index}", QUIET)
    if report.audit is not None:
        print_line(f"audit: {report.audit}", QUIET)
    show_sheet(waterfall(report, bars=True))
    for stage in report.stages:
        for note in stage.notes:
            print_line(f"{stage.name}: {note}", QUIET)
    for reason in report.unsupported:
        print_line(f"not used for pruning: {reason}", CAUTION)
    for stage in report.stages:
        for reason in stage.degraded:
            print_line(f"degraded: {stage.name}: {reason}", CAUTION)
    print_line(_summary(plan))
    _suggest_index(plan)


def _suggest_index(plan: Scan) -> None:
    """Print the command that builds an index, where there is none and a structure of it would serve a condition."""
    if plan.report.index == "none" and any(": add " in caution for caution in plan.explanation.cautions):
        print_line(on_the_command_line("there is no index: build one with build_index()"))


def _summary(plan: Scan) -> str:
    before, after = plan.report.stages[0].before, plan.report.stages[-1].after
    whole = "" if before.bytes is None else f" of {human_bytes(before.bytes)} ({share(after.bytes or 0, before.bytes)})"
    matching = int(plan.survivors.fully_matching.sum())
    left = f"{counted(after.blocks, 'block')} in {counted(after.files, 'file')}"
    read = f"to read: {left}, {human_bytes(after.bytes or 0)}{whole}"
    return f"{read}; all rows match in {matching:,} of them" if matching else read
