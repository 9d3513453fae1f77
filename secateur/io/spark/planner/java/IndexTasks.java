package secateur;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BaseFileScanTask;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.ScanTaskParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.Table;
import org.apache.iceberg.expressions.Binder;
import org.apache.iceberg.expressions.Evaluator;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionUtil;
import org.apache.iceberg.expressions.Projections;
import org.apache.iceberg.expressions.ResidualEvaluator;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.connector.read.Scan;
import org.slf4j.LoggerFactory;

/**
 * The tasks of the files that can hold a match, in the place of those that Iceberg would plan from manifests.
 *
 * They have what Iceberg's have: the whole file with its partition, its deletes, and what its partition leaves to check
 * of the filters that Iceberg has taken. Some of these Spark does not apply again: those that select whole partitions.
 */
final class IndexTasks {
    private final Table table;
    private final Expression filter;
    private final boolean caseSensitive;
    private final Map specs = new HashMap(); // by id: OfSpec

    private IndexTasks(Table table, Expression filter, boolean caseSensitive) {
        this.table = table;
        this.filter = filter;
        this.caseSensitive = caseSensitive;
    }

    /**
     * The columns of a scan that partitions are made of; null if only Iceberg can tell, from tasks.
     *
     * Iceberg names those of its tasks' specs alone: a filter on another column leaves out no task.
     */
    static List partitionColumns(Scan scan, Table table) {
        try {
            if (!ScanParts.areNamedAs(table, scan)) return null;
            Schema schema = table.schema();
            List read = Arrays.asList(scan.readSchema().fieldNames());
            Set found = new LinkedHashSet();
            for (Iterator specs = table.specs().values().iterator(); specs.hasNext();) {
                for (Iterator fields = ((PartitionSpec) specs.next()).fields().iterator(); fields.hasNext();) {
                    int id = ((PartitionField) fields.next()).sourceId();
                    Types.NestedField column = schema.asStruct().field(id);
                    if (column == null && schema.findField(id) != null) return null; // it lies within another column
                    if (column != null && read.contains(column.name())) found.add(column.name());
                }
            }
            return new ArrayList(found);
        } catch (Exception otherInternals) {
            return null;
        }
    }

    /** Whether Iceberg has taken a filter that selects whole partitions, which Spark has dropped. */
    static boolean hasFilterOfPartitions(Object scan, Table table) throws Exception {
        for (Iterator all = ScanParts.filters(scan).iterator(); all.hasNext();) {
            boolean isCaseSensitive = ScanParts.isCaseSensitive(scan);
            if (ExpressionUtil.selectsPartitions((Expression) all.next(), table, isCaseSensitive)) return true;
        }
        return false;
    }

    /** Whether Iceberg has taken filters of floats: it skips files with NaN that Spark, row by row, finds to match. */
    static boolean hasFloats(Object scan) throws Exception {
        Schema schema = ScanParts.schema(scan);
        Set columns = Binder.boundReferences(
            schema.asStruct(), ScanParts.filters(scan), ScanParts.isCaseSensitive(scan));
        for (Iterator all = columns.iterator(); all.hasNext();) {
            Type.TypeID type = schema.findType(((Integer) all.next()).intValue()).typeId();
            if (type == Type.TypeID.FLOAT || type == Type.TypeID.DOUBLE) return true;
        }
        return false;
    }

    /**
     * Whether a scan can be given tasks: it has none yet, names mean the same columns in its schema as in the table's, to
     * which partition specs are bound, and Iceberg would leave out no row that Spark finds to match.
     */
    static boolean areMissing(Object scan, Table table) throws Exception {
        return !ScanParts.isPlanned(scan) && Reflected.field(scan, "taskGroups").get(scan) == null
            && ScanParts.areNamedAs(table, scan) && !hasFloats(scan);
    }

    /**
     * Give a scan its tasks; false if Iceberg does not take them, or has planned in the meantime, or if `all` of them are
     * needed and Iceberg's filters leave some out.
     */
    static boolean into(Object scan, Table table, List texts, boolean all) {
        try {
            return put(scan, table, texts, all);
        } catch (Exception error) {
            LoggerFactory.getLogger("secateur").warn(table.name() + " is planned by Iceberg: " + error);
            return false;
        }
    }

    private static boolean put(Object scan, Table table, List texts, boolean all) throws Exception {
        List tasks = new IndexTasks(table, ScanParts.filter(scan), ScanParts.isCaseSensitive(scan)).of(texts);
        if (all && tasks.size() < texts.size()) return false;
        Field field = Reflected.field(scan, "tasks");
        synchronized (scan) {
            if (field.get(scan) != null) return false;
            field.set(scan, tasks);
            return true;
        }
    }

    private List of(List texts) {
        List found = new ArrayList();
        for (Iterator all = texts.iterator(); all.hasNext();) {
            FileScanTask told = ScanTaskParser.fromJson((String) all.next(), caseSensitive);
            DataFile file = (DataFile) told.file();
            OfSpec spec = ofSpec(file.specId());
            if (!spec.partitions.eval(file.partition())) continue;
            DeleteFile[] deletes = (DeleteFile[]) told.deletes().toArray(new DeleteFile[0]);
            found.add(new BaseFileScanTask(file, deletes, spec.schema, spec.text, spec.residuals));
        }
        return found;
    }

    private OfSpec ofSpec(int id) {
        OfSpec known = (OfSpec) specs.get(Integer.valueOf(id));
        if (known == null) {
            known = new OfSpec((PartitionSpec) table.specs().get(Integer.valueOf(id)), filter, caseSensitive);
            specs.put(Integer.valueOf(id), known);
        }
        return known;
    }

    private static final class OfSpec {
        final String schema, text;
        final ResidualEvaluator residuals;
        final Evaluator partitions; // may hold a match

        OfSpec(PartitionSpec spec, Expression filter, boolean caseSensitive) {
            schema = SchemaParser.toJson(spec.schema());
            text = PartitionSpecParser.toJson(spec);
            residuals = ResidualEvaluator.of(spec, filter, caseSensitive);
            Expression projected = Projections.inclusive(spec, caseSensitive).project(filter);
            partitions = new Evaluator(spec.partitionType(), projected, caseSensitive);
        }
    }
}
