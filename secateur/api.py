"""Opening tables and planning queries: the public functions that read."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur.errors import InvalidPredicate
from secateur.io.scan.planned_scan import ExecutorsFor, Settings, plan_scan
from secateur.io.tables.open import Moment, open_at
from secateur.io.tables.table import Table
from secateur.pruning.predicate.nodes import Predicate, Sql, Truth
from secateur.scan import Scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.spark.column.sql import Column
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.storage.list_files import FileSystem
    from secateur.io.tables.directory.table import ParquetDirectory
    from secateur.io.tables.iceberg.expressions import BooleanExpression
    from secateur.io.tables.iceberg.table import IcebergTable, PyIcebergTable

MOST_REMEMBERED = 2_000  # characters of a text whose nodes are kept
OWN_FUNCTION = "has_token"  # in text, which Spark is then to read as the tree prints it
DISABLE = "SECATEUR_DISABLE"  # an environment variable: set to 1, no index is used


def open_table(
    location: str | os.PathLike[str] | PyIcebergTable,
    *,
    catalog: object = None,
    snapshot_id: int | None = None,
    as_of: dt.datetime | str | None = None,
    ref: str | None = None,
    index_location: str | None = None,
    filesystem: FileSystem | None = None,
    schema: pa.Schema | None = None,
    freshness: float | dt.timedelta | None = None,
    disk_cache: DiskCache | None = None,
) -> ParquetDirectory | IcebergTable:
    """The table at a location: a directory of Parquet files, or an Iceberg table.

    A directory is a path, or a URI of a filesystem that pyarrow knows, or a path on `filesystem`; nested directories
    and Hive partitions are recognised. `schema` declares its columns; without it they come from the index and from the
    footers of files that it does not cover.

    An Iceberg table is an identifier (``"prod.db.events"``, by the catalogs that PyIceberg is configured with, or
    ``"db.events"`` with `catalog`: a catalog of PyIceberg, its name, or its properties), a metadata file, the table's
    directory without any catalog, or a table of PyIceberg. It is read at its current snapshot, or at `snapshot_id`, at
    what was current `as_of` a time (in UTC, if it names no zone), or at `ref`, a branch or a tag.

    The index is looked for in ``_secateur`` beside the data, or at `index_location`.

    Every query looks for what changed: it lists the directory, or asks for the current metadata. With `freshness`,
    seconds or a timedelta, the queries of this handle share what was found for so long, and see files that came, went
    or changed meanwhile that much later; a query that needs a file which is gone raises StalePlan, and the next one
    looks anew. A file of a directory that is overwritten in place with one of equal size is for so long pruned by what
    it held before: leave `freshness` out for tables where that happens. Builds and refreshes look anew in any case.

    What queries read of the index stays in memory, up to ``SECATEUR_MEMORY_BYTES`` for every table that is open (an
    environment variable; by default a quarter of the machine's memory, 4 GiB at most). Of an index that is not on a
    local disk, pieces are kept in `disk_cache` too, ready for use: by default in a directory that all processes of the
    user share (``SECATEUR_CACHE_DIR``, ``SECATEUR_CACHE_BYTES``; 0 for none).

    Raises TableNotFound, UnsupportedTable, UnknownSnapshot; ValueError for a negative freshness, for a time that is
    none, and for arguments that the table's format does not have.
    """
    return open_at(
        location,
        catalog,
        Moment(snapshot_id, as_of, ref),
        index_location=index_location,
        filesystem=filesystem,
        schema=schema,
        freshness=freshness,
        disk_cache=disk_cache,
    )


def prune(
    table: Table,
    predicate: str | Predicate | Column | BooleanExpression,
    *,
    limit: int | None = None,
    budget_ms: float | None = None,
    spark: SparkSession | None = None,
    prune_on: str = "auto",
    use_index: bool = True,
    strict: bool = False,
    session_time_zone: str | None = None,
    ansi: bool | None = None,
    case_sensitive: bool = False,
    audit: float | None = None,
) -> Scan:
    """The plan of a query: the blocks of the table's current snapshot that can hold a match.

    `predicate` is Spark SQL text, an expression on :func:`secateur.col`, a PySpark Column (of Spark Classic or of
    Connect), or an unbound expression of PyIceberg, which means what it means in Iceberg. `limit` asks for any so
    many matching rows. `session_time_zone` is that in which Spark would read the predicate's dates and timestamps:
    by default that of the active Spark session, else UTC. `ansi` says whether the predicate means what it means with
    ``spark.sql.ansi.enabled``: by default as the active session has it, else yes. `budget_ms` is the time for
    planning, in milliseconds: when it is spent, pruning stops, and what is not decided is kept. With `spark`, segments
    are pruned on its executors where many survive that are not in memory, or always (`prune_on="executors"`), or
    never (`"driver"`).

    Every matching row lies in a block of the plan: a block is left out only if a proof shows that no row of it makes
    the predicate TRUE. An index that is missing, stale or broken keeps blocks, and the report says so; with
    `strict` it raises IndexFault.

    With `audit`, a share in (0, 1], that share of the blocks that are left out, drawn by chance and at least one, is
    read here, and so are rows that pages rule out: a row that matches raises AuditFailed. The report says how many
    were read, and what only Spark could tell. A limit leaves out blocks that match; those are not audited.

    With `use_index=False`, or where the environment variable ``SECATEUR_DISABLE`` is 1, no index is looked at: blocks
    are pruned by the names of files, the table's own metadata, and footers.

    Raises InvalidPredicate, UnknownColumn, AmbiguousColumn, IncomparableLiteral, TableNotFound, InvalidParquet,
    AuditFailed; ValueError for arguments out of range.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"limit is {limit}; it must be 0 or more")
    if budget_ms is not None and not budget_ms >= 0:
        raise ValueError(f"budget_ms is {budget_ms}; it must be 0 or more")
    if prune_on not in ("auto", "driver", "executors") or (prune_on == "executors" and spark is None):
        raise ValueError(f"prune_on is 'auto', 'driver', or with spark= 'executors', not {prune_on!r}")
    if audit is not None and not 0 < audit <= 1:
        raise ValueError(f"audit is {audit}; it is the share of pruned blocks to read, more than 0 and at most 1")
    tree, sql = _read(predicate)
    settings = Settings(
        limit=limit,
        budget_ms=budget_ms,
        use_index=use_index and is_index_enabled(),
        strict=strict,
        session_time_zone=session_time_zone or _active_time_zone(),
        ansi=_is_active_ansi() if ansi is None else ansi,
        case_sensitive=case_sensitive,
        executors=None if spark is None else _executors_of(spark, prune_on),
        value_of=_value_of(),
    )
    plan = Scan.of(plan_scan(table, tree, sql, settings))
    return plan if audit is None else _audited(plan, tree, settings, audit)


