"""Spark's own reader over the Parquet files: their bounds, page index and bloom filters."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer_engines.engines.spark_sql import SparkSql, session_with
from benchmarks.peer_engines.measured import Preparation


def open_engine(data: Path, work: Path) -> SparkSql:
    """Open the files; nothing is made."""
    session = session_with({})
    session.read.parquet(str(data)).createOrReplaceTempView("orders")
    return SparkSql(session, "orders", Preparation("nothing", 0, 0, 0))
