"""The peers: what runs, in which environment, by which pins."""

from __future__ import annotations

from dataclasses import dataclass

PYARROW = "pyarrow==26.0.1"


@dataclass(frozen=True)
class Peer:
    """A peer. Its environment is made by its pins; without pins it is this one."""

    name: str
    engine: str  # a module of .engines
    title: str
    pins: tuple[str, ...] = ()


PEERS = (
    Peer("secateur", "secateur_files", "secateur: `prune().to_arrow()`"),
    Peer("duckdb", "duckdb_files", "DuckDB, these files", ("duckdb==2.0.0", PYARROW)),
    Peer("duckdb-copy", "duckdb_copy", "DuckDB, its own copy", ("duckdb==2.0.0", PYARROW)),
    Peer("datafusion", "datafusion_files", "DataFusion, these files", ("datafusion==55.0.0", PYARROW)),
    Peer("polars", "polars_files", "Polars, these files", ("polars==2.1.0", PYARROW)),
    Peer("lance", "lance_copy", "Lance, its own copy", ("pylance==14.0.2", PYARROW)),
)
