"""Hudi's own Spark reader and writer for the tests: a jar that Spark fetches once, into the user's cache.

Tests that need it are skipped if it is not available.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyspark

from secateur.demo.spark_packages import fetch, jar_of
from tests.support.formats.spark_packages import packages_home

PACKAGES = {"3.5": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"}  # by version of Spark
CATALOG = "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog"
EXTENSIONS = "spark.sql.extensions"
MOST_SECONDS = 240


@dataclass(frozen=True)
class HudiRuntime:
    """The jar, or the reason why there is none."""

    jar: Path | None
    reason: str = ""

    def with_settings(self, settings: dict[str, str]) -> dict[str, str]:
        """The settings of a session with those of Hudi; the catalog is for sessions made from it."""
        if self.jar is None:
            return settings
        more = {"spark.jars": str(self.jar), EXTENSIONS: "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"}
        joined = {name: ",".join(filter(None, (settings.get(name), value))) for name, value in more.items()}
        kryo = {
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        }
        return {**settings, **kryo, **joined}


@cache
def hudi_runtime() -> HudiRuntime:
    """The jar for the installed Spark, fetched where it is not in the cache."""
    version = ".".join(pyspark.__version__.split(".")[:2])
    if version not in PACKAGES:
        return HudiRuntime(
            None, f"no bundle of Hudi is known for Spark {version}; there is one for {', '.join(PACKAGES)}"
        )
    home, package = packages_home(), PACKAGES[version]
    jar = jar_of(package, home)
    trouble = "" if jar.exists() else fetch([package], home, MOST_SECONDS)
    return HudiRuntime(jar) if jar.exists() else HudiRuntime(None, f"the jar of {package} cannot be had: {trouble}")
