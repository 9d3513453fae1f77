"""Open the table that a Spark DataFrame reads whole: of Parquet files, by their directory or by the catalog's name."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql import DataFrame

from secateur.errors import UnsupportedTable
from secateur.io.spark.file_reader import arrow_schema
from secateur.io.spark.hadoop_locations import as_opened_here
from secateur.io.spark.named_table import open_named, options_of, require_plain
from secateur.io.tables.directory.table import open_registered
from secateur.io.tables.open import Moment

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.tables.delta.table import DeltaTable
    from secateur.io.tables.directory.table import ParquetDirectory
    from secateur.io.tables.hudi.table import HudiTable
    from secateur.io.tables.iceberg.table import IcebergTable

_GLOB = "pathglobfilter"
_HARMLESS = ("path", "paths", "mergeschema", "serialization.format")  # the files stay the same, and rows of a schema


def open_frame(
    frame: DataFrame,
    *,
    index_location: str | None,
    freshness: float | dt.timedelta | None,
    disk_cache: DiskCache | None,
) -> ParquetDirectory | IcebergTable | DeltaTable | HudiTable:
    """Open the table of a DataFrame that is nothing but a table, with the DataFrame's columns and the files of now.

    Raises UnsupportedTable for a query, a view, a read with options that choose other rows, a table of another format,
    and a DataFrame of Spark Connect, which does not tell what it reads.
    """
    if not hasattr(frame, "_jdf"):
        _refuse("a DataFrame that does not tell which table it reads, as those of Spark Connect")
    rest: dict[str, Any] = {"index_location": index_location, "freshness": freshness, "disk_cache": disk_cache}
    plan: Any = frame._jdf.queryExecution().analyzed()
    while _kind(plan) == "SubqueryAlias":  # a name in front of columns
        plan = plan.child()
    if _kind(plan) == "HiveTableRelation":
        return open_named(frame.sparkSession, plan.tableMeta().identifier().quotedString(), Moment(), **rest)
    if _kind(plan) != "LogicalRelation" or _kind(plan.relation()) != "HadoopFsRelation":
        _refuse(f"a DataFrame that is not a whole table of Parquet files ({_kind(plan)})")
    relation = plan.relation()
    if _kind(relation.fileFormat()) != "ParquetFileFormat":
        _refuse(f"a DataFrame of another format ({_kind(relation.fileFormat())})")
    options = options_of(frame.sparkSession, relation.options())
    if plan.catalogTable().isDefined():
        entry = plan.catalogTable().get()
        stored = options_of(frame.sparkSession, entry.storage().properties())
        _require_harmless({name: value for name, value in options.items() if stored.get(name) != value})
        return open_named(frame.sparkSession, entry.identifier().quotedString(), Moment(), **rest)
    glob = options.pop(_GLOB, None)
    _require_harmless(options)
    if _kind(relation.location()) != "InMemoryFileIndex":  # such as the files that a stream has committed
        _refuse(f"a DataFrame whose files are chosen by a {_kind(relation.location())}")
    roots = relation.location().rootPaths()
    if roots.size() != 1:
        _refuse(f"a DataFrame of {roots.size():,} places")
    require_plain("the DataFrame", frame.schema)
    location = as_opened_here(roots.head().toString())
    table = open_registered(location, arrow_schema(frame.schema), None, glob=glob, **rest)
    _require_inferred(table, list(relation.partitionSchema().fieldNames()))
    return table


def _require_inferred(table: ParquetDirectory, partitions: list[str]) -> None:
    """Raise UnsupportedTable where the partition columns of a frame are not those that directories tell by their names.

    A schema that is given to Spark, or its setting not to infer types, makes texts of numbers: "01" is then not "1".
    """
    if not partitions or table.declared_schema is None:
        return
    inferred = {field.name: field.type for field in table.fresh_listing(dt.UTC).partitions.fields}
    for name in partitions:
        if inferred.get(name) != table.declared_schema.field(name).type:
            _refuse(f"a DataFrame whose partition column {name} has another type than is inferred")


def _kind(node: Any) -> str:
    name: str = node.getClass().getSimpleName()
    return name


def _require_harmless(options: dict[str, str]) -> None:
    """Raise UnsupportedTable for an option of a read by which it may have other rows than its directory."""
    for name in options:
        if name not in _HARMLESS:
            _refuse(f"a DataFrame that is read with the option {name}")


def _refuse(what: str) -> NoReturn:
    raise UnsupportedTable(f"{what}: name the table by its path, or by open_table(name, spark=spark)")