def is_index_enabled() -> bool:
    """Whether the environment lets queries use an index."""
    return os.environ.get(DISABLE) != "1"


def _audited(plan: Scan, tree: Predicate, settings: Settings, share: float) -> Scan:
    """The plan, once blocks that it leaves out are proven: those that it would leave out without a limit."""
    from secateur.io.scan.audit import audited

    opened = plan.opened
    bound = settings.bind(tree, opened.binding_schema)
    if settings.limit is None:
        return Scan.of(audited(plan, bound, share))
    whole = plan_scan(opened.table, tree, plan.written, replace(settings, limit=None))
    return replace(plan, report=replace(plan.report, audit=audited(whole, bound, share).report.audit))


def aggregate(
    table: Table,
    aggregates: str,
    where: str | Predicate | Column | BooleanExpression | None = None,
    *,
    budget_ms: float | None = None,
    use_index: bool = True,
    strict: bool = False,
    session_time_zone: str | None = None,
    ansi: bool | None = None,
    case_sensitive: bool = False,
) -> pa.Table:
    """One row of aggregates over the table's current snapshot, from metadata where that is exact.

    `aggregates` is a list in Spark SQL of ``count(*)``, ``count(column)``, ``min(column)`` and ``max(column)``, fields
    of structs included; each gives a column that is named by its alias, or as it is written. `where` chooses the rows,
    and is a predicate in any of the forms of :func:`prune`, whose other arguments mean here what they mean there.

    The values are Spark's: NULLs are left out, NaN is the greatest, and of no rows a count is 0, and an extreme NULL.
    Read are the blocks of which statistics leave a count in doubt, and, for an extreme, those whose bound is better
    than the best value known, best bound first. The metadata of the result's schema has two counts as text:
    ``blocks_by_metadata``, the blocks of the plan that were not read, and ``blocks_read``.

    Raises InvalidAggregate, what :func:`prune` raises, and what reading raises: UnsupportedPredicate where only Spark
    can decide on the rows of a block, EvaluationError, StalePlan, InvalidParquet.
    """
    from secateur.io.scan.aggregate import aggregated, bound
    from secateur.pruning.predicate.parse_aggregates import parse_aggregates

    calls = parse_aggregates(aggregates)
    plan = prune(
        table,
        Truth(True) if where is None else where,
        budget_ms=budget_ms,
        use_index=use_index,
        strict=strict,
        session_time_zone=session_time_zone,
        ansi=ansi,
        case_sensitive=case_sensitive,
    )
    return aggregated(plan, bound(plan, calls, case_sensitive=case_sensitive))


