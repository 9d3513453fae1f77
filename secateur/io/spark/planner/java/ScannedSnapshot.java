package secateur;

import org.apache.iceberg.BatchScan;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;

/**
 * The snapshot that a scan of Iceberg's reads, and a metadata file that has it.
 *
 * Scans for Spark 4.1 tell their snapshot, those for earlier versions only one that a query or a MERGE has chosen. Another
 * one reads what is current as Iceberg plans it. Sound: metadata is read anew into another object, so what is the same
 * object before and after the planning was current all the while.
 */
final class ScannedSnapshot {
    final String metadata;
    final long id;
    final boolean isChosen; // else Iceberg may still plan another one
    private final TableOperations operations;
    private final TableMetadata before;

    private ScannedSnapshot(TableOperations operations, TableMetadata before, long id, boolean isChosen) {
        this.metadata = before.metadataFileLocation();
        this.id = id;
        this.isChosen = isChosen;
        this.operations = operations;
        this.before = before;
    }

    /** The snapshot of a scan; null if it has none, or none of its own. */
    static ScannedSnapshot of(Object scan, Table table) throws Exception {
        TableOperations operations = ((HasTableOperations) table).operations();
        TableMetadata before = operations.current();
        if (before.metadataFileLocation() == null) return null;
        Long chosen = (Long) Reflected.call(scan, "snapshotId");
        if (chosen != null) return new ScannedSnapshot(operations, before, chosen.longValue(), true);
        if (ScanParts.tellSnapshot(scan)) return null;
        Object planned = Reflected.field(scan, "scan").get(scan);
        Snapshot current = planned instanceof BatchScan ? ((BatchScan) planned).snapshot() : null;
        if (current == null || before.snapshot(current.snapshotId()) == null) return null;
        return new ScannedSnapshot(operations, before, current.snapshotId(), false);
    }

    /** Have a scan tell its snapshot that Iceberg is to plan before EnableRule sees it. */
    static void tell(Object scan, Table table) throws Exception {
        ScannedSnapshot current = of(scan, table);
        if (current == null || current.isChosen) return;
        Reflected.call(scan, "tasks");
        if (current.wasPlanned()) Reflected.field(scan, "snapshotId").set(scan, Long.valueOf(current.id));
    }

    /** Whether a scan that Iceberg has begun and ended to plan, since this was made, reads this snapshot. */
    boolean wasPlanned() { return isChosen || operations.current() == before; }

    /** The same for a scan that has its tasks. */
    ScannedSnapshot settled() { return new ScannedSnapshot(operations, before, id, true); }
}
