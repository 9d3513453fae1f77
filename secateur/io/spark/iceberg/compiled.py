"""Compile classes against the Iceberg runtime of a session, in its JVM, with Janino, which Spark ships."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass, JavaGateway
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from secateur.io.spark.version import java_source

JAVA_ERRORS = (Py4JError, PySparkException)
CATALOGS = ("org.apache.iceberg.spark.SparkCatalog", "org.apache.iceberg.spark.SparkSessionCatalog")


def compiled(spark: SparkSession, source: str, name: str) -> Any:
    """Return an object of a class; None if the session is remote or no Iceberg runtime loads."""
    if not hasattr(spark, "_jsparkSession"):
        return None
    return _compiled(spark.sparkContext._gateway, source, name)


@lru_cache(maxsize=4)
def _compiled(gateway: JavaGateway, source: str, name: str) -> Any:
    jvm = gateway.jvm
    manager = jvm.org.apache.iceberg.spark.ScanTaskSetManager
    if not isinstance(manager, JavaClass):
        return None
    try:
        loader = manager.get().getClass().getClassLoader()
        # Fails in other versions of Spark: the methods of this class refer to Spark classes that they lack.
        jvm.java.lang.Class.forName(CATALOGS[0], True, loader)
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setTargetVersion(8)
        compiler.setParentClassLoader(loader)
        compiler.cook(java_source(source))
        return compiler.getClassLoader().loadClass(name).newInstance()
    except JAVA_ERRORS:
        return None
