"""The command tune: which structures the logged plans pay for."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from functools import partial

import click

import secateur as sec
from secateur.cli.building import interruption_explained
from secateur.cli.options import TableArguments, json_option, sample_option, session_options, table_options
from secateur.cli.output import print_json
from secateur.cli.spark import spark_for_build
from secateur.cli.status import on_the_command_line
from secateur.tuning import SAMPLE_BLOCKS


@click.command()
@table_options
@click.option(
    "--budget",
    required=True,
    metavar="AMOUNT",
    help="What filters and gaps may take: bytes, 20MB, or 5% of the data.",
)
@click.option("--log", metavar="FILE", help="The log of plans. By default what SECATEUR_LOG names.")
@click.option("--apply", is_flag=True, help="Build what is missing and drop what does not pay.")
@sample_option(SAMPLE_BLOCKS, "query")
@session_options
@json_option
@click.pass_obj
def tune(
    verbose: bool,
    source: TableArguments,
    budget: str,
    log: str | None,
    apply: bool,
    sample_blocks: int,
    time_zone: str | None,
    ansi: bool | None,
    as_json: bool,
) -> None:
    """Choose what to index from the log of plans, within a budget of bytes.

    Simulates on a sample of blocks what the logged queries would read, with the filters and gaps that the index has and
    with those that it could have. Says what to build, to keep and to drop, best first, and changes nothing without
    --apply. Values of the table stand in for hashed literals.

    \b
    Examples:
      secateur tune lake/events --budget 5% --log /var/log/plans.jsonl
      secateur tune lake/events --budget 20MB --apply
    """
    table = source.open()
    tuned = partial(
        sec.tune,
        table,
        budget=budget,
        log=log,
        apply=apply,
        sample_blocks=sample_blocks,
        session_time_zone=time_zone,
        ansi=ansi,
    )
    if apply:
        with interruption_explained(table), spark_for_build(table, source.cluster, verbose) as spark:
            tuning = tuned(spark=spark)
    else:
        tuning = tuned()
    if as_json:
        print_json({**asdict(tuning), "bytes_now": tuning.bytes_now, "bytes_then": tuning.bytes_then})
    else:
        asked = "" if log is None else f" --log {shlex.quote(log)}"
        click.echo(on_the_command_line(str(tuning)).replace(" --apply", f"{asked} --apply"))
