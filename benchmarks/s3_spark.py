"""Spark's own reader over S3, by Hadoop's s3a, in a process of its own; see :mod:`benchmarks.partners`.

Started with the endpoint, and asked for (location, SQL), it tells how many rows match. The
settings are s3a's own: since Hadoop 3.5 it reads files of some hundred kilobytes whole, which takes fewer requests. The
package of s3a has to be that of the Hadoop that Spark brings; Spark fetches it, 690 MB with the client of AWS.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pyspark

from benchmarks.partners import answer_all
from tests.support.s3_server import ACCESS_KEY, REGION, SECRET_KEY
from tests.support.spark_packages import fetch, jar_of, packages_home

MOST_SECONDS = 600  # to fetch it


def s3a_package() -> str | None:
    """The package for the installed Spark; None where that brings no Hadoop."""
    jars = Path(pyspark.__file__).parent / "jars"
    versions = (re.fullmatch(r"hadoop-client-api-([\d.]+)\.jar", jar.name) for jar in jars.glob("hadoop-client-api-*"))
    return next((f"org.apache.hadoop:hadoop-aws:{version[1]}" for version in versions if version), None)


def s3a_trouble() -> str:
    """Why there is no s3a; empty where there is."""
    package, home = s3a_package(), packages_home()
    if package is None:
        return "Spark brings no Hadoop"
    return "" if jar_of(package, home).exists() else fetch(package, home, MOST_SECONDS)


def session_settings(endpoint: str) -> dict[str, str]:
    """Of a session that reads and writes s3a locations of a server."""
    package = s3a_package()
    assert package is not None
    s3a = {
        "endpoint": endpoint,
        "endpoint.region": REGION,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "access.key": ACCESS_KEY,
        "secret.key": SECRET_KEY,
    }
    return {
        "spark.jars.packages": package,
        "spark.jars.ivy": str(packages_home()),
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()},
    }


def main(endpoint: str) -> None:
    """Answer until there is nobody to ask any more."""
    from secateur.session import local_session

    session = local_session(**session_settings(endpoint))

    def answer(asked: Any) -> Any:
        location, sql = asked
        return len(session.read.parquet(location).where(sql).collect())

    answer_all(answer)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
