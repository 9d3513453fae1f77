"""TPC-H and TPC-DS in SQL: the row groups that Spark reads alone, and with ``enable()``.

``python -m benchmarks.spark.tpc_sql`` writes docs/tpc.md, and with ``--iceberg`` docs/tpc-iceberg.md. Each query runs
with and without pruning, and the answers have to be equal. Row groups are counted whose rows leave a scan, computed
from the rows in Spark's metrics: every row group has the same number of rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.setting import Setting
from benchmarks.spark.enabled_sql import SWITCH, enabled
from benchmarks.spark.sessions import iceberg_trouble, spark_session
from benchmarks.tpch.tpch import generated
from tests.support import tpcds
from tests.support.formats.iceberg_spark import metadata_file
from tests.support.tpch_queries import QUERIES as TPCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"
TPCH_TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
SORTED_BY = {"lineitem": "l_shipdate", "orders": "o_orderdate"}
KEYS = ("key", "_sk")  # endings of columns that get a bloom filter


@dataclass(frozen=True)
class Bench:
    """The tables and queries of a benchmark."""

    name: str
    rows: int  # of a row group
    tables: Mapping[str, pa.Table]
    queries: Mapping[int, str]


@dataclass(frozen=True)
class Line:
    """Row groups of one query's scans: all, those that Spark alone reads, and those with the index."""

    number: int
    all: int
    alone: int
    indexed: int


def tpch(directory: Path, factor: float = 0.05) -> Bench:
    """The tables as they are generated."""
    tables = {name: generated(directory, factor, name) for name in TPCH_TABLES}
    return Bench(f"TPC-H, scale factor {factor:g}", 1000, tables, TPCH)


def tpc_ds(directory: Path, every: int, factor: float = 0.01) -> Bench:
    """The tables as they are generated; each n-th query."""
    generator = tpcds.generator()
    if generator.python is None:
        raise click.ClickException(generator.reason)
    generator.generate(factor, directory)
    tables = {path.stem: pq.read_table(path) for path in sorted(directory.glob("*.parquet"))}
    queries = {number: query for number, query in tpcds.queries(directory).items() if number % every == 1 % every}
    return Bench(f"TPC-DS, scale factor {factor:g}", 500, tables, queries)


def by_date(bench: Bench) -> Bench:
    """The large tables by date, as a pipeline that loads day by day leaves them; others as they were generated."""
    tables = {}
    for name, data in bench.tables.items():
        date = date_column(name, data.column_names)
        tables[name] = data.sort_by(date) if date else data
    return replace(bench, tables=tables)


def date_column(table: str, columns: list[str]) -> str | None:
    """The column by which a pipeline would leave a table in order: of sales, returns, orders and their lines."""
    dates = [column for column in columns if column.endswith(("sold_date_sk", "returned_date_sk"))]
    return SORTED_BY.get(table) or (dates[0] if dates else None)


def keys_of(schema: pa.Schema) -> list[str]:
    """The columns that get a bloom filter."""
    return [field.name for field in schema if field.name.endswith(KEYS) and pa.types.is_integer(field.type)]


def write_rows(bench: Bench, directory: Path) -> None:
    """Write the tables, each as one file in a directory of its name."""
    for name, data in bench.tables.items():
        (directory / name).mkdir(parents=True)
        pq.write_table(data, directory / name / "a.parquet", row_group_size=bench.rows)


def write(bench: Bench, directory: Path, spark: SparkSession) -> None:
    """Write and index the tables, and name them in the session."""
    write_rows(bench, directory)
    for name, data in bench.tables.items():
        sec.build_index(sec.open_table(str(directory / name)), bloom=keys_of(data.schema))
        spark.read.parquet(str(directory / name)).createOrReplaceTempView(name)


def write_iceberg(bench: Bench, directory: Path, spark: SparkSession) -> None:
    """Write the tables of a directory as Iceberg tables with the same row groups, index them, and name them."""
    spark.conf.set(SWITCH, "false")
    exact = f"'write.parquet.row-group-check-min-record-count'='{bench.rows}', "
    exact += (
        f"'write.parquet.row-group-check-max-record-count'='{bench.rows}', 'write.parquet.row-group-size-bytes'='1'"
    )
    for name, data in bench.tables.items():
        table = f"lake.{directory.name}.{name}"
        spark.sql(
            f"CREATE TABLE {table} USING iceberg TBLPROPERTIES ({exact}) AS "
            f"SELECT /*+ COALESCE(1) */ * FROM parquet.`{directory / name}`"
        )
        sec.build_index(sec.open_table(metadata_file(spark, table)), bloom=keys_of(data.schema))
        spark.table(table).createOrReplaceTempView(name)


