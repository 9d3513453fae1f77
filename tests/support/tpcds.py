"""TPC-DS: its tables as DuckDB's generator makes them, and its queries in Spark's SQL.

The generator is an extension of DuckDB that PyPI has for one version of it. It gets an environment of its own, made
once in the user's cache. Tests that need it are skipped if it cannot be had.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import sqlglot

from tests.support.formats.spark_packages import packages_home

VERSION = "1.5.5"
REQUIREMENTS = (f"duckdb=={VERSION}", f"duckdb-extension-tpcds=={VERSION}")
MOST_SECONDS = 180
GENERATE = """
import importlib.util, json, pathlib, sys
import duckdb
package = pathlib.Path(importlib.util.find_spec("duckdb_extension_tpcds").origin).parent
connection = duckdb.connect()
connection.execute(f"LOAD '{next(package.rglob('*.duckdb_extension'))}'")
connection.execute(f"CALL dsdgen(sf={float(sys.argv[1])})")
home = pathlib.Path(sys.argv[2])
for name, in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
    connection.execute(f"COPY {name} TO '{home / name}.parquet' (FORMAT parquet)")
queries = connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
(home / "queries.json").write_text(json.dumps(dict(queries)))
"""


@dataclass(frozen=True)
class Generator:
    """The Python that has the generator; None with the reason why there is none."""

    python: Path | None
    reason: str = ""

    def generate(self, scale_factor: float, directory: Path) -> None:
        """Write every table as ``<name>.parquet``, and DuckDB's queries as ``queries.json``."""
        command = [str(self.python), "-c", GENERATE, str(scale_factor), str(directory)]
        subprocess.run(command, check=True, capture_output=True, timeout=MOST_SECONDS)


@cache
def generator() -> Generator:
    """The generator, installed where it is not in the cache."""
    home = packages_home() / f"tpcds-{VERSION}"
    python = home / "bin" / "python"
    if (home / "done").exists():
        return Generator(python)
    commands = ([sys.executable, "-m", "venv", str(home)], [str(python), "-m", "pip", "install", "-q", *REQUIREMENTS])
    try:
        for command in commands:
            subprocess.run(command, check=True, capture_output=True, timeout=MOST_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        return Generator(None, f"{' and '.join(REQUIREMENTS)} cannot be installed: {type(error).__name__}")
    (home / "done").touch()
    return Generator(python)


def queries(directory: Path) -> dict[int, str]:
    """The queries of a directory that the generator wrote, by number, in Spark's SQL."""
    stored = json.loads((directory / "queries.json").read_text())
    return {
        int(number): sqlglot.transpile(query.strip().rstrip(";"), read="duckdb", write="spark")[0]
        for number, query in stored.items()
    }
