"""The command recluster: which files of a table to rewrite together. It does not start Spark."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import click

import secateur as sec
from secateur.cli.options import (
    TableArguments,
    columns_option,
    json_option,
    sample_option,
    session_options,
    table_options,
)
from secateur.cli.output import print_json
from secateur.cli.spark import spark_session
from secateur.index.advise.row_orders import Curve
from secateur.reclustering import PAYS_AFTER, SAMPLE_BLOCKS


@click.command()
@table_options
@columns_option("--by", required=True, help="Order by these columns, the most important first.")
@click.option("--budget", metavar="AMOUNT", help="Rewrite at most this much: bytes, 20GB, or 5% of the data.")
@click.option("--for", "predicates", multiple=True, metavar="PREDICATE", help="A query to serve. Can be repeated.")
@click.option("--log", metavar="FILE", help="Serve the queries of this log of plans.")
@click.option(
    "--pays-after",
    type=click.FloatRange(min=0, min_open=True),
    default=PAYS_AFTER,
    show_default=True,
    metavar="N",
    help="Leave alone what does not pay within this many queries.",
)
@click.option("--curve", type=click.Choice([*map(str, Curve)]), help="Try only this kind of order.")
@sample_option(SAMPLE_BLOCKS)
@click.option("--apply", is_flag=True, help="Rewrite the files by Spark, each group in a commit of its own.")
@session_options
@json_option
@click.pass_obj
def recluster(
    verbose: bool,
    source: TableArguments,
    by: tuple[str, ...],
    budget: str | None,
    predicates: tuple[str, ...],
    log: str | None,
    pays_after: float,
    curve: str | None,
    sample_blocks: int,
    apply: bool,
    time_zone: str | None,
    ansi: bool | None,
    as_json: bool,
) -> None:
    """Say which files to rewrite together, in which order, so that queries read less.

    Compares orders of the rows on a sample of blocks, and chooses files that share many values. Prints the statement by
    which the table's own writer rewrites them, and changes nothing without --apply. For a directory, --apply writes
    copies beside it, and leaves the old files. Without --for and --log it serves look-ups of the value of any row.

    \b
    Examples:
      secateur recluster lake/events --by user_id --budget 20GB
      secateur recluster lake/events --by ts,user_id --for "user_id = 42 AND ts >= DATE '2026-01-01'"
      secateur recluster lake.db.events --spark --by user_id --apply
    """
    planned = partial(
        sec.plan_recluster,
        source.open(),
        by,
        budget_bytes=budget,
        predicates=predicates,
        log=log,
        pays_after=pays_after,
        curve=curve,
        sample_blocks=sample_blocks,
        session_time_zone=time_zone,
        ansi=ansi,
    )
    if apply:
        with spark_session(source.cluster, verbose) as spark:
            plan = planned(apply=True, spark=spark)
    else:
        plan = planned()
    if as_json:
        print_json({**asdict(plan), "bytes": plan.bytes, "bytes_then": plan.bytes_then})
    else:
        click.echo(str(plan))
