"""The command advise: what to index. It does not start Spark."""

from __future__ import annotations

from dataclasses import asdict

import click

import secateur as sec
from secateur.advising import SAMPLE_BLOCKS
from secateur.cli.options import TableArguments, json_option, sample_option, session_options, table_options
from secateur.cli.output import print_json
from secateur.cli.status import on_the_command_line


@click.command()
@table_options
@click.argument("predicates", metavar="PREDICATE...", nargs=-1, required=True)
@sample_option(SAMPLE_BLOCKS, "predicate")
@session_options
@json_option
def advise(
    source: TableArguments,
    predicates: tuple[str, ...],
    sample_blocks: int,
    time_zone: str | None,
    ansi: bool | None,
    as_json: bool,
) -> None:
    """Say what indexes, or another order of the rows, would save for some queries.

    Each PREDICATE is what would follow WHERE in Spark SQL. What it reads now is exact. What it would read is estimated:
    the predicates' columns are read in a sample of blocks.

    \b
    Examples:
      secateur advise lake/events "user_id = 42"
      secateur advise lake/events "user_id = 42" "message LIKE '%timeout%'" --sample-blocks 200
    """
    table = source.open()
    advice = sec.advise(table, predicates, sample_blocks=sample_blocks, session_time_zone=time_zone, ansi=ansi)
    if as_json:
        print_json({**asdict(advice), "bytes_now": advice.bytes_now})
    else:
        click.echo(on_the_command_line(str(advice)))
