"""The command that keeps indexes up to date: watch."""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import click

from secateur.cli.options import TableArguments, json_option
from secateur.cli.output import BAD, say
from secateur.cli.spark import Cluster, spark_session
from secateur.cli.status import CALLED_WRONG, CRASHED, on_the_command_line
from secateur.errors import SecateurError
from secateur.io.storage.redaction import without_secrets
from secateur.maintain.watch import INTERVAL, Look, line_of
from secateur.maintain.watch import watch as looks_of


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--interval",
    type=click.FloatRange(0, min_open=True),
    default=INTERVAL,
    show_default=True,
    metavar="S",
    help="Seconds between two looks at a table.",
)
@click.option("--once", is_flag=True, help="Look at every table once, and end.")
@click.option("--no-vacuum", is_flag=True, help="Keep index files that nothing uses any more.")
@click.option("--catalog", metavar="NAME", help="The PyIceberg catalog in which PATH names an Iceberg table.")
@click.option("--index-location", metavar="DIR", help="Where the index is. For a single PATH only.")
@click.option("--glob", metavar="GLOB", help="Of tables of Parquet files, only those whose names match.")
@click.option("--spark", "with_spark", is_flag=True, help="Use Spark: PATH may be a name in its catalog.")
@json_option
@click.pass_context
def watch(
    context: click.Context,
    paths: tuple[str, ...],
    interval: float,
    once: bool,
    no_vacuum: bool,
    catalog: str | None,
    index_location: str | None,
    glob: str | None,
    with_spark: bool,
    as_json: bool,
) -> None:
    """Refresh the indexes of tables whenever the tables change.

    Prints a line for every change, or an object with --json. A refresh that fails is reported on stderr, and tried
    again later. Ctrl-C or SIGTERM ends the command with exit code 0; no index is left half done. With --once the exit
    code is that of the worst refresh.

    \b
    Examples:
      secateur watch lake/events lake/users --interval 30
      secateur watch lake/events --once      # for cron, Airflow
    """
    if index_location is not None and len(paths) > 1:
        raise click.UsageError("--index-location is for one table: give one PATH")
    code = 0
    with ExitStack() as stack:
        cluster = Cluster() if with_spark else None
        spark = stack.enter_context(spark_session(cluster, context.obj)) if with_spark else None
        sources: list[Any] = [
            TableArguments(path, catalog, index_location=index_location, glob=glob, cluster=cluster).open()
            if catalog or index_location or glob or with_spark
            else path
            for path in paths
        ]
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        stack.callback(signal.signal, signal.SIGTERM, before)
        try:
            for look in looks_of(*sources, interval=interval, once=once, vacuum=not no_vacuum, spark=spark):
                _print_look(look, as_json)
                code = max(code, _code(look))
        except KeyboardInterrupt:
            say("ended")
            return
    context.exit(code if once else 0)


def _print_look(look: Look, as_json: bool) -> None:
    """Print one line at once, though nobody but a pipe may be listening."""
    if as_json:
        click.echo(json.dumps(_as_json(look), ensure_ascii=False))
    elif look.error is None:
        click.echo(line_of(look))
    if look.error is not None:
        say(on_the_command_line(line_of(look), look.table), BAD)


def _as_json(look: Look) -> dict[str, object]:
    done = look.refreshed
    counts = {} if done is None else {k: v for k, v in asdict(done).items() if k not in ("index", "dry_run")}
    return {
        "table": look.table,
        "at": look.at.isoformat(),
        "seconds": round(look.seconds, 3),
        "changed": not look.is_unchanged and done is not None,
        **counts,
        "snapshot": None if done is None else done.index.number,
        "files": None if done is None else done.index.files,
        "files_vacuumed": look.files_vacuumed,
        "error": None if look.error is None else without_secrets(f"{type(look.error).__name__}: {look.error}"),
        "next_seconds": None if look.next_seconds is None else round(look.next_seconds, 1),
    }


def _code(look: Look) -> int:
    match look.error:
        case None:
            return 0
        case SecateurError() | OSError():
            return CALLED_WRONG
        case _:
            return CRASHED
