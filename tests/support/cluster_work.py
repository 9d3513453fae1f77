"""A build, and a look-up by every read path, on executors that are processes of their own.

``python cluster_work.py PYTHON TABLE`` prints what came of each as JSON; PYTHON is the one of the executors.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from pyspark.sql import SparkSession

import secateur as sec


def outcome(work: Callable[[], object]) -> object:
    """The result, or the error."""
    try:
        return work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(python: str, path: str) -> None:
    """Run it all on one executor of one core."""
    os.environ["PYSPARK_PYTHON"] = python
    builder = SparkSession.builder.master("local-cluster[1,1,1024]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.task.maxFailures", "1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    table = sec.open_table(path)
    found = {"build": outcome(lambda: sec.build_index(table, spark=spark).rows)}
    sec.build_index(table)
    plan = sec.prune(table, "id = 7")
    for via in ("local", "native", "blocks"):
        found[via] = outcome(lambda via=via: plan.to_spark(spark, via=via).count())  # type: ignore[misc]
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
