"""The command line, from ``secateur index`` to ``secateur drop``; one module per group of commands."""

from __future__ import annotations

import logging
import sys

import click

import secateur
from secateur.cli.advising import advise
from secateur.cli.building import index, optimize, refresh
from secateur.cli.demonstrate import demo
from secateur.cli.keeping import drop, inspect, vacuum, verify
from secateur.cli.querying import prune
from secateur.cli.reclustering import recluster
from secateur.cli.reporting import report
from secateur.cli.serving import connect_server, run
from secateur.cli.shipping import pack
from secateur.cli.status import ScriptGroup
from secateur.cli.tuning import tune
from secateur.cli.watching import watch
from secateur.cli.workload import workload


@click.group(cls=ScriptGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(secateur.__version__, "--version", message="secateur %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Log what is decided, and show what Spark prints, on stderr.")
@click.pass_context
def main(context: click.Context, verbose: bool) -> None:
    """Prune Parquet tables: read only the row groups and pages that can hold a match.

    A small index beside a directory of Parquet files shows in milliseconds which parts of the table a predicate
    needs. The data is never rewritten, and without the index every answer is the same, only slower.

    \b
    Examples:
      secateur index lake/events --sort-key ts --bloom user_id
      secateur prune lake/events "user_id = 42 AND ts >= TIMESTAMP '2026-01-01'"
      secateur demo

    \b
    Exit codes:
      0    done
      1    the index is wrong (verify; any command with --strict or --audit)
      2    it cannot be done: no such table, unknown column, bad predicate, full disk
      70   a defect of secateur itself
      130  interrupted

    \b
    Completion of commands and options in bash (in zsh: zsh_source):
      eval "$(_SECATEUR_COMPLETE=bash_source secateur)"
    """
    context.obj = verbose
    if verbose:
        logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
        logging.getLogger("secateur").setLevel(logging.INFO)


COMMANDS = (
    index,
    refresh,
    watch,
    optimize,
    prune,
    advise,
    workload,
    tune,
    recluster,
    inspect,
    report,
    verify,
    vacuum,
    drop,
    demo,
    pack,
    connect_server,
    run,
)
for command in COMMANDS:
    main.add_command(command)
