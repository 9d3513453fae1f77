"""The command pack: an archive of this package for the executors of a cluster."""

from __future__ import annotations

from pathlib import Path

import click

from secateur.cli.options import columns_option
from secateur.pruning.report import human_bytes
from secateur.shipping import pack as packed_into


@click.command()
@click.argument("archive", metavar="ARCHIVE", type=click.Path(dir_okay=False))
@columns_option("--without", metavar="PACKAGE,...", help="Leave out packages that the executors have.")
def pack(archive: str, without: tuple[str, ...]) -> None:
    """Make an archive of secateur for the executors of a cluster.

    A .tar.gz also has what secateur requires, with compiled packages for this platform and this minor version of
    Python. A .zip has secateur alone, for clusters that have the rest. Both are for Spark jobs; what runs on the driver
    needs neither.

    \b
    Examples:
      secateur pack packages.tar.gz    # spark-submit --archives packages.tar.gz#packages \\
                                       #   --conf spark.executorEnv.PYTHONPATH=packages
      secateur pack packages.tar.gz --without numpy,pandas,pyarrow
      secateur pack secateur.zip       # spark-submit --py-files secateur.zip
    """
    names = packed_into(archive, without)
    click.echo(f"{archive}: {human_bytes(Path(archive).stat().st_size)}, {', '.join(names)}")
