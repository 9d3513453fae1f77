"""Open the table that a Spark DataFrame reads whole.

The DataFrame names it: a directory of Parquet files, an entry of Spark's catalog, Iceberg's own object, or Delta's log.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pyspark.sql import DataFrame

from secateur.errors import UnsupportedTable
from secateur.io.spark.file_reader import arrow_schema
from secateur.io.spark.hadoop_locations import as_opened_here
from secateur.io.spark.named_table import current_metadata, open_named, options_of, require_plain
from secateur.io.tables.delta.table import DeltaTable
from secateur.io.tables.directory.table import open_registered
from secateur.io.tables.open import Moment, open_at, open_iceberg_by

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.tables.directory.table import ParquetDirectory
    from secateur.io.tables.hudi.table import HudiTable
    from secateur.io.tables.iceberg.table import IcebergTable

_Table = TypeVar("_Table", "IcebergTable", DeltaTable)
_ICEBERG = "org.apache.iceberg.spark.source.SparkTable"
_TIME_TRAVEL = "timeTravel"  # a field of it, since Iceberg's runtime for Spark 4.1
_OF_VERSIONS = ("versionasof", "timestampasof")  # options whose version Delta tells
_FILES = "HadoopFsRelation"
_GLOB = "pathglobfilter"
_HARMLESS = (  # the files stay the same, and rows of a schema
    *("path", "paths", "mergeschema", "serialization.format"),
    "partitionoverwritemode",  # of writes, which Spark gives to Hive's tables
)


def open_frame(
    frame: DataFrame,
    *,
    index_location: str | None,
    freshness: float | dt.timedelta | None,
    disk_cache: DiskCache | None,
) -> ParquetDirectory | IcebergTable | DeltaTable | HudiTable:
    """Open the table of a DataFrame that is nothing but a table, with the DataFrame's columns and the files of now.

    Of Iceberg and Delta the DataFrame also tells the snapshot, if it names one. Raises UnsupportedTable for a query, a
    view, a read with options that choose other rows, a table of another format, and a DataFrame of Spark Connect, which
    does not tell what it reads.
    """
    if not hasattr(frame, "_jdf"):
        _refuse("a DataFrame that does not tell which table it reads, as those of Spark Connect")
    rest: dict[str, Any] = {"index_location": index_location, "freshness": freshness, "disk_cache": disk_cache}
    plan: Any = frame._jdf.queryExecution().analyzed()
    while _kind(plan) == "SubqueryAlias" or (_kind(plan) == "Project" and plan.output().equals(plan.child().output())):
        plan = plan.child()  # it names columns, or all of them
    if _kind(plan) == "HiveTableRelation":
        return open_named(frame.sparkSession, plan.tableMeta().identifier().quotedString(), Moment(), **rest)
    if _kind(plan) == "DataSourceV2Relation":
        return _of_columns(_of_iceberg(frame, plan, rest), frame)
    if _kind(plan) != "LogicalRelation" or not _is_of_files(plan.relation()):
        _refuse(f"a DataFrame that is not a whole table of files ({_kind(plan)})")
    relation = plan.relation()
    options = options_of(frame.sparkSession, relation.options())
    file_format = _kind(relation.fileFormat())
    if file_format == "DeltaParquetFileFormat":
        return _of_columns(_of_delta(relation, options, rest), frame)
    if file_format != "ParquetFileFormat":
        _refuse(f"a DataFrame of another format ({file_format})")
    return _of_parquet(frame, plan, options, rest)


# ---- Parquet files ---------------------------------------------------------------------------------------------------


def _of_parquet(
    frame: DataFrame, plan: Any, options: dict[str, str], rest: dict[str, Any]
) -> ParquetDirectory | IcebergTable | DeltaTable | HudiTable:
    relation = plan.relation()
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


# ---- Iceberg and Delta -----------------------------------------------------------------------------------------------


def _of_iceberg(frame: DataFrame, relation: Any, rest: dict[str, Any]) -> IcebergTable:
    """Open the table of a relation by the object that Iceberg's catalog has given to Spark."""
    table = relation.table()
    if table.getClass().getName() != _ICEBERG or _kind(table.table()) != "BaseTable":
        _refuse(f"a DataFrame of another format ({_kind(table)} {table.name()})")
    options = relation.options().asCaseSensitiveMap()
    _require_harmless({str(name).lower(): "" for name in options})
    if table.branch() is not None:
        _refuse(f"a DataFrame of the branch {table.branch()}")
    moment = Moment(snapshot_id=table.snapshotId()) if _is_chosen(table) else Moment()
    opened = open_iceberg_by(partial(current_metadata, table.table()), moment, **rest)
    name = _name_of(frame, relation)
    return opened if name is None else replace(opened, identifier=name)


def _is_chosen(table: Any) -> bool:
    """Return whether the table is to be read as of another time than now; later runtimes always tell a snapshot."""
    names = [field.getName() for field in table.getClass().getDeclaredFields()]
    if _TIME_TRAVEL not in names:
        return table.snapshotId() is not None
    field = table.getClass().getDeclaredField(_TIME_TRAVEL)
    field.setAccessible(True)
    return field.get(table) is not None


def _name_of(frame: DataFrame, relation: Any) -> tuple[str, ...] | None:
    """Return the name by which the session's catalogs have a relation; None for one that is read by its location."""
    if relation.catalog().isEmpty() or relation.identifier().isEmpty():
        return None
    catalog, identifier = relation.catalog().get().name(), relation.identifier().get()
    if (
        _kind(identifier) != "IdentifierImpl"
        or frame.sparkSession.conf.get(f"spark.sql.catalog.{catalog}", None) is None
    ):
        return None
    return catalog, *identifier.namespace(), identifier.name()


def _of_delta(relation: Any, options: dict[str, str], rest: dict[str, Any]) -> DeltaTable:
    files = relation.location()
    if _kind(files) != "TahoeLogFileIndex":
        _refuse(f"a DataFrame whose files are chosen by a {_kind(files)}")
    if files.partitionFilters().nonEmpty():
        _refuse("a DataFrame of some partitions of a Delta table")
    _require_harmless({name: value for name, value in options.items() if name not in _OF_VERSIONS})
    moment = Moment(version=files.version()) if files.isTimeTravelQuery() else Moment()
    table = open_at(as_opened_here(files.path().toString()), None, moment, filesystem=None, schema=None, **rest)
    assert isinstance(table, DeltaTable), "its log is there"
    return table


def _of_columns(table: _Table, frame: DataFrame) -> _Table:
    """Return the table. Raises UnsupportedTable where its columns of now are not those of the DataFrame."""
    columns = table.snapshot().declared_schema.names
    if columns != frame.columns:
        _refuse(f"a DataFrame of the columns {', '.join(frame.columns)}, where the table has {', '.join(columns)}")
    return table


def _is_of_files(relation: Any) -> bool:
    """Return whether a relation is one of files, or Delta's, which can be written to as well."""
    return _FILES in (_kind(relation), str(relation.getClass().getSuperclass().getSimpleName()))


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