def _executors_of(spark: SparkSession, place: str) -> ExecutorsFor:
    from secateur.io.spark.executors import SparkExecutors

    return lambda opened, faults: SparkExecutors(spark, opened.catalog, opened.table.store, faults, place)


def _read(predicate: object) -> tuple[Predicate, Sql]:
    """A predicate of any front end as nodes, and as what prints as the text that Spark is to read."""
    match predicate:
        case str():
            tree = _parsed(predicate) if len(predicate) <= MOST_REMEMBERED else _parse(predicate)
            return tree, tree if OWN_FUNCTION in predicate.lower() else predicate
        case Predicate():
            return predicate, predicate
        case _ if _is_a(predicate, "pyspark.sql.column", "Column"):
            from secateur.io.spark.column.sql import sql_of

            return _read(sql_of(predicate))  # type: ignore[arg-type]
        case _ if _is_a(predicate, "pyiceberg.expressions", "BooleanExpression"):
            from secateur.io.tables.iceberg.expressions import predicate_of

            return _read(predicate_of(predicate))  # type: ignore[arg-type]
        case _:
            raise InvalidPredicate(
                f"{predicate!r} is no predicate: use SQL text or a comparison on secateur.col(), "
                "a PySpark Column, or an expression of PyIceberg"
            )


@lru_cache(maxsize=256)
def _parsed(sql: str) -> Predicate:
    """The nodes of a predicate, which are values: a dashboard asks the same again and again."""
    return _parse(sql)


def _parse(sql: str) -> Predicate:
    from secateur.pruning.predicate.parse import parse  # sqlglot takes longer to import than a plan takes

    return parse(sql)


def _is_a(value: object, module: str, name: str) -> bool:
    """Whether a value is of a class of another library, which is not imported for the question."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def _value_of() -> Callable[[str, bool, str], pa.Scalar | None] | None:
    """What asks the active Spark session for values of constants, if this process uses Spark at all."""
    if "pyspark.sql" not in sys.modules:
        return None
    from secateur.io.spark.constants import value_of

    return value_of


def _active_time_zone() -> str:
    """The time zone of the active Spark session, if this process uses Spark at all."""
    if "pyspark.sql" not in sys.modules:
        return "UTC"
    from secateur.io.spark.to_spark import session_time_zone

    return session_time_zone()


def _is_active_ansi() -> bool:
    """Whether the active Spark session is in ANSI mode, if this process uses Spark at all."""
    if "pyspark.sql" not in sys.modules:
        return True
    from secateur.io.spark.to_spark import is_active_ansi

    return is_active_ansi()
