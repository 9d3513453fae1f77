"""Fetch Spark packages once, with Spark's own resolver, and keep them."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from secateur.java import require_java

# Spark resolves packages before its JVM answers, and ends the JVM where it cannot.
FETCH = """
import sys
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
names = ("spark.jars.packages", "spark.jars.ivy", "spark.jars.excludes")
launch_gateway(SparkConf(loadDefaults=False).setAll(list(zip(names, sys.argv[1:])))).shutdown()
"""


def jar_of(package: str, home: Path) -> Path:
    """Return the path of the jar of a package (``group:artifact:version``)."""
    group, artifact, version = package.split(":")
    return home / "jars" / f"{group}_{artifact}-{version}.jar"


def fetch(packages: Sequence[str], home: Path, most_seconds: float, excluded: Sequence[str] = ()) -> str:
    """Fetch packages and their dependencies into `home`; return what went wrong, empty if nothing did.

    One process at a time fetches into a home: another that wants the same packages then finds them there.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if all(jar_of(package, home).exists() for package in packages):
            return ""
        return _fetch([",".join(packages), str(home), ",".join(excluded)], most_seconds)


def _fetch(arguments: Sequence[str], most_seconds: float) -> str:
    require_java()
    command = [sys.executable, "-c", FETCH, *arguments]
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, start_new_session=True, **options)  # type: ignore[call-overload]
    try:
        output, _ = process.communicate(timeout=most_seconds)
    except BaseException as interruption:
        os.killpg(process.pid, signal.SIGKILL)  # with the JVM
        process.wait()
        if isinstance(interruption, subprocess.TimeoutExpired):
            return f"no answer within {most_seconds:g} s"
        raise
    trouble = re.search(r"\w+Exception|unresolved dependency", output)  # without the hosts that were asked
    return "" if process.returncode == 0 else trouble[0] if trouble else f"Spark ended with {process.returncode}"
