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
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.collection.immutable.Map;

/** The most bytes of a split, which Spark 3.5 computes from files only: here of one that is as long as all ranges. */
final class SplitSize {
    static long of(Answer answer, SparkSession spark) { return of(answer.lengths(), answer.start.length, spark); }

    static long of(List pieces, SparkSession spark) {
        long total = 0;
        for (int i = 0; i < pieces.size(); i++) total += ((PartitionedFile) pieces.get(i)).length();
        return of(total, pieces.size(), spark);
    }

    private static long of(long bytes, int ranges, SparkSession spark) {
        long more = (ranges - 1) * spark.sessionState().conf().filesOpenCostInBytes();
        FileStatus status = new FileStatus(Math.max(0, bytes + more), false, 1, 1L, 0L, new Path("/"));
        Map none = (Map) scala.collection.immutable.Map$.MODULE$.empty();
        List file = Collections.singletonList(new FileStatusWithMetadata(status, none));
        List all = Collections.singletonList(new PartitionDirectory(InternalRow.empty(), PrunedTable.seq(file)));
        return FilePartition.maxSplitBytes(spark, PrunedTable.seq(all));
    }
}
