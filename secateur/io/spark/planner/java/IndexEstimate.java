package secateur;

import java.util.OptionalLong;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.internal.SQLConf;

/**
 * How many rows of a scan of Iceberg's may match by the index: Spark asks for each side of a join, to choose its kind.
 *
 * Iceberg would read manifests for this. Spark takes such a number for a guess, and no answer depends on it.
 */
final class IndexEstimate implements Statistics {
    private final long rows;
    private final long bytes;

    private IndexEstimate(long rows, long bytes) {
        this.rows = rows;
        this.bytes = bytes;
    }

    /** Iceberg's own statistics where it has columns to tell of, needs no manifest, or plans the scan in any case. */
    static Statistics of(EnableRule rule, Table table, Scan scan, Predicate[] filters) {
        Statistics found = null;
        if (filters.length > 0 && !SQLConf.get().cboEnabled() && Switches.ofName(table.name()) == null) {
            try {
                found = asked(rule, table, scan, filters);
            } catch (Exception unknown) { // the rule will say why, when it asks for the files
            }
        }
        return found == null ? ((SupportsReportStatistics) scan).estimateStatistics() : found;
    }

    private static Statistics asked(EnableRule rule, Table table, Scan scan, Predicate[] filters) throws Exception {
        Object snapshot = Reflected.call(scan, "snapshotId");
        Schema schema = (Schema) Reflected.call(scan, "schema");
        if (snapshot == null || !IndexTasks.areMissing(scan, table, schema)) return null;
        String metadata = ((HasTableOperations) table).operations().current().metadataFileLocation();
        byte[] told = NarrowedScan.told(metadata, ((Long) snapshot).longValue(), schema, null);
        byte[] question = Answer.asked(SparkSession.active(), 0, SourceFilters.comparisons(filters));
        long rows = FilesReply.ofEstimate(rule.asker, Asker.DATA_FILES, told, question).rest.readLong();
        return new IndexEstimate(rows, SparkSchemaUtil.estimateSize(scan.readSchema(), rows));
    }

    public OptionalLong sizeInBytes() { return OptionalLong.of(bytes); }

    public OptionalLong numRows() { return OptionalLong.of(rows); }
}
