"""Open the table that Spark's catalog knows by a name: of Parquet files, of Iceberg, of Delta, or of Hudi.

The catalog tells provider, location, schema and partitions; files and metadata are read here, and not by Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from secateur.errors import TableNotFound, UnsupportedTable
from secateur.io.spark.file_reader import arrow_schema
from secateur.io.spark.hadoop_locations import as_opened_here
from secateur.io.storage.locations import FileSystems
from secateur.io.tables.directory.hive_partitions import DEFAULT_PARTITION
from secateur.io.tables.directory.registered import Registered, RegisteredPartitions
from secateur.io.tables.directory.table import open_registered
from secateur.io.tables.open import Moment, open_at, open_iceberg_by
from secateur.pruning.predicate.expressions import split_name

if TYPE_CHECKING:
    import datetime as dt

    from pyspark.sql.types import StructType

    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.tables.delta.table import DeltaTable
    from secateur.io.tables.directory.table import ParquetDirectory
    from secateur.io.tables.hudi.table import HudiTable
    from secateur.io.tables.iceberg.table import IcebergTable

_DETAILS = "# Detailed Table Information"
_PART = re.compile(r"`(?:[^`]|``)+`|[^\s`.]+")
_NAME = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_COLLATIONS, _DEFAULT = '"__COLLATIONS"', '"EXISTS_DEFAULT"'  # metadata of columns
_CHOOSING = re.compile(
    r"\b(modifiedBefore|modifiedAfter|recursiveFileLookup|ignoreCorruptFiles|ignoreMissingFiles)=", re.IGNORECASE
)
_GLOB = "pathglobfilter"  # in any case
_HIVE_PARQUET = "ParquetHiveSerDe"  # of Hive's tables, which Spark reads by its own reader


@dataclass(frozen=True)
class CatalogEntry:
    """What Spark's catalog says of a table."""

    name: str  # with its parts in backticks
    details: Mapping[str, str]

    @property
    def provider(self) -> str:
        """The table's format, in lower case; ``view`` for views."""
        if "VIEW" in self.details.get("Type", "VIEW"):  # a temporary view has no type
            return "view"
        provider = self.details.get("Provider", "").lower()
        return "parquet" if provider == "hive" and _HIVE_PARQUET in self.details.get("Serde Library", "") else provider

    @property
    def location(self) -> str:
        """Where it is. Raises UnsupportedTable if it has no location."""
        location = self.details.get("Location")
        if not location:
            raise UnsupportedTable(f"Spark's catalog tells no location of {self.name}")
        return as_opened_here(location)

    @property
    def has_partitions(self) -> bool:
        """Whether the catalog, and not the directories, says which partitions there are."""
        return self.details.get("Partition Provider", "").lower() == "catalog"


def open_named(
    spark: SparkSession,
    name: str,
    moment: Moment,
    *,
    index_location: str | None,
    freshness: float | dt.timedelta | None,
    disk_cache: DiskCache | None,
) -> ParquetDirectory | IcebergTable | DeltaTable | HudiTable:
    """Open a table by its name in Spark's catalog; see :func:`secateur.open_table`.

    Raises TableNotFound, UnsupportedTable for views and tables of other providers, by name.
    """
    entry = catalog_entry(spark, name)
    rest: dict[str, Any] = {"index_location": index_location, "freshness": freshness, "disk_cache": disk_cache}
    match entry.provider:
        case "parquet":
            if moment != Moment():
                raise ValueError(f"{name} is a table of Parquet files, which has no snapshots to choose from")
            return _of_parquet(spark, entry, rest)
        case "delta" | "hudi":
            return open_at(entry.location, None, moment, filesystem=None, schema=None, **rest)
        case "iceberg":
            opened = open_iceberg_by(_iceberg_source(spark, entry), moment, **rest)
            return replace(opened, identifier=_whole_name(spark, entry))
        case "view":
            raise UnsupportedTable(f"{name} is a view: open the tables that it reads")
        case other:
            raise UnsupportedTable(f"{name} is a table of {other or 'an unknown provider'}, which cannot be read here")


def catalog_entry(spark: SparkSession, name: str) -> CatalogEntry:
    """Look a name up. Raises TableNotFound."""
    quoted = _quoted(name)
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect()
    except (AnalysisException, ParseException) as error:
        raise TableNotFound(f"Spark's catalog has no table {name}: {str(error).splitlines()[0]}") from None
    names = [row["col_name"] for row in rows]
    begin = len(names) - names[::-1].index(_DETAILS) if _DETAILS in names else len(names)
    return CatalogEntry(quoted, {row["col_name"]: row["data_type"] for row in rows[begin:]})


def _quoted(name: str) -> str:
    """Return a name with all of its parts in backticks. Raises TableNotFound for what is no name."""
    if not _NAME.fullmatch(name):
        raise TableNotFound(f"Spark's catalog has no table {name}: that is no name")
    return ".".join(part if part.startswith("`") else f"`{part}`" for part in _PART.findall(name))


# ---- Parquet files ---------------------------------------------------------------------------------------------------


