"""Read the surviving row groups of an Iceberg table with Iceberg's own Spark reader.

To rewrite data files, Iceberg stages scan tasks under a name, which its data source then loads: the public classes
ScanTaskSetManager and SparkTableCache. This module does the same to read exactly the row groups that a plan keeps, with
Iceberg's vectorised reader, schema evolution and deletes. A small Java class in the driver gets all tasks as one text.
It is compiled by Janino, which Spark ships for its own generated code.

It needs the Iceberg Spark runtime for the session's Spark version, and a session in this process's JVM. The runtime for
Spark 4.1 (Iceberg 1.11, 1.12) does not load in Spark 4.2 and 4.3: there :func:`find_table` returns None.
"""

from __future__ import annotations

import contextlib
import uuid as uuids
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from secateur.errors import StalePlan
from secateur.io.spark.iceberg.compiled import CATALOGS, JAVA_ERRORS, compiled
from secateur.io.spark.version import settings_of, staged_by

__all__ = ["find_table", "live_table", "read_tasks"]

_CATALOG = "spark.sql.catalog."
_LINEAGE = ("_row_id", "_last_updated_sequence_number")  # columns of a staged scan of a version 3 table

# Janino needs raw types, without lambdas or inferred type arguments.
# AsOf: a staged scan takes its schema from the Table object cached under its name, and a catalog's Table object follows
#   later commits. Executors get a copy of what the object returns.
# Whole: a staged scan splits every task by size, but parsed tasks are parts of a file and refuse to split. Whole is one
#   task that splits into exactly these parts.
# CLEANER: Spark fetches staged tasks when it plans a query, so they must live as long as any plan with the scan's
#   table. The plans of all derived DataFrames hold the same table object.
_SOURCE = """
package secateur.iceberg;

import java.lang.ref.Cleaner;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.iceberg.*;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.spark.ScanTaskSetManager;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.SparkTableCache;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

public class StagedTasks {
    private static final Cleaner CLEANER = Cleaner.create();

    public Table load(SparkSession spark, String name) throws Exception {
        org.apache.hadoop.conf.Configuration conf = spark.sparkContext().hadoopConfiguration();
        if (name.endsWith(".metadata.json")) {
            return new BaseTable(new StaticTableOperations(name, new HadoopFileIO(conf)), name);
        }
        boolean isPath = name.contains("/") && !name.startsWith("`");
        return isPath ? new HadoopTables(conf).load(name) : Spark3Util.loadIcebergTable(spark, name);
    }

    public String uuid(SparkSession spark, String name) throws Exception {
        return load(spark, name).uuid().toString();
    }

    public boolean stage(SparkSession spark, String name, int schemaId, String id, String texts) throws Exception {
        Table live = load(spark, name);
        Integer wanted = Integer.valueOf(schemaId < 0 ? live.schema().schemaId() : schemaId);
        Schema schema = (Schema) live.schemas().get(wanted);
        if (schema == null) {
            return false;
        }
        Table table = new AsOf(((HasTableOperations) live).operations(), live.name(), schema);
        List tasks = new ArrayList();
        String[] lines = texts.split("\\n");
        for (int i = 0; i < lines.length; i++) {
            tasks.add(ScanTaskParser.fromJson(lines[i], true));
        }
        ScanTaskSetManager.get().stageTasks(table, id, Collections.singletonList(Whole.of(tasks)));
        SparkTableCache.get().add(id, table);
        return true;
    }

    public void removeWith(Dataset frame, String id) {
        DataSourceV2Relation scan = (DataSourceV2Relation) frame.queryExecution().analyzed().collectLeaves().head();
        CLEANER.register(scan.table(), new Removal(id));
    }

    public void remove(String id) {
        new Removal(id).run();
    }
}

class Whole implements InvocationHandler {
    private final List parts;

    private Whole(List parts) {
        this.parts = parts;
    }

    static Object of(List parts) {
        return Proxy.newProxyInstance(
            FileScanTask.class.getClassLoader(), new Class[] {FileScanTask.class}, new Whole(parts));
    }

    public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
        return method.getName().equals("split") ? parts : method.invoke(parts.get(0), arguments);
    }
}

class AsOf extends BaseTable {
    private final Schema schema;

    AsOf(TableOperations operations, String name, Schema schema) {
        super(operations, name);
        this.schema = schema;
    }

    public Schema schema() {
        return schema;
    }
}

class Removal implements Runnable {
    private final String id;

    Removal(String id) {
        this.id = id;
    }

    public void run() {
        Table table = SparkTableCache.get().remove(id);
        if (table != null) {
            ScanTaskSetManager.get().removeTasks(table, id);
        }
    }
}
"""


