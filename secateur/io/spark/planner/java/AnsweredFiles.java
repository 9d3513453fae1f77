package secateur;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** The files of an answer, as Spark's V1 relations list them. */
final class AnsweredFiles implements FileIndex {
    private final Answer answer;
    private final StructType partitions;

    AnsweredFiles(Answer answer, StructType partitions) {
        this.answer = answer;
        this.partitions = partitions;
    }

    public Seq rootPaths() { return PrunedTable.seq(new ArrayList()); }

    public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
        Map none = (Map) scala.collection.immutable.Map$.MODULE$.empty();
        List found = new ArrayList();
        for (int i = 0; i < answer.paths.length; i++) {
            FileStatus status = new FileStatus(answer.sizes[i], false, 1, 1L << 27, answer.modified[i], answer.paths[i]);
            List file = Collections.singletonList(new FileStatusWithMetadata(status, none));
            found.add(new PartitionDirectory(new GenericInternalRow(answer.told[i]), PrunedTable.seq(file)));
        }
        return PrunedTable.seq(found);
    }

    public String[] inputFiles() {
        String[] found = new String[answer.paths.length];
        for (int i = 0; i < found.length; i++) found[i] = answer.paths[i].toString();
        return found;
    }

    public void refresh() {}

    public long sizeInBytes() {
        long total = 0;
        for (int i = 0; i < answer.sizes.length; i++) total += answer.sizes[i];
        return total;
    }

    public StructType partitionSchema() { return partitions; }

    public String toString() { return answer.paths.length + " files"; }
}
