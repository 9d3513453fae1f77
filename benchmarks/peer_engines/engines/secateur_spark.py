"""Spark with ``sec.enable``, over the Parquet files and secateur's index."""

from __future__ import annotations

from pathlib import Path

import secateur as sec
from benchmarks.peer_engines.engines.secateur_files import index
from benchmarks.peer_engines.engines.spark_sql import SparkSql, session_with


def open_engine(data: Path, work: Path) -> SparkSql:
    """Build the index, by threads of this process, and let the session's queries prune."""
    table, preparation = index(data, work)
    session = session_with({})
    sec.enable(session, tables=[table])
    session.read.parquet(str(data)).createOrReplaceTempView("orders")
    return SparkSql(session, "orders", preparation, f"secateur {sec.__version__}")
