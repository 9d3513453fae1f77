"""A build and look-ups on executors that are processes of their own: without this package, then with it shipped.

``python cluster_work.py PYTHON TABLE`` prints what came of each as JSON; PYTHON is the one of the executors, which has
PySpark and ON_CLUSTER.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[3]
ON_CLUSTER = ("numpy", "pandas", "pyarrow")


def outcome(work: Callable[[], object]) -> object:
    """The result, or the error."""
    try:
        return work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(python: str, path: str) -> None:
    """Run it all on one executor of one core."""
    from pyspark.sql import SparkSession

    import secateur as sec
    from secateur.shipping import pack

    os.environ["PYSPARK_PYTHON"] = python
    builder = SparkSession.builder.master("local-cluster[1,1,1024]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.task.maxFailures", "1").getOrCreate()
    context = spark.sparkContext
    context.setLogLevel("OFF")
    table = sec.open_table(path)
    sec.build_index(table)
    plan = sec.prune(table, "id = 7")

    def read(via: str) -> object:
        return outcome(lambda: plan.to_spark(spark, via=via).count())

    def build() -> object:
        return outcome(lambda: sec.build_index(table, spark=spark).rows)

    outcomes = {"local": read("local"), "native": read("native"), "nothing shipped": [build(), read("blocks")]}
    zipped, archive = Path(path).parent / "secateur.zip", Path(path).parent / "packages.tar.gz"
    pack(zipped)
    context.addPyFile(str(zipped))
    outcomes["zip shipped"] = [build()]
    pack(archive, without=ON_CLUSTER)
    context.addArchive(f"{archive}#packages")  # what --archives and spark.executorEnv.PYTHONPATH set for a new session
    context.environment["PYTHONPATH"] = "packages"
    outcomes["archive shipped"] = [build(), read("blocks")]
    print(json.dumps(outcomes))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # of this process alone: executors inherit PYTHONPATH
    main(*sys.argv[1:])