def find_table(spark: SparkSession, identifier: tuple[str, ...] | None, location: str, uuid: str) -> str | None:
    """Return a name under which this session can load the table with this UUID, or None if there is none.

    It tries in this order: the identifier if it begins with the name of a Spark catalog, the identifier in every
    Iceberg catalog of the session, the location as that of a Hadoop table.
    """
    java = _java(spark)
    if java is None:
        return None
    for name in _names(spark, identifier, location):
        with contextlib.suppress(*JAVA_ERRORS):  # no such catalog, table or metadata there
            if java.uuid(spark._jsparkSession, name) == uuid:
                return name
    return None


def live_table(spark: SparkSession, name: str) -> Any:
    """Return Iceberg's object of a table as it is now; `name` comes from :func:`find_table`."""
    return _java(spark).load(spark._jsparkSession, name)


def read_tasks(spark: SparkSession, name: str, tasks: Sequence[str], schema_id: int | None = None) -> DataFrame:
    """Return the rows of exactly these file scan tasks (see :mod:`.task_json`), deletes applied.

    `name` comes from :func:`find_table`, or is the path of a metadata file; then the table is read as of this file,
    through Spark's own file systems. Columns are those of the table's current schema, or of the schema `schema_id`,
    for example a snapshot's. Later commits do not change the rows. There are no metadata columns (``_file``, ``_pos``),
    and conditions are not pushed into the scan. The tasks stay in the driver as long as any DataFrame made from this
    one exists.

    Raises StalePlan if the table no longer has the schema, ValueError if there are no tasks or no runtime.
    """
    java = _java(spark)
    if java is None or not tasks:
        raise ValueError("no tasks to read" if java else "the session has no Iceberg runtime for its version of Spark")
    id_ = f"secateur-{uuids.uuid4()}"
    if not java.stage(spark._jsparkSession, name, -1 if schema_id is None else schema_id, id_, "\n".join(tasks)):
        raise StalePlan(f"the table {name} no longer has the schema {schema_id}")
    try:
        frame = spark.read.format("iceberg").options(**staged_by(id_)).load(id_)
        java.removeWith(frame._jdf, id_)
    except BaseException:
        java.remove(id_)
        raise
    return frame.drop(*_LINEAGE)


def _names(spark: SparkSession, identifier: tuple[str, ...] | None, location: str) -> Iterator[str]:
    catalogs = _iceberg_catalogs(spark)
    if identifier:
        if identifier[0] in catalogs:
            yield _quoted(identifier)
        yield from (_quoted((catalog, *rest)) for catalog in catalogs for rest in _without_catalog(identifier, catalog))
    if "/" in location:
        yield location


def _without_catalog(identifier: tuple[str, ...], catalog: str) -> Iterator[tuple[str, ...]]:
    """Yield candidates for namespace and table: the whole identifier, or all but the name of PyIceberg's catalog."""
    if identifier[0] != catalog:
        yield identifier
    if len(identifier) > 2:
        yield identifier[1:]


def _iceberg_catalogs(spark: SparkSession) -> list[str]:
    settings = settings_of(spark)
    names = [key.removeprefix(_CATALOG) for key, value in settings.items() if value in CATALOGS]
    return sorted(name for name in names if "." not in name and not name.startswith("default_"))


def _quoted(parts: Sequence[str]) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def _java(spark: SparkSession) -> Any:
    """Return the Java object that stages tasks; None if the session is remote or no Iceberg runtime loads."""
    return compiled(spark, _SOURCE, "secateur.iceberg.StagedTasks")