def measured(bench: Bench, spark: SparkSession) -> Iterator[Line]:
    """Run the queries both ways. Raises AssertionError if answers differ."""
    for number, query in bench.queries.items():
        runs = {}
        for switch in ("false", "true"):
            spark.conf.set(SWITCH, switch)
            frame = spark.sql(query)
            rows = sorted(map(repr, frame.collect()))
            runs[switch] = rows, list(rows_read(frame._jdf.queryExecution().executedPlan()))
        (theirs, alone), (ours, indexed) = runs["false"], runs["true"]
        if theirs != ours:
            raise AssertionError(f"query {number} of {bench.name} has other rows with pruning")
        everything = [bench.tables[name].num_rows for name, _ in alone]
        scans = (everything, *([rows for _, rows in read] for read in (alone, indexed)))
        yield Line(number, *(sum(-(-rows // bench.rows) for rows in counts) for counts in scans))


def rows_read(plan: Any) -> Iterator[tuple[str, int]]:
    """The tables that a plan scans, with the rows that left each scan."""
    for leaf in leaves(plan):
        kind = leaf.getClass().getSimpleName()
        if kind == "FileSourceScanExec":
            yield leaf.relation().location().rootPaths().head().getName(), rows_out(leaf)
        elif kind == "BatchScanExec":
            yield Path(leaf.table().name()).name.rpartition(".")[2], rows_out(leaf)


def leaves(plan: Any) -> Iterator[Any]:
    """The leaves of a plan in Spark's driver, and of its subqueries."""
    subqueries = plan.subqueriesAll()
    for tree in (plan, *(subqueries.apply(i) for i in range(subqueries.length()))):
        collected = tree.collectLeaves()
        yield from (collected.apply(i) for i in range(collected.length()))


def rows_out(leaf: Any) -> int:
    """The rows that left a scan that has run."""
    return int(leaf.metrics().apply("numOutputRows").value())


@click.command()
@click.option("--only", type=click.Choice(["tpch", "tpcds"]), multiple=True, default=["tpch", "tpcds"])
@click.option("--every", type=click.IntRange(min=1), default=3, show_default=True, help="Of TPC-DS, each n-th query.")
@click.option("--iceberg", is_flag=True, help="On Iceberg tables; the session has to have a runtime of Iceberg's.")
@click.option("--page", type=click.Path(path_type=Path), help="What is written, instead of docs/tpc[-iceberg].md.")
def main(only: tuple[str, ...], every: int, iceberg: bool, page: Path | None) -> None:
    """Measure all queries, and write the page."""
    parts = [introduction(**(ON_ICEBERG if iceberg else IN_DIRECTORIES))]
    with tempfile.TemporaryDirectory() as home, spark_session(Setting(Path(home))) as spark, enabled(spark, []):
        if iceberg and iceberg_trouble(spark):
            raise click.ClickException(iceberg_trouble(spark))
        spark.conf.set("spark.sql.adaptive.enabled", "false")  # so that a plan shows all of its scans
        for name in only:
            directory = Path(home) / name
            (directory / "made").mkdir(parents=True)
            bench = by_date(tpch(directory / "made") if name == "tpch" else tpc_ds(directory / "made", every))
            write(bench, directory, spark)
            if iceberg:
                write_iceberg(bench, directory, spark)
            parts.append(table_of(bench, list(measured(bench, spark))))
    page = page or DOCS / ("tpc-iceberg.md" if iceberg else "tpc.md")
    page.write_text("\n".join(parts))
    click.echo(f"{page} is written")


IN_DIRECTORIES = {
    "where": "",
    "alone": "Spark alone prunes by the bounds and dictionaries in the files, after it has opened each of them; "
    "with the index, files and row groups that cannot match are not opened.",
    "command": "python -m benchmarks.spark.tpc_sql",
}
ON_ICEBERG = {
    "where": " on Iceberg tables",
    "alone": "Iceberg alone prunes files by the bounds in its manifests, and row groups by those in the files; "
    "with the index, files and row groups that cannot match are not opened.",
    "command": "python -m benchmarks.spark.tpc_sql --iceberg",
}
INTRODUCTION = """Every query runs twice in one session, with `sec.enable(spark)` and with `SET
secateur.enabled=false`; the answers are equal. The tables count the row groups whose rows leave a scan, over all
scans of a query. {alone} The index has zone maps of all columns, and bloom filters of the keys. The two large tables
of TPC-H, and the sales and returns of TPC-DS, lie by date. Scans that are pruned by different values are different
scans: where Spark alone reads a small table once for several branches of a query, it may be read for each of them.
`{command}` writes this page."""


def introduction(where: str, alone: str, command: str) -> str:
    """The head of the page."""
    text = fill(INTRODUCTION.format(alone=alone, command=command), 120, break_on_hyphens=False)
    return f"# Row groups read by the queries of TPC-H and TPC-DS{where}\n\n{text}\n"


def table_of(bench: Bench, lines: list[Line]) -> str:
    """The results in Markdown."""
    rows = [f"| {line.number} | {line.all:,} | {line.alone:,} | {line.indexed:,} |" for line in lines]
    all_, alone, indexed = (sum(getattr(line, name) for line in lines) for name in ("all", "alone", "indexed"))
    return "\n".join(
        [
            f"## {bench.name}, row groups of {bench.rows:,} rows\n",
            "| query | row groups | Spark alone | with the index |",
            "|---|---|---|---|",
            *rows,
            f"| all | {all_:,} | {alone:,} | {indexed:,} |\n",
        ]
    )


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.spark.tpc_sql")
