"""The commands that run Spark with every query pruned: connect-server for remote clients, run for one program."""

from __future__ import annotations

import runpy
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secateur.cli.output import say
from secateur.cli.spark import settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PORT = 15002  # Spark Connect's default


@click.command(name="connect-server")
@click.option("--port", default=PORT, show_default=True, help="The port that clients connect to.")
@click.option("--master", default="local[*]", show_default=True, help="The cluster, as for spark-submit.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark. Can be repeated.")
def connect_server(port: int, master: str, conf: Sequence[str]) -> None:
    """Start Spark's Connect server; the queries of all its clients are pruned.

    \b
    Examples:
      secateur connect-server --conf spark.driver.memory=8g
      # a client, in whatever language: SparkSession.builder.remote("sc://localhost:15002")
    """
    from pyspark.sql import SparkSession

    from secateur.java import require_java

    require_java()
    builder = SparkSession.builder.master(master).appName("secateur connect-server")
    for name, value in settings_of(conf).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    serve(spark, port)
    say(f"listening on port {port}; every client's queries are pruned")
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    while not ended.wait(1):
        pass
    spark.stop()


def serve(spark: SparkSession, port: int) -> None:
    """Start a Connect server in the session's driver, and prune the session's own queries too."""
    from secateur.enabling import enable

    enable(spark)
    jvm: Any = spark._jvm
    context = spark._jsc.sc()
    context.conf().set("spark.connect.grpc.binding.port", str(port))
    jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(context)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("program", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(program: str, arguments: Sequence[str]) -> None:
    """Run a PySpark program, with the queries of every session that it makes pruned.

    \b
    Examples:
      secateur run app.py --date 2026-01-01
      SECATEUR_DISABLE=1 secateur run app.py    # the same without any index
    """
    path, arguments_before = list(sys.path), sys.argv
    sys.argv = [program, *arguments]
    sys.path.insert(0, str(Path(program).resolve().parent))
    try:
        with every_session_enabled():
            runpy.run_path(program, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = arguments_before, path


@contextmanager
def every_session_enabled() -> Iterator[None]:
    """Enable every session when it is made; print a warning for Spark Connect or an unsupported Spark version."""
    from pyspark.sql import SparkSession

    from secateur.enabling import enable

    made: Callable[..., SparkSession] = SparkSession.Builder.getOrCreate

    def get_or_create(builder: SparkSession.Builder) -> SparkSession:
        spark = made(builder)
        try:
            enable(spark)
        except ValueError as error:
            click.echo(f"secateur: {error}", err=True)
        return spark

    SparkSession.Builder.getOrCreate = get_or_create  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        SparkSession.Builder.getOrCreate = made  # type: ignore[method-assign]
