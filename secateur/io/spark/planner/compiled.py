"""Compile the planner's Java classes in the driver, once per JVM, with Janino, the compiler that Spark ships."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

_ROOM = files("secateur.io.spark.planner")
SOURCE, RULE_SOURCE, ICEBERG_SOURCE = (_ROOM / f"{name}.java" for name in ("PrunedTable", "EnableRule", "IcebergScan"))


@lru_cache(maxsize=4)
def table_class(gateway: Any, source: str) -> Any:
    """Compile ``PrunedTable``. Raises Py4JError if Spark's classes do not fit."""
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return _compiled(gateway, source, loader, "secateur.PrunedTable")


@lru_cache(maxsize=4)
def rule_class(gateway: Any, source: str, table_source: str) -> Any:
    """Compile ``EnableRule``, which uses ``PrunedTable``. Raises Py4JError if Spark's classes do not fit."""
    loader = table_class(gateway, table_source).getClassLoader()
    return _compiled(gateway, source, loader, "secateur.EnableRule")


def iceberg_class(gateway: Any, rule: Any, source: str) -> Any:
    """Compile ``IcebergScan``, which uses the class `rule`. Raises Py4JError if Iceberg's classes do not fit."""
    return _compiled(gateway, source, rule.getClassLoader(), "secateur.IcebergScan")


def _compiled(gateway: Any, source: str, loader: Any, name: str) -> Any:
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)
