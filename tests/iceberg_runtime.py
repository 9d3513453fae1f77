"""Iceberg's Spark runtime for the tests: a jar that Spark itself fetches once, into the user's cache.

Where it cannot be had, the tests that need it are skipped. ``SECATEUR_ICEBERG_JAR`` names a jar to take instead.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyspark

from secateur.java import require_java

PACKAGES = {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"}  # by version of Spark
MOST_SECONDS = 90  # to fetch 48 MB; without a network it takes some 5

# Spark resolves packages before its JVM answers, and ends the JVM where it cannot.
FETCH = """
import sys
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
conf = SparkConf(loadDefaults=False).set("spark.jars.packages", sys.argv[1]).set("spark.jars.ivy", sys.argv[2])
launch_gateway(conf).shutdown()
"""


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
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # many short queries
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
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "secateur-tests" / "packages"
    group, artifact, number = PACKAGES[version].split(":")
    jar = home / "jars" / f"{group}_{artifact}-{number}.jar"
    trouble = "" if jar.exists() else fetch(PACKAGES[version], home)
    return Runtime(jar) if jar.exists() else Runtime(None, f"the jar of {PACKAGES[version]} cannot be had: {trouble}")


def fetch(package: str, home: Path) -> str:
    """What went wrong; empty where Spark put the package into `home`."""
    require_java()
    command = [sys.executable, "-c", FETCH, package, str(home)]
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, start_new_session=True, **options)  # type: ignore[call-overload]
    try:
        output, _ = process.communicate(timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the JVM
        process.wait()
        return f"no answer within {MOST_SECONDS} s"
    trouble = re.search(r"\w+Exception|unresolved dependency", output)  # without the hosts that were asked
    return "" if process.returncode == 0 else trouble[0] if trouble else f"Spark ended with {process.returncode}"
