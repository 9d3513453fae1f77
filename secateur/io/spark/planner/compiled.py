"""Java classes that are compiled in the driver, once for a JVM, by Janino: the compiler that Spark ships."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

_ROOM = files("secateur.io.spark.planner")
SOURCE, RULE_SOURCE, ICEBERG_SOURCE = (_ROOM / f"{name}.java" for name in ("PrunedTable", "EnableRule", "IcebergScan"))


@lru_cache(maxsize=4)
def table_class(gateway: Any, source: str) -> Any:
    """The class of tables. Raises Py4JError where Spark's classes are others."""
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return _compiled(gateway, source, loader, "secateur.PrunedTable")


@lru_cache(maxsize=4)
def rule_class(gateway: Any, source: str, table_source: str) -> Any:
    """The class of the optimizer's rule, over that of tables. Raises Py4JError where Spark's classes are others."""
    loader = table_class(gateway, table_source).getClassLoader()
    return _compiled(gateway, source, loader, "secateur.EnableRule")


def iceberg_class(gateway: Any, rule: Any, source: str) -> Any:
    """The class that cuts scans of Iceberg's, over a class of rules. Raises Py4JError where Iceberg's are others."""
    return _compiled(gateway, source, rule.getClassLoader(), "secateur.IcebergScan")


def _compiled(gateway: Any, source: str, loader: Any, name: str) -> Any:
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)
