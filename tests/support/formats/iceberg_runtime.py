"""Iceberg's Spark runtime for the tests: a jar that Spark fetches once, into the user's cache.

Tests that need it are skipped if it is not available. ``SECATEUR_ICEBERG_JAR`` names another jar to use.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyspark

from secateur.demo.spark_packages import fetch, jar_of
from tests.support.formats.spark_packages import packages_home

PACKAGES = {  # by version of Spark
    "3.5": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",  # the last for it
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
MOST_SECONDS = 90  # to fetch 48 MB; without a network it takes some 5


@dataclass(frozen=True)
class Runtime:
    """The jar; None with the reason why there is none."""

    jar: Path | None
    reason: str = ""

    def settings(self, warehouse: str) -> dict[str, str]:
        """Of a session with Iceberg's SQL and a catalog of Hadoop tables, ``lake``; empty without the jar."""
        if self.jar is None:
            return {}
        return {
            "spark.jars": str(self.jar),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": warehouse,
        }


@cache
def iceberg_runtime() -> Runtime:
    """The runtime for the installed Spark, fetched where it is not in the cache."""
    named = os.environ.get("SECATEUR_ICEBERG_JAR")
    if named:
        return Runtime(Path(named))
    version = ".".join(pyspark.__version__.split(".")[:2])
    if version not in PACKAGES:
        return Runtime(None, f"Iceberg has no runtime for Spark {version}; it has one for {', '.join(PACKAGES)}")
    home = packages_home()
    jar = jar_of(PACKAGES[version], home)
    trouble = "" if jar.exists() else fetch([PACKAGES[version]], home, MOST_SECONDS)
    return Runtime(jar) if jar.exists() else Runtime(None, f"the jar of {PACKAGES[version]} cannot be had: {trouble}")
