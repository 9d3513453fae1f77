"""The tasks in which ``format("secateur")`` reads a plan, in batches and in streams."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import InputPartition

from secateur.errors import UnsupportedPredicate
from secateur.io.scan.block_list import BlockList
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.reading.block_reader import BlockReader
from secateur.io.spark.to_spark import descriptors
from secateur.io.tables.open import Moment, open_at
from secateur.io.tables.table import Table
from secateur.pruning.predicate.nodes import quoted_name

MOST_OPEN_TABLES = 32


@dataclass(frozen=True)
class Location:
    """The location of a table and its index; every process opens it separately."""

    path: str
    catalog: str | None
    moment: Moment
    index_location: str | None
    glob: str | None = None


@lru_cache(MOST_OPEN_TABLES)
def opened(at: Location) -> Table:
    """Return the table at a location, open since the first call. Raises as :func:`secateur.open_table`."""
    return open_at(
        at.path,
        at.catalog,
        at.moment,
        index_location=at.index_location,
        filesystem=None,
        schema=None,
        freshness=None,
        disk_cache=None,
        glob=at.glob,
    )


@dataclass(frozen=True)
class Task(InputPartition):
    """One task: a reader, and the blocks to read."""

    reader: bytes  # a BlockReader, pickled and compressed once: Spark sends it with every task
    blocks: bytes  # a BlockList


def tasks_of(scan: PlannedScan, schema: pa.Schema) -> list[InputPartition]:
    """Return the tasks that read the surviving blocks of a plan. Raises UnsupportedPredicate, UnknownColumn."""
    _require_evaluated_here(scan)
    work = descriptors(scan, scan.fields([quoted_name(name) for name in schema.names]))
    reader = zlib.compress(cloudpickle.dumps(work.reader))
    return [Task(reader, task) for task in work.tasks]


def rows_of(partition: InputPartition | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one task, in the types that Spark expects; if nothing survives, Spark passes None."""
    if not isinstance(partition, Task):
        return
    reader: BlockReader = cloudpickle.loads(zlib.decompress(partition.reader))
    for batch in reader.read_all(BlockList.from_bytes(partition.blocks)):
        columns = [batch.column(field.name).cast(field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _require_evaluated_here(scan: PlannedScan) -> None:
    """Raises UnsupportedPredicate for an option that only Spark could evaluate, which does not see it."""
    left = scan.left_to_spark
    if left:
        raise UnsupportedPredicate(
            f"only Spark can evaluate {'; '.join(left)}, and it does not see the option predicate: leave that out of "
            'the option, and give it to where(), as spark.read.format("secateur").load(path).where(...)'
        )
