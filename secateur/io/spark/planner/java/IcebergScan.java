package secateur;

import java.util.List;
import java.util.function.Function;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * Replaces a scan: returns the pruned scan, a reason (a String) to leave it, or null if it is not Iceberg's.
 *
 * Compiled only if the session has Iceberg's runtime. Snapshot, deletes, columns, grouping and run-time filters are
 * Iceberg's; only file ranges without a match leave its tasks. Sound: data files are immutable, so what the index
 * proves about a file holds in every snapshot that has the file.
 */
public final class IcebergScan implements Function {
    static final String KIND = "org.apache.iceberg.spark.source.SparkBatchQueryScan";

    public Object apply(Object given) {
        Object[] parts = (Object[]) given;
        SparkSession session = (SparkSession) parts[0];
        if (!(parts[1] instanceof DataSourceV2ScanRelation)) return null; // Delta's
        DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) parts[1];
        DeferredScan deferred = relation.scan() instanceof DeferredScan ? (DeferredScan) relation.scan() : null;
        Scan scan = deferred == null ? relation.scan() : deferred.scan;
        ScannedSnapshot known = scan instanceof NarrowedScan ? ((NarrowedScan) scan).snapshot : null;
        if (scan instanceof NarrowedScan) scan = ((NarrowedScan) scan).scan;
        if (!scan.getClass().getName().equals(KIND)) return null;
        Object target = relation.relation().table();
        if (target instanceof StandIn) target = ((StandIn) target).standsFor();
        if (target instanceof RowLevelOperationTable) target = ((RowLevelOperationTable) target).table();
        if (!(target instanceof SparkTable)) return "not a table of Iceberg's catalog";
        Table table = ((SparkTable) target).table();
        if (!(table instanceof HasTableOperations)) return "a table without metadata of its own";
        try {
            boolean isPartial = !(parts[2] instanceof List);
            String[] columns = ColumnFigures.asked(session.sessionState().conf(), scan.readSchema());
            byte[] question = isPartial ? (byte[]) parts[2] : Question.of((List) parts[2], columns);
            if (isPartial && IndexTasks.hasFloats(scan)) return "Iceberg filters floats by its own rules";
            boolean isChosen = isPartial && IndexTasks.hasFilterOfPartitions(scan, table);
            if (isChosen) deferred = null; // Iceberg's tasks tell which files are counted
            return NarrowedScan.of(
                session, table, scan, known, question, deferred, isPartial, (EnableRule) parts[3]);
        } catch (Exception error) {
            ((EnableRule) parts[3]).events.warn(table.name(), String.valueOf(error));
            return String.valueOf(error.getMessage());
        }
    }
}
