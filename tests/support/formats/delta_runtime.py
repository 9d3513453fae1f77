"""Delta's own Spark reader and writer for the tests: jars that Spark fetches once, into the user's cache.

Tests that need it are skipped if it is not available.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyspark

from secateur.demo.spark_packages import fetch, jar_of
from tests.support.formats.spark_packages import packages_home

PACKAGES = {  # by version of Spark, with what it needs of its own; the rest is Spark's
    "3.5": ("io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2"),
    "4.0": ("io.delta:delta-spark_4.0_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    "4.1": ("io.delta:delta-spark_4.1_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
}
CATALOG = "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
EXTENSIONS = "spark.sql.extensions"
MOST_SECONDS = 120


@dataclass(frozen=True)
class DeltaRuntime:
    """The jars; empty with the reason why there are none."""

    jars: tuple[Path, ...]
    reason: str = ""

    def with_settings(self, settings: dict[str, str]) -> dict[str, str]:
        """The settings of a session with those of Delta; the catalog is for sessions made from it."""
        if not self.jars:
            return settings
        more = {"spark.jars": ",".join(map(str, self.jars)), EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension"}
        joined = {name: ",".join(filter(None, (settings.get(name), value))) for name, value in more.items()}
        return {**settings, **joined}


@cache
def delta_runtime() -> DeltaRuntime:
    """The jars for the installed Spark, fetched where they are not in the cache."""
    version = ".".join(pyspark.__version__.split(".")[:2])
    if version not in PACKAGES:
        return DeltaRuntime((), f"no jar of Delta is known for Spark {version}; there is one for {', '.join(PACKAGES)}")
    home, packages = packages_home(), PACKAGES[version]
    jars = tuple(jar_of(jar, home) for jar in packages)
    trouble = "" if all(jar.exists() for jar in jars) else fetch(packages[:1], home, MOST_SECONDS)
    if all(jar.exists() for jar in jars):
        return DeltaRuntime(jars)
    return DeltaRuntime((), f"the jars of {packages[0]} cannot be had: {trouble}")
