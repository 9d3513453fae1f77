"""Delta's library for Spark in the tests: jars that Spark fetches once, into the user's cache.

Tests that need it are skipped if it is not available. A session has Iceberg's runtime or Delta's, or both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyspark

from tests.support.spark_packages import fetch, jar_of, packages_home

VERSION = "4.4.0"
PACKAGES = {"4.1": f"io.delta:delta-spark_4.1_2.13:{VERSION}"}  # by version of Spark
NEEDED = tuple(  # of what the package depends on, all that Spark itself lacks
    f"io.delta:{name}:{VERSION}"
    for name in ("delta-storage", "delta-kernel-api", "delta-kernel-defaults", "delta-kernel-unitycatalog")
)
EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
MOST_SECONDS = 120  # to fetch 30 MB; without a network it takes some 5


@dataclass(frozen=True)
class DeltaRuntime:
    """The jars; none, with the reason why."""

    jars: tuple[Path, ...] = ()
    reason: str = ""

    def added_to(self, settings: dict[str, str]) -> dict[str, str]:
        """The settings of a session that has Delta's SQL too; unchanged without the jars."""
        if not self.jars:
            return settings
        jars = [*filter(None, [settings.get("spark.jars")]), *map(str, self.jars)]
        extensions = [*filter(None, [settings.get("spark.sql.extensions")]), EXTENSION]
        return {
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # many short queries
            **settings,
            "spark.jars": ",".join(jars),
            "spark.sql.extensions": ",".join(extensions),
        }


@cache
def delta_runtime() -> DeltaRuntime:
    """The runtime for the installed Spark, fetched where it is not in the cache."""
    version = ".".join(pyspark.__version__.split(".")[:2])
    if version not in PACKAGES:
        return DeltaRuntime(reason=f"Delta has no runtime for Spark {version}; it has one for {', '.join(PACKAGES)}")
    home = packages_home()
    jars = tuple(jar_of(each, home) for each in (PACKAGES[version], *NEEDED))
    trouble = "" if all(jar.exists() for jar in jars) else fetch(PACKAGES[version], home, MOST_SECONDS)
    if all(jar.exists() for jar in jars):
        return DeltaRuntime(jars)
    return DeltaRuntime(reason=f"the jars of {PACKAGES[version]} cannot be had: {trouble}")
