package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.v2.FileScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScanBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Builds a scan: Spark's own builder gets the columns and exact filters, Python gets all deterministic filters.
 *
 * Spark 4.0 gives filters to no other builder that takes those of Catalyst.
 */
final class PrunedScanBuilder extends FileScanBuilder {
    private final PrunedTable table;
    private final ParquetScanBuilder parquet;
    private List filters = new ArrayList();
    private StructType hidden; // the required columns if `_metadata` is among them, else null

    PrunedScanBuilder(PrunedTable table, CaseInsensitiveStringMap options) {
        super(table.spark, noFiles(table), table.dataSchema);
        this.table = table;
        parquet = new ParquetScanBuilder(table.spark, noFiles(table), table.schema, table.dataSchema, options);
    }

    private static InMemoryFileIndex noFiles(PrunedTable table) {
        return new InMemoryFileIndex(
            table.spark, PrunedTable.seq(new ArrayList()), (Map) scala.collection.immutable.Map$.MODULE$.empty(),
            Option.empty(), NoopCache$.MODULE$,
            Option.apply(new PartitionSpec(table.partitionSchema, PrunedTable.seq(new ArrayList()))), Option.empty());
    }

    public void pruneColumns(StructType required) {
        hidden = HiddenColumn.isIn(required, table) ? required : null;
        if (hidden == null) parquet.pruneColumns(required);
    }

    /** Return all filters, so that Spark applies them; push into Spark's reader only those that lose no row there. */
    public Seq pushFilters(Seq given) {
        List pushed = new ArrayList();
        for (Iterator all = given.iterator(); all.hasNext();) {
            Expression filter = (Expression) all.next();
            if (filter.deterministic()) {
                if (!table.isCaseSensitive()) filters.add(filter);
                if (isExact(filter)) pushed.add(filter);
            }
        }
        parquet.pushFilters(PrunedTable.seq(pushed));
        return given;
    }

    public Predicate[] pushedFilters() { return parquet.pushedFilters(); }

    public Scan build() {
        if (hidden != null) return new FilesScan(table, hidden, filters);
        ParquetScan scan = parquet.build();
        SQLConf conf = table.spark.sessionState().conf();
        return new PrunedScan(
            table, table.source(filters), scan, Question.of(filters, ColumnFigures.asked(conf, scan.readSchema())), false,
            Grouping.isOf(scan.readPartitionSchema()));
    }

    /**
     * Whether Spark's reader loses no row by a filter. It can lose rows by filters on NULL, if null counts in the files
     * are missing or wrong; on names with a dot, which it reads as struct fields; on floats, whose bounds ignore NaN.
     */
    private static boolean isExact(Expression expression) {
        String type = expression.dataType().catalogString();
        if (!EXACT.contains(expression.getClass().getSimpleName())) return false;
        if (type.contains("float") || type.contains("double")) return false;
        if (expression instanceof AttributeReference) return !((AttributeReference) expression).name().contains(".");
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            if (!isExact((Expression) all.next())) return false;
        }
        return true;
    }

    private static final Set EXACT = new HashSet(Arrays.asList(new String[] {
        "And", "Or", "EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In", "InSet",
        "StartsWith", "IsNotNull", "Literal", "AttributeReference"}));
}
