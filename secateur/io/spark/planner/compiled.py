"""Compile the planner's Java classes in the driver, once per JVM, with Janino, the compiler that Spark ships.

Every file of the directory ``java`` is one class. A class loader gets the sources of all of them, and compiles a class
with those that it uses when it is loaded. So the classes for Iceberg harm nothing where Iceberg's runtime is missing.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

SOURCES = files("secateur.io.spark.planner") / "java"
TABLE, RULE, ICEBERG = "PrunedTable", "EnableRule", "IcebergScan"


def compiled(gateway: Any, name: str) -> Any:
    """Return a class and, by its loader, those that it uses. Raises Py4JError if Spark's classes do not fit."""
    sources = ((each.name, each.read_text(encoding="utf-8")) for each in SOURCES.iterdir())
    return _compiled(gateway, name, tuple(sorted(sources)))


def compiled_beside(other: Any, name: str) -> Any:
    """Return a class by the loader of another one. Raises Py4JError if Spark's or Iceberg's classes do not fit."""
    return other.getClassLoader().loadClass(f"secateur.{name}")


@lru_cache(maxsize=4)
def _compiled(gateway: Any, name: str, sources: tuple[tuple[str, str], ...]) -> Any:
    jvm = gateway.jvm
    found = jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder()
    for file, text in sources:
        found.addResource(f"secateur/{file}", text)
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.org.codehaus.janino.JavaSourceClassLoader(parent, found, "UTF-8").loadClass(f"secateur.{name}")
