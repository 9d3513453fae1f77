"""Join keys and Spark: those that a DataFrame has, and the semi join that makes a read exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, col, expr
from pyspark.sql.types import StringType, StructField, StructType

from secateur.errors import UnsupportedPredicate
from secateur.index.build.spark_calls import arrow_of, frame_of
from secateur.index.build.spark_tasks import require_package
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark.file_reader import spark_schema
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.joins.join_keys import JoinKeys, ManyKeys
from secateur.pruning.predicate.joins.key_covers import Intervals, covering
from secateur.pruning.predicate.joins.semi_join import cast_rows
from secateur.pruning.predicate.nodes import quoted_name
from secateur.values.kinds import kind_of

MOST_KEYS = 1_000_000  # distinct ones that are collected
BROADCAST_BYTES = 64 << 20
MOST_INTERVALS = 10_000  # of a column
MOST_SPANS = 64  # batches whose intervals are merged at once


def keys_of_frame(frame: DataFrame, names: Sequence[str], *, null_safe: bool) -> JoinKeys | ManyKeys:
    """Return the distinct keys in columns of a DataFrame, or if there are more than MOST_KEYS, intervals around them.

    Spark computes either. The columns of the keys are called by their positions in `names`. Raises UnsupportedPredicate
    for texts with a collation: of those that are equal by it, DISTINCT keeps one, and rows of the others would be lost.
    """
    chosen = frame.select(*(col(quoted_name(name)).alias(str(i)) for i, name in enumerate(names))).distinct()
    collated = [name for name, field in zip(names, chosen.schema.fields, strict=True) if _has_collation(field)]
    if collated:
        raise UnsupportedPredicate(
            f"{', '.join(collated)} of the keys has a collation: to compare bytes, cast to STRING COLLATE UTF8_BINARY"
        )
    keys = arrow_of(chosen.limit(MOST_KEYS + 1))
    if keys.num_rows <= MOST_KEYS:
        return JoinKeys(keys, null_safe)
    intervals = (None if kind_of(key.type) is None else _intervals(chosen, key.name) for key in keys.schema)
    return ManyKeys(tuple(intervals), null_safe, chosen)


def _has_collation(field: StructField) -> bool:
    """Return whether texts that differ may be equal."""
    return isinstance(field.dataType, StringType) and field.dataType != StringType()


def _intervals(keys: DataFrame, name: str) -> pa.Table:
    """Return intervals that hold all keys of a column, with the widest gaps between them, computed by Spark's tasks."""
    require_package(keys.sparkSession)
    column = keys.select(col(name)).where(col(name).isNotNull())
    type_, most = column.schema[0].dataType, MOST_INTERVALS
    schema = StructType([StructField("first", type_), StructField("last", type_)])

    def covered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spans: list[Intervals] = []
        for batch in batches:
            spans.append(covering(batch.column(0), batch.column(0), most))
            if len(spans) == MOST_SPANS:
                spans = [_merged(spans, most)]
        if spans:
            yield pa.RecordBatch.from_arrays([*_merged(spans, most)], ["first", "last"])

    intervals = arrow_of(column.mapInArrow(covered, schema)).combine_chunks()
    first, last = (values.chunk(0) if values.num_chunks else values.combine_chunks() for values in intervals.columns)
    return pa.table([*covering(first, last, most)], ["first", "last"])


def _merged(spans: Sequence[Intervals], most: int) -> Intervals:
    first, last = (pa.concat_arrays(side) for side in zip(*spans, strict=True))
    return covering(first, last, most)


def semi_joined(scan: PlannedScan, rows: DataFrame) -> DataFrame:
    """Return the rows whose values equal those of one of the scan's keys, as a left semi join."""
    join = scan.origin.settings.semi_join
    if join is None:
        return rows
    settings = scan.origin.settings
    binder = Binder(
        scan.opened.binding_schema, known_zone(scan.session_time_zone), settings.case_sensitive, settings.ansi
    )
    fields = [resolve(column, binder) for column in join.columns]
    names = [f"key {i}" for i in range(len(fields))]
    keys = _frame_of(fields, join.keys, binder, rows.sparkSession).toDF(*names)
    equal = "<=>" if join.keys.null_safe else "="
    condition = " AND ".join(
        f"{'.'.join(map(quoted_name, field.path))} {equal} {quoted_name(name)}"
        for field, name in zip(fields, names, strict=True)
    )
    return rows.join(keys, expr(condition), "left_semi")


def _frame_of(fields: Sequence[Field], keys: JoinKeys | ManyKeys, binder: Binder, spark: SparkSession) -> DataFrame:
    """Return keys as a DataFrame; collected ones have the types of their columns, so that Spark casts nothing."""
    if isinstance(keys, ManyKeys):
        if not isinstance(keys.frame, DataFrame):
            raise UnsupportedPredicate("the keys were too many to be pickled with the plan: plan again in this process")
        return keys.frame
    table = pa.table(cast_rows(fields, keys, binder), [str(i) for i in range(len(fields))])
    if not table.num_rows:
        return spark.createDataFrame([], spark_schema(table.schema))
    frame = frame_of(spark, table, spark_schema(table.schema))
    return broadcast(frame) if table.nbytes <= BROADCAST_BYTES else frame
