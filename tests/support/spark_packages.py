"""Spark packages for the tests, which Spark fetches once into the user's cache: peers, and other formats."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from secateur.java import require_java

# Spark resolves packages before its JVM answers, and ends the JVM where it cannot.
FETCH = """
import sys
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
conf = SparkConf(loadDefaults=False).set("spark.jars.packages", sys.argv[1]).set("spark.jars.ivy", sys.argv[2])
launch_gateway(conf).shutdown()
"""


def packages_home() -> Path:
    """Where packages are kept; their jars are in a folder of it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "secateur-tests" / "packages"


def jar_of(package: str, home: Path) -> Path:
    """Where the jar of a package (``group:artifact:version``) is kept."""
    group, artifact, version = package.split(":")
    return home / "jars" / f"{group}_{artifact}-{version}.jar"


def fetch(package: str, home: Path, most_seconds: float) -> str:
    """What went wrong; empty where Spark put the package, and what it depends on, into `home`.

    One process at a time fetches into a home: another that wants the same package then finds it there.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return "" if jar_of(package, home).exists() else _fetch(package, home, most_seconds)


def _fetch(package: str, home: Path, most_seconds: float) -> str:
    require_java()
    command = [sys.executable, "-c", FETCH, package, str(home)]
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, start_new_session=True, **options)  # type: ignore[call-overload]
    try:
        output, _ = process.communicate(timeout=most_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the JVM
        process.wait()
        return f"no answer within {most_seconds:g} s"
    trouble = re.search(r"\w+Exception|unresolved dependency", output)  # without the hosts that were asked
    return "" if process.returncode == 0 else trouble[0] if trouble else f"Spark ended with {process.returncode}"