def _of_parquet(spark: SparkSession, entry: CatalogEntry, rest: dict[str, Any]) -> ParquetDirectory:
    glob = _glob(spark, entry)
    columns = spark.table(entry.name).schema
    require_plain(entry.name, columns)
    schema = arrow_schema(columns)
    return open_registered(entry.location, schema, _partitions(spark, entry, schema), glob=glob, **rest)


def _glob(spark: SparkSession, entry: CatalogEntry) -> str | None:
    """Return the glob by which Spark chooses a table's files; None for all.

    Raises UnsupportedTable for other options by which it leaves out files or finds more, and on Spark Connect for a
    glob, which there is one text with the other options.
    """
    options = entry.details.get("Storage Properties", "")
    other = _CHOOSING.search(options)
    if other is None and _GLOB not in options.lower():
        return None
    if other is None and hasattr(spark, "_jsparkSession"):
        catalog = spark._jsparkSession.sharedState().externalCatalog()
        stored = catalog.getTable(entry.details["Database"], entry.details["Table"]).storage().properties()
        return options_of(spark, stored).get(_GLOB)
    raise UnsupportedTable(
        f"{entry.name} has the option {other[1] if other else 'pathGlobFilter'}, by which Spark chooses its files, and "
        "which is not read by the table's name: open its directory, if need be with glob="
    )


def require_plain(name: str, columns: StructType) -> None:
    """Raise UnsupportedTable for columns with a collation, or with a default that files written before it lack."""
    schema = columns.json()
    for lacking, sign in (("a collation", _COLLATIONS), ("a default for older files", _DEFAULT)):
        if sign in schema:
            raise UnsupportedTable(f"{name} has a column with {lacking}, which is not read by the table's name")


def _partitions(spark: SparkSession, entry: CatalogEntry, schema: pa.Schema) -> RegisteredPartitions | None:
    """Return the layout of a table whose partitions the catalog has; None if its directories tell them.

    Raises UnsupportedTable on Spark Connect.
    """
    columns = [column.name for column in spark.catalog.listColumns(entry.name) if column.isPartition]
    if not columns or not entry.has_partitions:
        return None
    if not hasattr(spark, "_jsparkSession"):
        raise UnsupportedTable(
            f"the partitions of {entry.name} are in the catalog, which Spark Connect does not tell: open its directory"
        )
    listed = partial(_registered, spark, entry, columns)
    return RegisteredPartitions(listed, tuple(schema.field(name) for name in columns), FileSystems())


def _registered(spark: SparkSession, entry: CatalogEntry, columns: list[str]) -> Registered:
    """Ask the catalog for all partitions, which one call encodes: Py4J needs a millisecond for every object."""
    jvm: Any = spark._jvm
    catalog = spark._jsparkSession.sharedState().externalCatalog()
    partitions = catalog.listPartitions(entry.details["Database"], entry.details["Table"], jvm.scala.Option.empty())
    parsed = _as_json(spark, partitions)
    folders = [_folder(unquote(partition["storage"]["locationUri"]), entry.location) for partition in parsed]
    values = [pa.array([_value(partition["spec"][name]) for partition in parsed], pa.string()) for name in columns]
    return Registered(pa.array(folders, pa.string()), pa.StructArray.from_arrays(values, names=columns))


def options_of(spark: SparkSession, options: Any) -> dict[str, str]:
    """Return options, a map of Scala's, by their names in lower case."""
    return {name.lower(): value for name, value in _as_json(spark, options).items()}


def _as_json(spark: SparkSession, collection: Any) -> Any:
    """Return a collection of Scala's."""
    jvm: Any = spark._jvm
    mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
    mapper.registerModule(jvm.com.fasterxml.jackson.module.scala.DefaultScalaModule())
    return json.loads(mapper.writeValueAsString(collection))


def _folder(location: str, table: str) -> str:
    """Return a partition's place below the table, or its whole location if it lies elsewhere."""
    path = as_opened_here(location)
    return path.removeprefix(f"{table}/")


def _value(text: str | None) -> str | None:
    return None if text == DEFAULT_PARTITION else text


# ---- Iceberg ---------------------------------------------------------------------------------------------------------


def _iceberg_source(spark: SparkSession, entry: CatalogEntry) -> Callable[[], str]:
    """Return a function that asks Spark's catalog for the table's current metadata file.

    On Spark Connect, and without a session of Iceberg's runtime, it is looked for in the table's directory.
    """
    if not hasattr(spark, "_jsparkSession"):
        return lambda: entry.location
    return partial(_metadata_file, spark, entry.name)


def _whole_name(spark: SparkSession, entry: CatalogEntry) -> tuple[str, ...]:
    """Return a table's name with the catalog's, which is the session's current one if the name begins with none."""
    parts = split_name(entry.name)
    if len(parts) > 1 and spark.conf.get(f"spark.sql.catalog.{parts[0]}", None) is not None:
        return parts
    database = (spark.catalog.currentDatabase(),) if len(parts) == 1 else ()
    return spark.catalog.currentCatalog(), *database, *parts


def _metadata_file(spark: SparkSession, name: str) -> str:
    jvm: Any = spark._jvm
    return current_metadata(jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name))


def current_metadata(table: Any) -> str:
    """Return where the metadata file of an object of Iceberg's is now."""
    table.refresh()
    return as_opened_here(str(table.operations().current().metadataFileLocation()))
