"""Open tables and plan queries: the public functions that read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur.front_ends import filled_text, read_order, read_predicate
from secateur.io.scan.planned_scan import ExecutorsFor, Settings
from secateur.io.scan.planning import plan_scan
from secateur.io.tables.open import Moment, as_table, open_at
from secateur.io.tables.table import Table
from secateur.plan_log import log_plan, log_read
from secateur.pruning.predicate.nodes import Predicate, SemiJoin, Truth
from secateur.pruning.reporters import add_reporter, listen_to_reads
from secateur.scan import Scan
from secateur.session_settings import is_index_enabled, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.spark.column.sql import Column
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.storage.list_files import FileSystem
    from secateur.io.tables.delta.table import DeltaTable
    from secateur.io.tables.directory.table import ParquetDirectory
    from secateur.io.tables.hudi.table import HudiTable
    from secateur.io.tables.iceberg.expressions import BooleanExpression
    from secateur.io.tables.iceberg.table import IcebergTable
    from secateur.io.tables.open import Source
    from secateur.keys import Keys, On

add_reporter(log_plan)
listen_to_reads(log_read)


def open_table(
    location: Source,
    *,
    spark: SparkSession | None = None,
    catalog: object = None,
    snapshot_id: int | None = None,
    version: int | None = None,
    as_of: dt.datetime | str | None = None,
    ref: str | None = None,
    read_optimized: bool = False,
    index_location: str | None = None,
    filesystem: FileSystem | None = None,
    schema: pa.Schema | None = None,
    freshness: float | dt.timedelta | None = None,
    disk_cache: DiskCache | None = None,
    glob: str | None = None,
) -> ParquetDirectory | IcebergTable | DeltaTable | HudiTable:
    """Open a table: Parquet files, an Iceberg table, a Delta table, or a Hudi table.

    A directory is a path, a URI of a filesystem that pyarrow knows, or a path on `filesystem`. Nested directories and
    Hive partitions are recognised. An Iceberg table is an identifier (``"prod.db.events"``, resolved by the catalogs
    configured for PyIceberg, or ``"db.events"`` with `catalog`), a metadata file, the table's directory without any
    catalog, or a PyIceberg table. A Delta table is a directory with a ``_delta_log``, or an open table of the library
    ``deltalake``, which is read at the version that it has loaded. A Hudi table is a directory with a ``.hoodie``. Some
    Parquet files are a table too: a list of them, a pattern (``"lake/2026-*/*.parquet"``; ``**`` is any directories),
    or a ``pyarrow.dataset``; their index lies at `index_location`. A Spark DataFrame (Spark Classic) is one if it reads
    a directory of Parquet files, or a table of the catalog in Parquet, whole.

    Parameters
    ----------
    location
        The table, as above; with `spark`, its name.
    spark
        A session whose catalog knows the table by the name `location`: ``"db.events"``,
        ``"spark_catalog.db.events"``. A table of Parquet files has the catalog's columns and partitions, wherever
        these lie, as in Spark; every listing asks the catalog. An Iceberg table is read at the catalog's metadata file.
        Views and tables of other providers raise UnsupportedTable.
    schema
        The columns of a directory. By default they come from the index, and from the footers of files it does not
        cover.
    catalog
        A PyIceberg catalog, its name, or its properties.
    snapshot_id, version, as_of, ref
        Read the Iceberg table at this snapshot, the Delta table at this version, the Hudi table at this instant, any of
        them as it was at this time (UTC if it names no zone), or the Iceberg table at this branch or tag. By default as
        it is now.
    read_optimized
        Read the base files of a Hudi table alone: the rows as of the last compactions. By default a table with rows in
        log files raises UnsupportedTable.
    index_location
        Where the index is; by default ``_secateur`` beside the data.
    glob
        Of a table of Parquet files, only the files whose names match, as with Spark's ``pathGlobFilter``:
        ``"*.parquet"``; ``*``, ``?``, ``[a-z]``, ``[^a-z]`` and ``{a,b}``. Directories are not asked.
    freshness
        Seconds, or a timedelta, for which the queries of this handle share one listing. By default every query lists
        the directory or fetches the current metadata. With it, queries see new, removed and changed files that much
        later; a query that needs a file which is gone raises StalePlan, and the next one lists again. A file of a
        directory that is overwritten in place with one of equal size is pruned by its former content for that long:
        leave `freshness` out for such tables. Builds and refreshes always list again.
    disk_cache
        Where chunks of a remote index are cached, ready for use; by default a directory that all processes of the user
        share (``SECATEUR_CACHE_DIR``, ``SECATEUR_CACHE_BYTES``; 0 for none). An index on a local disk needs none.

    Returns
    -------
    Table
        A handle. What its queries read of the index stays in memory, up to ``SECATEUR_MEMORY_BYTES`` for all open
        tables together (environment variable; default a quarter of the machine's memory, at most 4 GiB).

    Raises
    ------
    TableNotFound, UnsupportedTable, UnknownSnapshot
    ValueError
        For a negative `freshness`, an invalid time, and arguments that the table's format does not have.
    """
    if spark is not None:
        if (catalog, filesystem, schema, glob) != (None, None, None, None):
            raise ValueError("leave out catalog, filesystem, schema and glob: the session's catalog tells them")
        from secateur.io.spark.named_table import open_named

        return open_named(
            spark,
            str(location),
            Moment(snapshot_id, as_of, ref, version, read_optimized),
            index_location=index_location,
            freshness=freshness,
            disk_cache=disk_cache,
        )
    return open_at(
        location,
        catalog,
        Moment(snapshot_id, as_of, ref, version, read_optimized),
        index_location=index_location,
        filesystem=filesystem,
        schema=schema,
        freshness=freshness,
        disk_cache=disk_cache,
        glob=glob,
    )


def prune(
    table: Table | Source,
    predicate: str | Predicate | Column | BooleanExpression,
    *,
    params: Mapping[str, object] | Sequence[object] | None = None,
    keys: Keys | None = None,
    on: On | None = None,
    null_safe: bool = False,
    since: int | None = None,
    limit: int | None = None,
    order_by: str | Sequence[str] = (),
    budget_ms: float | None = None,
    spark: SparkSession | None = None,
    prune_on: str = "auto",
    use_index: bool = True,
    use_verdicts: bool = True,
    strict: bool = False,
    session_time_zone: str | None = None,
    ansi: bool | None = None,
    case_sensitive: bool = False,
    audit: float | None = None,
    glob: str | None = None,
) -> Scan:
    """Plan a query: find the blocks of the table's current snapshot that can hold a match.

    Parameters
    ----------
    predicate
        Spark SQL text, an expression on :func:`secateur.col`, a PySpark Column (Spark Classic or Connect), or an
        unbound PyIceberg expression, which keeps its meaning in Iceberg.
    params
        Values for the parameters in SQL text: a mapping for ``:name``, a list for ``?``, as in ``spark.sql(text,
        args)``. A list as a value stands for its elements, as in ``id IN (:ids)``.
    keys
        Also ask for rows whose values in the columns `on` equal one of these keys, as in a left semi join. Keys are a
        frame (Arrow, pandas, Polars, or anything with an Arrow stream; a Spark DataFrame), or for one column a list or
        array. They are compared as Spark's join would compare them.
    on
        The columns to compare the keys with: a name, several, or a mapping of the table's names to those of the keys.
    null_safe
        Whether a NULL among the keys equals NULL, as with ``<=>``; else it equals nothing.
    since
        Ask only for rows of files that came after this snapshot: the id of an Iceberg snapshot, a Delta version, or the
        number of an index snapshot of a directory; ``plan.snapshot`` of the plan before. What counts as new where files
        were overwritten, deleted from or compacted: docs/semantics.md, "What came after a snapshot".
    limit
        Return any `limit` matching rows instead of all, or the first ones of `order_by`.
    order_by
        Columns to order by, as in Spark's ORDER BY: ``["ts DESC NULLS LAST", "id"]``. NULL is the least value unless
        the text says otherwise: first with ASC, last with DESC. It needs a limit. Equal rows come in any
        order, as in Spark.
    session_time_zone
        The zone in which Spark would read the predicate's dates and timestamps; by default that of the active Spark
        session, else UTC.
    ansi
        Whether ``spark.sql.ansi.enabled`` applies to the predicate; by default as in the active session, else yes.
    budget_ms
        Time for planning in milliseconds. When it is spent, pruning stops and everything undecided is kept.
    spark, prune_on
        With `spark`, segments are pruned on its executors if many that survive are not in memory, always
        (``"executors"``), or never (``"driver"``).
    strict
        Raise IndexFault if the index is missing, stale or broken, instead of keeping blocks and reporting it.
    audit
        A share in (0, 1]. That share of the pruned blocks, drawn at random and at least one, is read here, as are rows
        that pages rule out; a matching row raises AuditFailed. The report says how many blocks were read, and what only
        Spark could evaluate. Matching blocks that a limit leaves out are not audited.
    use_index
        If False, or if the environment variable ``SECATEUR_DISABLE`` is 1, no index is read: blocks are pruned by file
        names, the table's own metadata, and footers, but not by what earlier reads found.
    use_verdicts
        If False, the plan does not use what earlier reads found, in this process or in those that share
        ``SECATEUR_VERDICT_DIR``, and leaves nothing to later ones; nor is it answered from kept answers
        (``SECATEUR_ANSWER_BYTES``). The environment variable ``SECATEUR_VERDICT_BYTES=0`` has the same effect on all
        plans. See docs/semantics.md, "What earlier reads found".
    glob
        Only files whose names match, as of :func:`open_table`, for a `table` that is a location.

    Returns
    -------
    Scan
        The plan.

    Raises
    ------
    InvalidPredicate, InvalidOrder, UnknownColumn, AmbiguousColumn, IncomparableLiteral, TableNotFound, InvalidParquet
    UnknownSnapshot
        If there is no snapshot `since`, it is no ancestor of the one that is read, or those between are gone.
    MixedRewrite
        If a compaction after `since` has put older and newer rows into one file; the message says how to read them.
    AuditFailed
        If an audit finds a match in a pruned block.
    ValueError
        For arguments out of range, and an order without a limit.

    Soundness
    ---------
    Every matching row lies in a block of the plan: a block is pruned only with a proof that no row of it makes the
    predicate TRUE, or under `order_by` that none of its rows is among the first. A missing, stale or broken index keeps
    blocks.
    """
    table = as_table(table, glob)
    if limit is not None and limit < 0:
        raise ValueError(f"limit is {limit}; it must be 0 or more")
    if budget_ms is not None and not budget_ms >= 0:
        raise ValueError(f"budget_ms is {budget_ms}; it must be 0 or more")
    if prune_on not in ("auto", "driver", "executors") or (prune_on == "executors" and spark is None):
        raise ValueError(f"prune_on is 'auto', 'driver', or with spark= 'executors', not {prune_on!r}")
    if audit is not None and not 0 < audit <= 1:
        raise ValueError(f"audit is {audit}; it is the share of pruned blocks to read, more than 0 and at most 1")
    if keys is None and (on is not None or null_safe):
        raise ValueError("on and null_safe are about keys: pass keys=")
    order = read_order([order_by] if isinstance(order_by, str) else order_by)
    if order and limit is None:
        raise ValueError("order_by needs a limit: plan without an order, and let Spark sort all rows")
    tree, sql = read_predicate(predicate if params is None else filled_text(predicate, params))
    settings = replace(
        session_settings(session_time_zone, ansi),
        since=since,
        limit=limit,
        order_by=order,
        budget_ms=budget_ms,
        use_index=use_index and is_index_enabled(),
        use_verdicts=use_verdicts and use_index and is_index_enabled(),
        strict=strict,
        case_sensitive=case_sensitive,
        executors=None if spark is None else _executors_of(spark, prune_on),
        semi_join=None if keys is None else _semi_join(keys, on, null_safe),
    )
    plan = Scan.of(plan_scan(table, tree, sql, settings))
    return plan if audit is None else _audited(plan, tree, settings, audit)


def _audited(plan: Scan, tree: Predicate, settings: Settings, share: float) -> Scan:
    """Return the plan after reading a share of its pruned blocks, as pruned without a limit."""
    from secateur.io.scan.audit import audited

    opened = plan.opened
    bound = settings.bind(tree, opened.binding_schema)
    if settings.limit is None:
        return Scan.of(audited(plan, bound, share))
    whole = plan_scan(opened.table, tree, plan.written, replace(settings, limit=None, order_by=()))
    return replace(plan, report=replace(plan.report, audit=audited(whole, bound, share).report.audit))


def aggregate(
    table: Table | Source,
    aggregates: str,
    where: str | Predicate | Column | BooleanExpression | None = None,
    *,
    group_by: str | Sequence[str] = (),
    params: Mapping[str, object] | Sequence[object] | None = None,
    since: int | None = None,
    budget_ms: float | None = None,
    use_index: bool = True,
    strict: bool = False,
    session_time_zone: str | None = None,
    ansi: bool | None = None,
    case_sensitive: bool = False,
) -> pa.Table:
    """Compute aggregates over the table's current snapshot, from metadata where that is exact.

    It reads the blocks whose statistics leave a count or a sum in doubt, and, for a minimum or maximum, the blocks
    whose bound is better than the best value known, best bound first. With `group_by` it also reads the blocks that may
    hold rows of several groups.

    Parameters
    ----------
    aggregates
        A Spark SQL list of ``count(*)``, ``count(column)``, ``count(DISTINCT column)``, ``min(column)``,
        ``max(column)``, and of integers and decimals ``sum(column)`` and ``avg(column)``, whose sums an index may keep
        (`sums` of :func:`build_index`); fields of structs are allowed. Each gives a column named by its alias, or as it
        is written.
    where
        The predicate that selects the rows, in any form that :func:`prune` takes. The other arguments are those of
        :func:`prune`.
    group_by
        Columns, such as ``"country, status"`` or a list: one row for each combination of their values. Costs no reading
        for partition columns, and where a block holds one value only.

    Returns
    -------
    pyarrow.Table
        One row with the values Spark would give: NULLs are ignored, NaN is the greatest value, and over no rows a count
        is 0 and everything else NULL. With `group_by`, a row for every group that has rows, ordered by the values
        of its columns, which come first; NULL is a group, and sorts before the others. The schema metadata has two
        counts as text: ``blocks_by_metadata``, the blocks of the plan that were not read, and ``blocks_read``.

    Raises
    ------
    InvalidAggregate
        And whatever :func:`prune` raises.
    UnsupportedPredicate
        If only Spark can evaluate the predicate on the rows of a block.
    EvaluationError
        For a sum that overflows its type, and from reading blocks.
    StalePlan, InvalidParquet
        From reading blocks.
    """
    from secateur.io.scan.aggregate import aggregated, bound, bound_groups, grouped
    from secateur.pruning.predicate.sql.aggregates import parse_aggregates, parse_groups

    calls = parse_aggregates(aggregates)
    groups = parse_groups([group_by] if isinstance(group_by, str) else group_by)
    plan = prune(
        table,
        Truth(True) if where is None else where,
        params=params,
        since=since,
        budget_ms=budget_ms,
        use_index=use_index,
        strict=strict,
        session_time_zone=session_time_zone,
        ansi=ansi,
        case_sensitive=case_sensitive,
    )
    asked = bound(plan, calls, case_sensitive=case_sensitive)
    by = bound_groups(plan, groups, case_sensitive=case_sensitive)
    return grouped(plan, asked, by) if by else aggregated(plan, asked)


def _semi_join(keys: Keys, on: On | None, null_safe: bool) -> SemiJoin:
    from secateur.keys import semi_join

    return semi_join(keys, on, null_safe=null_safe)


def _executors_of(spark: SparkSession, place: str) -> ExecutorsFor:
    from secateur.io.spark.executors import SparkExecutors

    return lambda opened, faults: SparkExecutors(spark, opened.catalog, opened.table.store, faults, place)
