package secateur;

import java.io.DataInputStream;
import java.util.OptionalLong;
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

    /**
     * Iceberg's own statistics where it has columns to tell of, needs no manifest, or plans the scan in any case.
     *
     * With Spark's cost-based optimizer, what the index knows of columns is added to them.
     */
    static Statistics of(EnableRule rule, Table table, Scan scan, Predicate[] filters) {
        boolean hasCosts = SQLConf.get().cboEnabled();
        Statistics own = hasCosts ? ((SupportsReportStatistics) scan).estimateStatistics() : null, found = null;
        if ((hasCosts || filters.length > 0) && Switches.ofName(table.name()) == null) {
            try {
                found = asked(rule, table, scan, filters, own);
            } catch (Exception unknown) { // the rule will say why, when it asks for the files
            }
        }
        if (found != null) return found;
        return own != null ? own : ((SupportsReportStatistics) scan).estimateStatistics();
    }

    private static Statistics asked(EnableRule rule, Table table, Scan scan, Predicate[] filters, Statistics own)
            throws Exception {
        ScannedSnapshot snapshot = ScannedSnapshot.of(scan, table);
        if (snapshot == null || (own == null && !IndexTasks.areMissing(scan, table))) return null;
        String[] columns = ColumnFigures.asked(SQLConf.get(), scan.readSchema());
        byte[] told = NarrowedScan.told(snapshot, ScanParts.schema(scan), null);
        byte[] question = Answer.asked(SparkSession.active(), 0, SourceFilters.comparisons(filters, columns));
        DataInputStream reply = FilesReply.ofEstimate(rule.asker, Asker.DATA_FILES, told, question).rest;
        long rows = reply.readLong();
        if (own != null) return FewerRows.of(own, rows, ColumnFigures.read(reply), scan.readSchema());
        return new IndexEstimate(rows, SparkSchemaUtil.estimateSize(scan.readSchema(), rows));
    }

    public OptionalLong sizeInBytes() { return OptionalLong.of(bytes); }

    public OptionalLong numRows() { return OptionalLong.of(rows); }
}
