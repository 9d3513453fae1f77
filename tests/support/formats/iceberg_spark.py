"""Iceberg's Java API in the tests' Spark session: the tasks of a scan, and equality deletes.

Spark reads equality deletes, but never writes them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from secateur.io.spark.iceberg.task_json import DataFile, DeleteFile, ReadTask, Spec, byte_ranges, spec_of


def java_table(spark: SparkSession, name: str) -> Any:
    """Iceberg's Java object of a table, as Spark's catalog has it: ``lake.db.events``."""
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)


def location(spark: SparkSession, name: str) -> str:
    """The directory of a table."""
    return str(java_table(spark, name).location()).removeprefix("file:")


def uuid_of(spark: SparkSession, name: str) -> str:
    return str(java_table(spark, name).uuid().toString())


def metadata_file(spark: SparkSession, name: str) -> str:
    return str(java_table(spark, name).operations().current().metadataFileLocation())


def add_equality_deletes(
    spark: SparkSession,
    name: str,
    rows: pa.Table,
    *,
    partition: str | None = None,
    spec_id: int | None = None,
    beside: Any = None,
    adding: Sequence[Any] = (),
) -> None:
    """Commits an equality delete file that deletes what equals one of `rows` in all of its columns.

    `partition` is the path of one, ``day=2026-01-01/kind=a``, where the spec has fields; `beside` is a data file of
    Java's whose spec and partition it gets. A file of an unpartitioned spec deletes from all partitions; `spec_id` may
    choose an older spec than the current one. The same commit adds the data files `adding`.
    """
    jvm: Any = spark._jvm
    table = java_table(spark, name)
    ids = {column: table.schema().findField(column).fieldId() for column in rows.column_names}
    path = Path(table.location().removeprefix("file:")) / "data" / f"equality-{uuid.uuid4()}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = [field.with_metadata({"PARQUET:field_id": str(ids[field.name])}) for field in rows.schema]
    pq.write_table(rows.cast(pa.schema(fields)), path)

    gateway: Any = spark.sparkContext._gateway
    array = gateway.new_array(jvm.int, len(ids))
    for i, id_ in enumerate(ids.values()):
        array[i] = id_
    number = beside.specId() if beside is not None else spec_id
    spec = table.spec() if number is None else table.specs().get(number)
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(spec).ofEqualityDeletes(array)
    builder = builder.withPath(str(path)).withFormat("parquet").withFileSizeInBytes(path.stat().st_size)
    builder = builder.withRecordCount(rows.num_rows)
    if partition is not None:
        builder = builder.withPartitionPath(partition)
    if beside is not None:
        builder = builder.withPartition(beside.partition())
    commit = table.newRowDelta().addDeletes(builder.build())
    for delete in adding:
        commit = commit.addRows(delete)
    commit.commit()
    spark.sql(f"REFRESH TABLE {name}")


def data_files(spark: SparkSession, name: str) -> list[Any]:
    """The live data files, as Java has them."""
    planned_files = java_table(spark, name).newScan().planFiles()
    jvm: Any = spark._jvm
    files = jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists.newArrayList(planned_files)
    return [task.file() for task in files]


def planned(spark: SparkSession, name: str, snapshot_id: int | None = None) -> tuple[list[ReadTask], dict[int, Spec]]:
    """What Iceberg itself plans for a full scan: every live file, whole, with its deletes; and the specs."""
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    table = java_table(spark, name)
    scan = table.newScan() if snapshot_id is None else table.newScan().useSnapshot(snapshot_id)
    schemas = [json.loads(iceberg.SchemaParser.toJson(schema)) for schema in table.schemas().values()]
    specs = {
        id_: spec_of(json.loads(iceberg.PartitionSpecParser.toJson(spec)), schemas)
        for id_, spec in dict(table.specs()).items()
    }

    def entry(file: Any) -> dict[str, Any]:
        entry: dict[str, Any] = json.loads(iceberg.ContentFileParser.toJson(file, table.specs().get(file.specId())))
        return entry

    tasks_of_java = iceberg.relocated.com.google.common.collect.Lists.newArrayList(scan.planFiles())
    tasks = [
        read_task(entry(task.file()), [entry(delete) for delete in task.deletes()], specs) for task in tasks_of_java
    ]
    return tasks, specs


def read_task(entry: dict[str, Any], deletes: list[dict[str, Any]], specs: dict[int, Spec]) -> ReadTask:
    """A task from Iceberg's own JSON, with all row groups of its file."""
    ids = [field["field-id"] for field in specs[entry["spec-id"]].spec["fields"]]
    file = DataFile(
        path=entry["file-path"],
        spec_id=entry["spec-id"],
        record_count=entry["record-count"],
        size=entry["file-size-in-bytes"],
        partition=dict(zip(ids, entry.get("partition", []), strict=True)),
        split_offsets=tuple(entry["split-offsets"]),
        sort_order_id=entry.get("sort-order-id"),
    )
    ranges = byte_ranges(file.split_offsets, file.size, range(len(file.split_offsets)))
    return ReadTask(file, tuple(delete_file(field) for field in deletes), ranges)


def delete_file(entry: dict[str, Any]) -> DeleteFile:
    return DeleteFile(
        content="equality" if "equality" in entry["content"].lower() else "position",
        path=entry["file-path"],
        record_count=entry["record-count"],
        size=entry["file-size-in-bytes"],
        format=entry["file-format"].lower(),
        equality_ids=tuple(entry.get("equality-ids", ())),
        content_offset=entry.get("content-offset"),
        content_size=entry.get("content-size-in-bytes"),
        referenced_data_file=entry.get("referenced-data-file"),
    )


def row_group_starts(path: str) -> list[int]:
    """The number of the first row of every row group of a file, and that behind the last."""
    footer = pq.ParquetFile(path.removeprefix("file:")).metadata
    starts = [0]
    for i in range(footer.num_row_groups):
        starts.append(starts[-1] + footer.row_group(i).num_rows)
    return starts


def values(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows in an order of their own, to compare."""
    return sorted((tuple(row) for row in rows), key=repr)
