package secateur;

import java.util.Arrays;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.FilePartition;

final class PrunedBatch implements Batch {
    private final PrunedScan scan;
    private final byte[] more; // values of a join, or null

    PrunedBatch(PrunedScan scan, byte[] more) {
        this.scan = scan;
        this.more = more;
    }

    public InputPartition[] planInputPartitions() {
        FilePartition[] all = FilePartitions.of(scan.answer(), scan);
        return more == null ? all : FilePartitions.fewer(scan.narrowed(more), scan, all);
    }

    public PartitionReaderFactory createReaderFactory() { return scan.reader(); }

    public boolean equals(Object other) {
        if (!(other instanceof PrunedBatch)) return false;
        PrunedBatch batch = (PrunedBatch) other;
        return scan.equals(batch.scan) && Arrays.equals(more, batch.more);
    }

    public int hashCode() { return scan.hashCode(); }
}
