"""What is said where Spark cannot import the format "secateur"."""

from __future__ import annotations

import importlib
import re
import sys

import pytest


def test_a_python_that_lacks_something_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark looks formats up in the Python of PYSPARK_PYTHON, by default ``python3``, which may be another."""
    for name in ("pyspark_secateur", "secateur.io.spark.data_source"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ModuleNotFoundError, match=rf"pyarrow.*Spark runs {re.escape(sys.executable)}: set PYSPARK_PYTHON"
    ):
        importlib.import_module("pyspark_secateur")
