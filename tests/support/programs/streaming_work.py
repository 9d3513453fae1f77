"""A process that streams a table into Parquet files until it is killed.

From the root: ``python -m tests.support.programs.streaming_work SINK CHECKPOINT FILES TABLE...``, at most so many
files in a batch of a table; 0: no limit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.streaming.query import StreamingQuery

from secateur.session import local_session


def copying(
    spark: SparkSession, sink: str, checkpoint: str, tables: Sequence[str], files: int = 0, **trigger: object
) -> StreamingQuery:
    """Start a query that copies the rows of some tables with even ids, to Spark's own sink, which commits batches."""
    options: dict[str, object] = {"predicate": "rid % 2 = 0"} | ({"maxFilesPerTrigger": files} if files else {})
    streams = [
        spark.readStream.format("secateur").options(**options).load(table).withColumn("n", lit(n))
        for n, table in enumerate(tables)
    ]
    writer = reduce(DataFrame.unionAll, streams).writeStream.format("parquet").option("checkpointLocation", checkpoint)
    return writer.trigger(**trigger).start(sink)  # type: ignore[arg-type]


if __name__ == "__main__":
    sink, checkpoint, files, *tables = sys.argv[1:]
    copying(local_session(), sink, checkpoint, tables, int(files), processingTime="0 seconds").awaitTermination()
