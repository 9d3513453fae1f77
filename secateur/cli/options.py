"""Options shared by several commands."""

from __future__ import annotations

import datetime as dt
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

import secateur as sec
from secateur.cli.spark import Cluster, settings_of, spark_session
from secateur.cli.status import TABLE
from secateur.errors import SecateurError
from secateur.io.storage.redaction import redacted_location, without_secrets
from secateur.pruning.functions.zone_names import zone_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.table import Table

F = TypeVar("F", bound=Callable[..., Any])
_TOKENS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|[][(),]""", re.DOTALL)


@dataclass(frozen=True)
class TableArguments:
    """The table that a command works on, as named on the command line."""

    path: str
    catalog: str | None = None
    snapshot_id: int | None = None
    as_of: str | None = None
    ref: str | None = None
    version: int | None = None
    read_optimized: bool = False
    index_location: str | None = None
    glob: str | None = None
    cluster: Cluster | None = None  # None: without Spark

    def open(self) -> Table:
        """Open the table. Raises as :func:`secateur.open_table`, and click.UsageError for options that do not fit."""
        if self.cluster is None or not self._is_name:
            return self._opened(None)
        with spark_session(self.cluster) as spark:
            return self._opened(spark)

    @property
    def _is_name(self) -> bool:
        """Whether PATH can be a name in Spark's catalog: it does not look like a path, and no such file exists."""
        return "/" not in self.path and not os.path.exists(self.path)

    def _opened(self, spark: SparkSession | None) -> Table:
        try:
            return sec.open_table(
                self.path,
                spark=spark,
                catalog=self.catalog,
                snapshot_id=self.snapshot_id,
                as_of=self.as_of,
                ref=self.ref,
                version=self.version,
                read_optimized=self.read_optimized,
                index_location=self.index_location,
                glob=self.glob,
            )
        except SecateurError:
            raise
        except ValueError as error:
            raise click.UsageError(without_secrets(str(error))) from None


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument PATH and the options that select the table and its index.

    The command receives them as one :class:`TableArguments`, its parameter `source`.
    """

    @wraps(command)
    def with_source(
        path: str,
        catalog: str | None,
        snapshot_id: int | None,
        as_of: str | None,
        ref: str | None,
        version: int | None,
        read_optimized: bool,
        index_location: str | None,
        glob: str | None,
        with_spark: bool,
        master: str | None,
        remote: str | None,
        conf: tuple[str, ...],
        **others: Any,
    ) -> Any:
        click.get_current_context().meta[TABLE] = _typed(path, catalog, index_location, glob)
        if master and remote:
            raise click.UsageError("--master and --remote name two clusters")
        wanted = with_spark or master or remote or conf
        cluster = Cluster(master, remote, settings_of(conf)) if wanted else None
        moment = (snapshot_id, as_of, ref, version, read_optimized)
        source = TableArguments(path, catalog, *moment, index_location, glob, cluster)
        return command(source=source, **others)

    for parameter in reversed(_TABLE_PARAMETERS):
        parameter(with_source)
    return with_source


def _typed(path: str, catalog: str | None, index_location: str | None, glob: str | None) -> str:
    """Return a table as it is typed: its path, and the options by which another command finds it and its index."""
    options = {"--catalog": catalog, "--index-location": index_location and redacted_location(index_location)}
    given = [part for option in {**options, "--glob": glob}.items() if option[1] is not None for part in option]
    return shlex.join([redacted_location(path), *map(str, given)])


def _moment(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """Validate a time, or an instant of Hudi."""
    if text is not None and not text.isdecimal():
        try:
            dt.datetime.fromisoformat(text)
        except ValueError:
            raise click.BadParameter(f"{text!r} is not a time: write it as 2026-01-31T12:00:00") from None
    return text


_TABLE_PARAMETERS = (
    click.argument("path", metavar="PATH"),
    click.option("--catalog", metavar="NAME", help="The PyIceberg catalog in which PATH names an Iceberg table."),
    click.option("--snapshot-id", type=int, metavar="ID", help="Read this snapshot of an Iceberg table."),
    click.option(
        "--as-of", callback=_moment, metavar="TIME", help="Read the table as it was then; UTC if no zone is given."
    ),
    click.option(
        "--version", type=int, metavar="N", help="Read this version of a Delta table, or instant of a Hudi table."
    ),
    click.option("--ref", metavar="NAME", help="Read this branch or tag of an Iceberg table."),
    click.option("--read-optimized", is_flag=True, help="Read a Hudi table's base files, without its log files."),
    click.option(
        "--index-location",
        metavar="DIR",
        help="Where the index is. By default in the directory _secateur beside the data.",
    ),
    click.option(
        "--glob", metavar="GLOB", help="Of a table of Parquet files, only those whose names match, such as '*.parquet'."
    ),
    click.option(
        "--spark",
        "with_spark",
        is_flag=True,
        help="Use Spark: PATH may be a name in its catalog; index and refresh run as Spark jobs, verify reads data.",
    ),
    click.option(
        "--master", metavar="URL", help="The cluster, as for spark-submit. By default local. Implies --spark."
    ),
    click.option("--remote", metavar="URL", help="A Spark Connect server: sc://host:15002. Implies --spark."),
    click.option(
        "--conf",
        metavar="KEY=VALUE",
        multiple=True,
        help="A setting of Spark. Can be repeated. Implies --spark.",
    ),
)


def json_option(command: F) -> F:
    """Add the option --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, to stdout.")(command)


def columns_option(*names: str, help: str, metavar: str = "COLUMN,...", required: bool = False) -> Callable[[F], F]:
    """Make a repeatable option that takes names, by default of columns, or expressions, separated by commas."""
    return click.option(*names, metavar=metavar, multiple=True, callback=_names, help=help, required=required)


def _names(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for value in values for name in _parts(value))
    if not all(names):
        raise click.BadParameter("a name is empty")
    return names


def _parts(value: str) -> list[str]:
    """Split at commas, but not at those inside of parentheses, brackets or quotes, as in ``concat(a, ',', b)``."""
    parts, begin, depth = [], 0, 0
    for token in _TOKENS.finditer(value):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token[0], 0)
        if token[0] == "," and not depth:
            parts.append(value[begin : token.start()])
            begin = token.end()
    return [*parts, value[begin:]]


def sample_option(most: int, per: str = "") -> Callable[[F], F]:
    """Make the option that bounds the blocks sampled of the table, and as many for every query."""
    return click.option(
        "--sample-blocks",
        type=click.IntRange(min=1),
        default=most,
        show_default=True,
        metavar="N",
        help=f"Read at most this many blocks of the table{per and f', and as many for each {per}'}.",
    )


def session_options(command: F) -> F:
    """Add the options of the Spark session that defines what a predicate means."""
    zone = click.option(
        "--time-zone", callback=time_zone, metavar="ZONE", help="Spark's session time zone. By default UTC."
    )
    mode = click.option("--ansi/--no-ansi", default=None, help="Spark's ANSI mode. By default on.")
    return zone(mode(command))


def time_zone(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Validate the name of a time zone."""
    if name is not None and zone_of(name) is None:
        raise click.BadParameter(f"unknown time zone {name!r}")
    return name
