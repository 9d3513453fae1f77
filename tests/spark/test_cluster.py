"""Executors that are processes of their own: without this package, and with it shipped."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from secateur.index.build import spark_tasks
from tests.support.programs import cluster_work
from tests.support.tables import write_file

pytestmark = pytest.mark.spark  # it starts a JVM of its own

INSTALLED = ("pyspark", "py4j", "dateutil", "pytz", "six.py", *cluster_work.ON_CLUSTER)


def python_of_a_cluster(root: Path) -> Path:
    """A Python that has PySpark, numpy, pandas and pyarrow, and nothing else that secateur requires."""
    there = Path(sysconfig.get_paths()["purelib"])
    libraries = root / "libraries"
    libraries.mkdir()
    for name in INSTALLED:
        for package in there.glob(f"{name.removesuffix('.py')}*"):
            (libraries / package.name).symlink_to(package)
    python = root / "python"
    base = Path(sys.base_prefix) / "bin" / Path(sys.executable).name
    python.write_text(f'#!/bin/sh\nPYTHONPATH=$PYTHONPATH:{libraries} exec {base} -S "$@"\n')
    python.chmod(0o755)
    return python


def test_executors_that_lack_the_package_and_get_it(tmp_path: Path) -> None:
    write_file(tmp_path / "lake" / "a.parquet", {"id": list(range(100))}, row_group_size=10)
    command = [sys.executable, cluster_work.__file__, str(python_of_a_cluster(tmp_path)), str(tmp_path / "lake")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=environment)
    outcomes: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (outcomes["local"], outcomes["native"]) == (1, 1)  # they need no Python on executors
    for refused in outcomes["nothing shipped"]:
        assert refused.startswith("PackageMissing: this job needs secateur on the executors: ")
        assert "cannot import secateur" in refused
        assert "secateur pack packages.tar.gz" in refused
    assert re.search("cannot import (mmh3|sqlglot|xxhash)", outcomes["zip shipped"][0])  # whichever is asked for first
    assert outcomes["archive shipped"] == [100, 1]


def test_another_version_of_the_package_is_none() -> None:
    host, wrong = spark_tasks._check("0.0.1")(0)
    assert wrong.startswith("has secateur ")
    assert wrong.endswith(", the driver 0.0.1")
    assert f"{host} {wrong}" in spark_tasks._message([(host, wrong)])
