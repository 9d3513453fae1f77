package secateur;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructField;
import scala.collection.Iterator;

/** Splits and packs the ranges of an answer into the partitions of a scan, as Spark does with files. */
final class FilePartitions {
    /** The partitions of a scan. */
    static FilePartition[] of(Answer answer, PrunedScan scan) { return of(answer, scan, false, null); }

    /** Those of fewer ranges than Spark has planned with, which gave `before`: one stays one, and of a key come no more. */
    static FilePartition[] fewer(Answer answer, PrunedScan scan, FilePartition[] before) {
        return of(answer, scan, before.length <= 1, scan.isGrouped ? Grouping.counts(before) : null);
    }

    private static FilePartition[] of(Answer answer, PrunedScan scan, boolean inOne, Map limits) {
        SparkSession spark = scan.table.spark;
        long most = inOne ? Long.MAX_VALUE : SplitSize.of(answer, spark);
        List pieces = pieces(answer, scan, most);
        if (scan.isGrouped) return grouped(pieces, spark, most, limits);
        if (inOne) {
            if (pieces.isEmpty()) return new FilePartition[0];
            PartitionedFile[] all = (PartitionedFile[]) pieces.toArray(new PartitionedFile[0]);
            return new FilePartition[] {new FilePartition(0, all)};
        }
        List found = packed(pieces, spark, most);
        return (FilePartition[]) found.toArray(new FilePartition[0]);
    }

    private static List packed(List pieces, SparkSession spark, long most) {
        Collections.sort(pieces, new Comparator() {
            public int compare(Object a, Object b) {
                return Long.compare(((PartitionedFile) b).length(), ((PartitionedFile) a).length());
            }
        });
        List found = new ArrayList();
        Iterator all = FilePartition.getFilePartitions(spark, PrunedTable.seq(pieces), most).iterator();
        while (all.hasNext()) found.add(all.next());
        return found;
    }

    /** The same, each for files with the same values of the partition columns. */
    private static FilePartition[] grouped(List pieces, SparkSession spark, long most, Map limits) {
        List found = new ArrayList();
        for (java.util.Iterator groups = Grouping.byKey(pieces).entrySet().iterator(); groups.hasNext();) {
            Map.Entry group = (Map.Entry) groups.next();
            List packed = packed((List) group.getValue(), spark, most);
            Integer limit = limits == null ? null : (Integer) limits.get(group.getKey());
            int parts = limit == null ? packed.size() : Math.min(packed.size(), limit.intValue());
            for (int i = 0; i < parts; i++) {
                PartitionedFile[] files = together(packed, i, parts);
                found.add(new KeyedPartition(found.size(), files, (InternalRow) group.getKey()));
            }
        }
        return (FilePartition[]) found.toArray(new FilePartition[0]);
    }

    /** The files of every partition whose number is `first` more than a multiple of `step`. */
    private static PartitionedFile[] together(List packed, int first, int step) {
        List files = new ArrayList();
        for (int i = first; i < packed.size(); i += step) {
            Collections.addAll(files, (Object[]) ((FilePartition) packed.get(i)).files());
        }
        return (PartitionedFile[]) files.toArray(new PartitionedFile[0]);
    }

    /** The ranges as files, none longer than `most` bytes. */
    private static List pieces(Answer answer, PrunedScan scan, long most) {
        Path[] paths = answer.paths;
        InternalRow[] rows = new InternalRow[paths.length];
        SparkPath[] names = new SparkPath[paths.length];
        for (int i = 0; i < paths.length; i++) {
            rows[i] = row(scan, answer.told[i]);
            names[i] = SparkPath.fromPath(paths[i]);
        }
        List pieces = new ArrayList(answer.start.length);
        for (int i = 0; i < answer.start.length; i++) {
            int file = answer.file[i];
            for (long done = 0; done < answer.length[i]; done += most) {
                long start = answer.start[i] + done, size = Math.min(most, answer.length[i] - done);
                String[] hosts = answer.files == null ? Hosts.NONE : Hosts.of(answer.files[file], start, size);
                pieces.add(new PartitionedFile(
                    rows[file], names[file], start, size, hosts, answer.modified[file],
                    answer.sizes[file], (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty()));
                if (most == Long.MAX_VALUE) break;
            }
        }
        return pieces;
    }

    static InternalRow row(PrunedScan scan, Object[] all) {
        StructField[] read = scan.parquet.readPartitionSchema().fields();
        Object[] values = new Object[read.length];
        for (int i = 0; i < read.length; i++) {
            values[i] = all[((Integer) scan.table.partitionSchema.getFieldIndex(read[i].name()).get()).intValue()];
        }
        return new GenericInternalRow(values);
    }
}
