package secateur;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.iceberg.BaseScanTaskGroup;
import org.apache.iceberg.ScanTaskGroup;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/**
 * The partitions of Iceberg's batch with fewer ranges, each with the key of its group; those without a range are gone.
 *
 * Spark groups a scan by the keys of the partitions that this batch returns, so a group may be gone: Spark puts an
 * empty one where a join needs it. After values of a join came, no group may be there that was not there before. So
 * they are cut from what is left without them, and where anything fails, the result is that of the same cuts without it.
 */
final class NarrowedBatch implements Batch {
    private final NarrowedScan scan;
    private final Batch batch;
    private final byte[] more; // values of a join, or null

    NarrowedBatch(NarrowedScan scan, Batch batch, byte[] more) {
        this.scan = scan;
        this.batch = batch;
        this.more = more;
    }

    public InputPartition[] planInputPartitions() {
        InputPartition[] kept = cut(batch.planInputPartitions(), scan.ranges);
        if (kept == null) return batch.planInputPartitions();
        FileRanges fewer = scan.ranges(more);
        InputPartition[] left = fewer == scan.ranges ? kept : cut(kept, fewer);
        return left == null ? cut(batch.planInputPartitions(), scan.ranges) : left;
    }

    /** Partitions cut in place: every call of Iceberg's batch makes new ones. Null if Iceberg has other internals. */
    private static InputPartition[] cut(InputPartition[] all, FileRanges ranges) {
        List found = new ArrayList();
        try {
            for (int i = 0; i < all.length; i++) {
                Field field = Reflected.taskGroup(all[i]);
                ScanTaskGroup group = (ScanTaskGroup) field.get(all[i]);
                List tasks = ranges.cut(group);
                if (tasks.isEmpty()) continue;
                field.set(all[i], new BaseScanTaskGroup(group.groupingKey(), tasks));
                found.add(all[i]);
            }
        } catch (Exception error) {
            return null;
        }
        return (InputPartition[]) found.toArray(new InputPartition[0]);
    }

    public PartitionReaderFactory createReaderFactory() { return batch.createReaderFactory(); }

    public boolean equals(Object other) {
        return other instanceof NarrowedBatch && scan.equals(((NarrowedBatch) other).scan)
            && batch.equals(((NarrowedBatch) other).batch) && Arrays.equals(more, ((NarrowedBatch) other).more);
    }

    public int hashCode() { return scan.hashCode(); }
}
