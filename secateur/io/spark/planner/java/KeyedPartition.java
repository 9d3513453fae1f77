package secateur;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** Files with the same values of the partition columns, which Spark groups by them. */
final class KeyedPartition extends FilePartition implements HasPartitionKey {
    private final InternalRow values; // the row that the reader appends to every row of these files

    KeyedPartition(int index, PartitionedFile[] files, InternalRow values) {
        super(index, files);
        this.values = values;
    }

    public InternalRow partitionKey() { return values; }

    /** Spark looks at the key in the driver only, and executors do not know this class. */
    public Object writeReplace() { return new FilePartition(index(), files()); }
}
