package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.read.V1Scan;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;

/** A scan of whole surviving files, for queries that name `_metadata`: only Spark's V1 relations read that column. */
final class FilesScan implements V1Scan {
    final PrunedTable table;
    private final StructType columns;
    private final byte[] question;
    private Answer answer; // to the question; requested once

    FilesScan(PrunedTable table, StructType required, List filters) {
        this.table = table;
        columns = whole(required, table);
        question = Question.of(HiddenColumn.needsSplits(required) ? ofPartitions(filters, table) : filters);
    }

    synchronized Answer answer() {
        if (answer == null) answer = Answer.to(table, 0, question);
        return answer;
    }

    public StructType readSchema() { return columns; }

    public String description() {
        return table.name + ", IndexPruning: " + answer().text + ", and the other row groups of their files";
    }

    public BaseRelation toV1TableScan(SQLContext context) { return new FilesRelation(this, context); }

    /** The required columns with all of their fields. */
    private static StructType whole(StructType required, PrunedTable table) {
        StructType found = new StructType();
        for (int i = 0; i < required.length(); i++) {
            String name = required.apply(i).name();
            boolean isHidden = name.equals(HiddenColumn.NAME);
            found = isHidden ? found.add(name, HiddenColumn.type(), false) : found.add(table.schema.apply(name));
        }
        return found;
    }

    /** Filters that use only partition columns. Spark computes splits from the bytes of all files that these leave. */
    private static List ofPartitions(List filters, PrunedTable table) {
        Set columns = new HashSet(Arrays.asList(table.partitionSchema.fieldNames()));
        List found = new ArrayList();
        for (int i = 0; i < filters.size(); i++) {
            if (RelationTable.isOf((Expression) filters.get(i), columns)) found.add(filters.get(i));
        }
        return found;
    }
}
