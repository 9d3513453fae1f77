package secateur;

import java.util.Collections;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.immutable.Map;

/** The most bytes of a split, which Spark 3.5 computes from files only: here of one that is as long as all ranges. */
final class SplitSize {
    static long of(Answer answer, SparkSession spark) {
        long more = (answer.start.length - 1) * spark.sessionState().conf().filesOpenCostInBytes();
        FileStatus status = new FileStatus(Math.max(0, answer.lengths() + more), false, 1, 1L, 0L, new Path("/"));
        Map none = (Map) scala.collection.immutable.Map$.MODULE$.empty();
        List file = Collections.singletonList(new FileStatusWithMetadata(status, none));
        List all = Collections.singletonList(new PartitionDirectory(InternalRow.empty(), PrunedTable.seq(file)));
        return FilePartition.maxSplitBytes(spark, PrunedTable.seq(all));
    }
}
