"""The peers: what runs, in which environment, by which pins."""

from __future__ import annotations

from dataclasses import dataclass

PYARROW = "pyarrow==26.0.1"
SPARK_4, SPARK_3 = "pyspark==4.1.4", "pyspark==3.5.9"  # the newest that have these formats


@dataclass(frozen=True)
class Peer:
    """A peer. Its environment is made by its pins; without pins it is this one."""

    name: str
    engine: str  # a module of .engines
    title: str
    pins: tuple[str, ...] = ()
    on_spark: bool = False  # asked by SQL in a session of Spark


PEERS = (
    Peer("secateur", "secateur_files", "secateur: `prune().to_arrow()`"),
    Peer("duckdb", "duckdb_files", "DuckDB, these files", ("duckdb==2.0.0", PYARROW)),
    Peer("duckdb-copy", "duckdb_copy", "DuckDB, its own copy", ("duckdb==2.0.0", PYARROW)),
    Peer("datafusion", "datafusion_files", "DataFusion, these files", ("datafusion==55.0.0", PYARROW)),
    Peer("polars", "polars_files", "Polars, these files", ("polars==2.1.0", PYARROW)),
    Peer("lance", "lance_copy", "Lance, its own copy", ("pylance==14.0.2", PYARROW)),
    Peer("databend", "databend_copy", "Databend, its own copy", ("databend==1.2.453", PYARROW)),
    Peer("secateur-spark", "secateur_spark", "secateur: `sec.enable`", on_spark=True),
    Peer("spark", "spark_files", "Spark, these files", on_spark=True),
    Peer("iceberg", "iceberg_copy", "Iceberg, its own copy", (SPARK_4, PYARROW), on_spark=True),
    Peer("delta", "delta_copy", "Delta in Z-order, its own copy", (SPARK_4, PYARROW), on_spark=True),
    Peer("hudi", "hudi_copy", "Hudi, its own copy", (SPARK_3, PYARROW, "pandas<3"), on_spark=True),
)
