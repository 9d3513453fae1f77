"""How Spark finds the format "secateur", and what is said where it cannot be imported."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest


def test_a_python_that_lacks_something_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark looks formats up in the Python of PYSPARK_PYTHON, by default ``python3``, which may be another."""
    monkeypatch.delitem(sys.modules, "secateur.io.spark.data_source", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    source = importlib.import_module("pyspark_secateur").DefaultSource
    with pytest.raises(
        ModuleNotFoundError, match=rf"pyarrow.*Spark runs {re.escape(sys.executable)}: set PYSPARK_PYTHON"
    ):
        source({"path": "t"})


def test_the_name_is_told_without_what_reads_tables() -> None:
    """Spark asks a process of its own for it, which then ends."""
    asked = "import sys, pyspark_secateur; print(pyspark_secateur.DefaultSource.name(), 'secateur' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["secateur", "False"]
