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
        InputPartition[] all = batch.planInputPartitions(); // every call makes new partitions, so they can be changed
        FileRanges ranges = scan.ranges(more);
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
            return batch.planInputPartitions();
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
