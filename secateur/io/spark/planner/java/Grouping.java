package secateur;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.LogicalExpressions;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.V2ScanPartitioningAndOrdering$;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * What Spark is told of a scan's partitions: each has one value of every partition column that is read.
 *
 * Then a join or an aggregate by these columns needs no shuffle, and no sort if it is by one alone. Sound: the key of a
 * partition is the very row of values that Spark's reader appends to the rows of its files. Nothing is told of columns
 * in files: their order is a claim of whoever wrote them.
 */
final class Grouping {
    private Grouping() { }

    /** Whether partitions are to have keys: the session wants it, and Spark compares values of these types by identity. */
    static boolean isOf(StructType read) {
        if (!Switches.isGrouping() || read.length() == 0) return false;
        StructField[] columns = read.fields();
        for (int i = 0; i < columns.length; i++) if (!isExact(columns[i].dataType())) return false;
        return true;
    }

    /** Zeros of floats are equal with either sign, and texts with a collation in other cases: as keys they are not. */
    private static boolean isExact(DataType type) {
        return type instanceof IntegralType || type instanceof BooleanType || type instanceof DateType
            || type instanceof TimestampType || type instanceof TimestampNTZType || type instanceof DecimalType
            || type.equals(StringType$.MODULE$);
    }

    static Partitioning partitioning(StructType read, Answer answer, PrunedScan scan) {
        Set keys = new HashSet();
        for (int i = 0; i < answer.told.length; i++) keys.add(FilePartitions.row(scan, answer.told[i]));
        return new KeyGroupedPartitioning(columns(read), keys.size());
    }

    static Partitioning none() { return new UnknownPartitioning(0); }

    private static Expression[] columns(StructType read) {
        String[] names = read.fieldNames();
        Expression[] found = new Expression[names.length];
        for (int i = 0; i < names.length; i++) found[i] = LogicalExpressions.identity(Reference.to(names[i]));
        return found;
    }

    /**
     * The order of rows that have one value of the only column.
     *
     * Nothing is told of several: by a setting of its own, Spark 4.1 groups by some of them, and keeps the order of all.
     * Nor where Spark 4.3 may merge partitions by their order: it reads them side by side, and fails on Parquet files.
     */
    static SortOrder[] order(StructType read) {
        if (read.length() != 1 || Switches.isMergingByOrder()) return new SortOrder[0];
        return new SortOrder[] {Expressions.sort(Reference.to(read.fieldNames()[0]), SortDirection.ASCENDING)};
    }

    /** Files by their values of the partition columns: InternalRow -> list of PartitionedFile. */
    static Map byKey(List files) {
        Map found = new LinkedHashMap();
        for (int i = 0; i < files.size(); i++) {
            InternalRow key = ((PartitionedFile) files.get(i)).partitionValues();
            List known = (List) found.get(key);
            if (known == null) found.put(key, known = new ArrayList());
            known.add(files.get(i));
        }
        return found;
    }

    /** How many partitions each key has: InternalRow -> Integer. */
    static Map counts(FilePartition[] partitions) {
        Map found = new HashMap();
        for (int i = 0; i < partitions.length; i++) {
            InternalRow key = ((KeyedPartition) partitions[i]).partitionKey();
            Integer known = (Integer) found.get(key);
            found.put(key, Integer.valueOf(known == null ? 1 : known.intValue() + 1));
        }
        return found;
    }

    /** A plan whose scans are known to be grouped: Spark's rule has run before they were in it. */
    static LogicalPlan told(LogicalPlan node) {
        if (node instanceof DataSourceV2ScanRelation) {
            Object scan = ((DataSourceV2ScanRelation) node).scan();
            boolean isGrouped = scan instanceof PrunedScan && ((PrunedScan) scan).isGrouped;
            return isGrouped ? (LogicalPlan) V2ScanPartitioningAndOrdering$.MODULE$.apply(node) : node;
        }
        return Children.rewritten(node, new Rewrite() {
            public LogicalPlan rewritten(LogicalPlan child) { return told(child); }
        });
    }
}
