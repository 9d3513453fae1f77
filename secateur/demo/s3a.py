"""Hadoop's s3a for Spark's own reader: its jars, and the settings of a session that reads a server on this machine.

The input stream is the classic one, the default up to Hadoop 3.4. Its successor caches what it has read for later
queries, and the small table of the demo would fit into that cache completely, unlike a real lake.

Only those modules of the AWS client are fetched that s3a needs to read and write: 19 MB instead of 690 MB.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyspark

from secateur.demo.s3_server import ACCESS_KEY, REGION, SECRET_KEY
from secateur.demo.spark_packages import fetch, jar_of

MOST_SECONDS = 300  # to fetch them
AWS_VERSION = "2.35.4"
AWS_PARTS = ("s3", "s3-transfer-manager", "netty-nio-client", "apache-client", "sts")
WHOLE_AWS = "software.amazon.awssdk:bundle"


def s3a_trouble() -> str:
    """Fetch s3a unless it is here already; return why that failed, empty if it did not."""
    packages = _packages()
    if packages is None:
        return "Spark brings no Hadoop"
    return "" if has_s3a() else fetch(packages, _home(packages), MOST_SECONDS, (WHOLE_AWS,))


def has_s3a() -> bool:
    """Return whether s3a has been fetched already."""
    packages = _packages()
    return packages is not None and all(jar_of(package, _home(packages)).exists() for package in packages)


def session_settings(endpoint: str) -> dict[str, str]:
    """Return the settings of a session that reads and writes s3a locations of a server."""
    packages = _packages()
    assert packages is not None, "asked only where s3a_trouble() is empty"
    s3a = {
        "endpoint": endpoint,
        "endpoint.region": REGION,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "input.stream.type": "classic",
        "access.key": ACCESS_KEY,
        "secret.key": SECRET_KEY,
    }
    return {
        "spark.jars": ",".join(sorted(map(str, (_home(packages) / "jars").glob("*.jar")))),
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()},
    }


def _packages() -> tuple[str, ...] | None:
    """Return the packages for the installed Spark; None if that brings no Hadoop."""
    jars = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*")
    versions = (re.fullmatch(r"hadoop-client-api-([\d.]+)\.jar", jar.name) for jar in jars)
    hadoop = next((f"org.apache.hadoop:hadoop-aws:{version[1]}" for version in versions if version), None)
    parts = (f"software.amazon.awssdk:{part}:{AWS_VERSION}" for part in AWS_PARTS)
    return None if hadoop is None else (hadoop, *parts)


def _home(packages: tuple[str, ...]) -> Path:
    """Return the directory of the jars: apart from other packages, because all jars there are given to Spark."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "secateur" / f"s3a-{packages[0].rpartition(':')[2]}"
