package secateur;

import org.apache.iceberg.BatchScan;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.spark.sql.connector.read.Scan;

/**
 * The snapshot of a scan that tells none, as in Iceberg 1.11 for Spark 4.0: it reads what is current as it is planned.
 *
 * Sound: metadata is read anew into another object, so what is the same object before and after the planning was current
 * all the while. A scan that has been planned before is made and planned anew.
 */
final class CurrentSnapshot {
    static final String SCHEMA = "expectedSchema"; // of the columns that are read; Iceberg 1.12 tells the table's
    final Scan scan; // which has its tasks
    final String metadata;
    final long id;

    private CurrentSnapshot(Scan scan, String metadata, long id) {
        this.scan = scan;
        this.metadata = metadata;
        this.id = id;
    }

    static boolean isReadBy(Scan scan) { return Reflected.has(scan, SCHEMA); }

    /** The snapshot, or a reason (a String) why it is not known. */
    static Object of(Scan given, DeferredScan deferred) throws Exception {
        TableOperations operations = ((HasTableOperations) (Table) Reflected.call(given, "table")).operations();
        TableMetadata before = operations.current();
        Scan scan = given;
        if (Reflected.field(given, "tasks").get(given) != null) {
            if (deferred == null) return "on Spark 4.0, Iceberg does not tell which snapshot it has planned";
            scan = deferred.fresh();
        }
        Reflected.call(scan, "tasks");
        Object own = Reflected.field(scan, "scan").get(scan);
        Snapshot snapshot = own instanceof BatchScan ? ((BatchScan) own).snapshot() : null;
        if (operations.current() != before) return "the table has changed while Iceberg planned it";
        if (snapshot == null || before.metadataFileLocation() == null) return "a table without a snapshot";
        return new CurrentSnapshot(scan, before.metadataFileLocation(), snapshot.snapshotId());
    }
}
