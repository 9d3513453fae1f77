"""A process that streams a table into Parquet files until it is killed.

From the root: ``python -m tests.support.programs.streaming_work``.
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
    spark: SparkSession, sink: str, checkpoint: str, tables: Sequence[str], **trigger: object
) -> StreamingQuery:
    """Start a query that copies the rows of some tables with even ids, to Spark's own sink, which commits batches."""
    streams = [
        spark.readStream.format("secateur").option("predicate", "rid % 2 = 0").load(table).withColumn("n", lit(n))
        for n, table in enumerate(tables)
    ]
    writer = reduce(DataFrame.unionAll, streams).writeStream.format("parquet").option("checkpointLocation", checkpoint)
    return writer.trigger(**trigger).start(sink)  # type: ignore[arg-type]


if __name__ == "__main__":
    sink, checkpoint, *tables = sys.argv[1:]
    copying(local_session(), sink, checkpoint, tables, processingTime="0 seconds").awaitTermination()
