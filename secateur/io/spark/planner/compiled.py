"""Compile the planner's Java classes in the driver, once per JVM, with Janino, the compiler that Spark ships.

Every file of the directory ``java`` is one class. A class loader gets the sources of all of them, and compiles a class
with those that it uses when it is loaded. So the classes for Iceberg and Delta harm nothing where these are missing.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from secateur.forks import lock_for
from secateur.io.spark.version import java_source

SOURCES = files("secateur.io.spark.planner") / "java"
TABLE, RULE, ICEBERG, DELTA = "PrunedTable", "EnableRule", "IcebergScan", "DeltaRelation"
FIRST, FIRST_DELTA, RANGED_DELTA = "DeferredIceberg", "DeferredDelta", "RangedDelta"
TARGET_DELTA = "DeltaTarget"
METRICS = ("CountMetric", "SizeMetric", "MillisMetric")  # Spark's UI looks for their classes by name

_with_metrics: set[Any] = set()  # gateways of the Sparks that have these classes
_lock = lock_for(sys.modules[__name__], "_lock")


def compiled(gateway: Any, name: str) -> Any:
    """Return a class and, by its loader, those that it uses. Raises Py4JError if Spark's classes do not fit."""
    sources = {path.name: java_source(path.read_text(encoding="utf-8")) for path in SOURCES.iterdir()}
    with _lock:  # py4j calls methods of the first class of a name that it sees: a second loader's objects lack them
        loader = _loader(gateway, tuple(sorted(sources.items())))
    return loader.loadClass(f"secateur.{name}")


def compiled_beside(other: Any, name: str) -> Any:
    """Return a class by the loader of another one. Raises Py4JError if the classes of others do not fit."""
    return other.getClassLoader().loadClass(f"secateur.{name}")


@lru_cache(maxsize=4)
def _loader(gateway: Any, sources: tuple[tuple[str, str], ...]) -> Any:
    jvm, texts = gateway.jvm, dict(sources)
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    _show_to_spark(gateway, parent, {name: texts[f"{name}.java"] for name in METRICS if f"{name}.java" in texts})
    finder = jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder()
    for file, text in sources:
        finder.addResource(f"secateur/{file}", text)
    return jvm.org.codehaus.janino.JavaSourceClassLoader(parent, finder, "UTF-8")


def _show_to_spark(gateway: Any, loader: Any, sources: Mapping[str, str]) -> None:
    """Compile classes into a temporary directory, and add it to Spark's own class loader.

    Where that is another loader, Spark's UI shows no values for them.
    """
    if loader.getClass().getSimpleName() != "MutableURLClassLoader" or gateway in _with_metrics:
        return
    directory = Path(tempfile.mkdtemp(prefix="secateur-classes-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    (directory / "secateur").mkdir()
    for name, source in sources.items():
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.cook(source)
        (directory / "secateur" / f"{name}.class").write_bytes(compiler.getBytecodes().get(f"secateur.{name}"))
    loader.addURL(gateway.jvm.java.io.File(f"{directory}/").toURI().toURL())
    _with_metrics.add(gateway)
