"""Rewrite chosen data files of an Iceberg table in another order, by Iceberg's own action.

The action rewrites what a scan of the table plans. It gets a table whose scans plan exactly the chosen files, and
otherwise is the table itself: its writers, its sequence numbers, and its check for conflicting commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from secateur.errors import InvalidOption
from secateur.index.advise.row_orders import Curve, RowOrder
from secateur.io.spark.iceberg.compiled import compiled
from secateur.io.spark.iceberg.reader import find_table, live_table
from secateur.io.tables.iceberg.snapshot import IcebergSnapshot
from secateur.pruning.predicate.expressions import split_name

# Janino needs raw types, without lambdas or inferred type arguments.
# Chosen: an action that scans in another way than this class knows is refused before it writes anything.
# OnlyChosen: every refinement of a scan is a new scan, which must plan the chosen files too.
_SOURCE = """
package secateur.iceberg;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.*;
import org.apache.iceberg.actions.RewriteDataFiles;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.spark.actions.SparkActions;
import org.apache.spark.sql.SparkSession;

public class ChosenFiles {
    public Table of(Table live, String paths) {
        Set chosen = new HashSet(Arrays.asList(paths.split("\\0")));
        return new Chosen(((HasTableOperations) live).operations(), live.name(), chosen);
    }

    public int rewrite(SparkSession spark, Table table, boolean curved, String names) {
        RewriteDataFiles action = (RewriteDataFiles) SparkActions.get(spark).rewriteDataFiles(table);
        String[] columns = names.split("\\0");
        if (curved) {
            action.zOrder(columns);
        } else {
            SortOrder.Builder order = SortOrder.builderFor(table.schema());
            for (int i = 0; i < columns.length; i++) {
                order.asc(columns[i], NullOrder.NULLS_FIRST);
            }
            action.sort(order.build());
        }
        action.option("rewrite-all", "true");
        RewriteDataFiles.Result result = (RewriteDataFiles.Result) action.execute();
        return result.rewrittenDataFilesCount();
    }
}

class Chosen extends BaseTable {
    private final Set paths;

    Chosen(TableOperations operations, String name, Set paths) {
        super(operations, name);
        this.paths = paths;
    }

    public TableScan newScan() {
        return OnlyChosen.of(super.newScan(), paths);
    }

    public BatchScan newBatchScan() {
        throw new UnsupportedOperationException("chosen files are planned by newScan() alone");
    }
}

class OnlyChosen implements InvocationHandler {
    private final TableScan scan;
    private final Set paths;

    private OnlyChosen(TableScan scan, Set paths) {
        this.scan = scan;
        this.paths = paths;
    }

    static TableScan of(TableScan scan, Set paths) {
        return (TableScan) Proxy.newProxyInstance(
            TableScan.class.getClassLoader(), new Class[] {TableScan.class}, new OnlyChosen(scan, paths));
    }

    public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
        if (method.getName().equals("planTasks")) {
            throw new UnsupportedOperationException("chosen files are planned by planFiles() alone");
        }
        Object result;
        try {
            result = method.invoke(scan, arguments);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
        if (method.getName().equals("planFiles")) {
            return chosen((CloseableIterable) result);
        }
        return result instanceof TableScan ? OnlyChosen.of((TableScan) result, paths) : result;
    }

    private CloseableIterable chosen(CloseableIterable tasks) throws Exception {
        List kept = new ArrayList();
        Set missing = new HashSet(paths);
        for (Iterator each = tasks.iterator(); each.hasNext();) {
            FileScanTask task = (FileScanTask) each.next();
            String path = ((ContentFile) task.file()).location();
            if (paths.contains(path)) {
                missing.remove(path);
                kept.add(task);
            }
        }
        tasks.close();
        if (!missing.isEmpty()) {
            throw new ValidationException("no longer live: %s", new Object[] {missing.iterator().next()});
        }
        return CloseableIterable.withNoopClose(kept);
    }
}
"""


@dataclass(frozen=True)
class FileSetRewrite:
    """Data files of a table, which a rewrite reads as they are when it begins."""

    spark: SparkSession
    java: Any
    table: Any
    count: int

    def rewrite(self, order: RowOrder) -> None:
        """Rewrite them, with their deletes applied. Raises Java's error if one is not live, or a commit conflicts."""
        names = "\0".join(".".join(split_name(name)) for name in order.columns)
        rewritten = self.java.rewrite(self.spark._jsparkSession, self.table, order.curve is Curve.ZORDER, names)
        assert rewritten == self.count, "the scan plans each of the files, or none"


def choose(spark: SparkSession, table: IcebergSnapshot, paths: Sequence[str]) -> FileSetRewrite:
    """Choose data files of a table, by their paths as in manifests, for Iceberg's own action.

    Raises InvalidOption if the session cannot load the table for writing.
    """
    java = compiled(spark, _SOURCE, "secateur.iceberg.ChosenFiles")
    if java is None:
        raise InvalidOption(
            "this session cannot rewrite Iceberg files: it needs Iceberg's runtime for its version of Spark, in this "
            "process's JVM, not Spark Connect; or run the statements, where there are some"
        )
    name = find_table(spark, table.identifier, table.location, str(table.metadata.table_uuid))
    if name is None or name.endswith(".metadata.json"):
        raise InvalidOption(
            f"no Iceberg catalog of this session has the table {table.location}: open it by its name in Spark's "
            "catalog, open_table(name, spark=spark)"
        )
    return FileSetRewrite(spark, java, java.of(live_table(spark, name), "\0".join(paths)), len(set(paths)))
