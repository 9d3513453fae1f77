"""Write down the classes that Spark loads, so that the JVMs of the tests map them from a file instead of parsing jars.

    python -m tests.support.programs.share_classes <file>

A start of Spark and its first query take 4.7 s of processor time with such a file instead of 8.9, and the tests start
Spark some twenty times; to write it takes 33 s. Where the Java cannot write it, or not read it later, all is as it was:
no archive is an empty file.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext

from secateur.session import local_session


def main(archive: Path) -> None:
    """Start Spark, ask a little of everything, and have the JVM write the file when it ends."""
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={archive} -Xlog:disable"
    spark = local_session()
    with tempfile.TemporaryDirectory() as directory:
        spark.range(1000).selectExpr("id", "id % 7 AS k", "CAST(id AS STRING) AS s").write.parquet(f"{directory}/t")
        spark.read.parquet(f"{directory}/t").createOrReplaceTempView("t")
        spark.sql("SELECT k, count(*), max(s) FROM t WHERE s LIKE '1%' GROUP BY k ORDER BY k").collect()
        spark.sql("SELECT * FROM t JOIN (SELECT max(id) AS id FROM t) USING (id)").toArrow()
    gateway = SparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # at which it ends
    gateway.proc.wait(300)
    archive.touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
