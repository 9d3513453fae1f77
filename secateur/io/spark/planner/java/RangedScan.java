package secateur;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Spark's own scan, of whose splits only those parts are read that hold the midpoint of a row group that can match.
 *
 * Only its list of splits is another one, and that is used in the driver alone. Files are read whole if the format does
 * not split them, or if the query asks where splits lie. Rows that a deletion vector names are still left out: Delta
 * finds them by the positions that Parquet's reader gives, which count from the first row of the file, whatever part of
 * it is read; where Delta counts rows itself, its format splits no file.
 */
public final class RangedScan extends FileSourceScanExec {
    private static final Set PLACES = new HashSet(Arrays.asList(new String[] {
        "file_block_start", "file_block_length"})); // of a split, as columns
    private static final TreeNodeTag HIDES_PLACES = new TreeNodeTag("secateur.HIDES_PLACES"); // which copies keep
    private final FileSourceScanExec plain; // for tasks
    private boolean isCut;

    public RangedScan(
            HadoopFsRelation relation, Option stream, Seq output, StructType requiredSchema, Seq partitionFilters,
            Option optionalBucketSet, Option optionalNumCoalescedBuckets, Seq dataFilters, Option tableIdentifier,
            boolean disableBucketedScan) {
        super(
            relation, stream, output, requiredSchema, partitionFilters, optionalBucketSet, optionalNumCoalescedBuckets,
            dataFilters, tableIdentifier, disableBucketedScan);
        plain = new FileSourceScanExec(
            relation, stream, output, requiredSchema, partitionFilters, optionalBucketSet, optionalNumCoalescedBuckets,
            dataFilters, tableIdentifier, disableBucketedScan);
    }

    /** Nodes above that run without generated code take their children along into tasks, where this class is unknown. */
    public Object writeReplace() { return plain; }

    /** `hidesPlaces`: columns that say where splits lie are not for the query itself. */
    static RangedScan of(FileSourceScanExec scan, boolean hidesPlaces) {
        RangedScan found = new RangedScan(
            scan.relation(), scan.stream(), scan.output(), scan.requiredSchema(), scan.partitionFilters(),
            scan.optionalBucketSet(), scan.optionalNumCoalescedBuckets(), scan.dataFilters(), scan.tableIdentifier(),
            scan.disableBucketedScan());
        if (hidesPlaces) found.setTagValue(HIDES_PLACES, Boolean.TRUE);
        return found;
    }

    /** It equals no whole scan: Spark leaves a node as it is whose new children equal the old ones. */
    public boolean equals(Object other) { return other instanceof RangedScan && super.equals(other); }

    public int hashCode() { return super.hashCode(); }

    public boolean canEqual(Object other) { return other instanceof RangedScan; }

    public RDD inputRDD() {
        RDD all = super.inputRDD();
        synchronized (this) {
            if (!isCut && all instanceof FileScanRDD) cut((FileScanRDD) all);
            isCut = true;
        }
        return all;
    }

    private void cut(FileScanRDD all) {
        Object files = relation().location();
        if (!(files instanceof RangedFiles) || tellsPlaces()) return;
        Map ranges = ((RangedFiles) files).ranges();
        List pieces = new ArrayList();
        for (Iterator partitions = all.filePartitions().iterator(); partitions.hasNext();) {
            PartitionedFile[] splits = ((FilePartition) partitions.next()).files();
            for (int i = 0; i < splits.length; i++) {
                long[] edges = (long[]) ranges.get(splits[i].filePath().toPath());
                if (edges == null || !isSplitable(splits[i].filePath().toPath())) pieces.add(splits[i]);
                else cut(splits[i], edges, pieces);
            }
        }
        set(all, FilePartition.getFilePartitions(session(), PrunedTable.seq(pieces), SplitSize.of(pieces, session())));
    }

    private SparkSession session() { return (SparkSession) relation().sparkSession(); }

    private boolean isSplitable(Path path) {
        return relation().fileFormat().isSplitable(session(), relation().options(), path);
    }

    private boolean tellsPlaces() {
        if (getTagValue(HIDES_PLACES).isDefined()) return false;
        for (Iterator all = output().iterator(); all.hasNext();) {
            if (PLACES.contains(((Attribute) all.next()).name())) return true;
        }
        return false;
    }

    private static void cut(PartitionedFile split, long[] edges, List pieces) {
        long end = split.start() + split.length();
        for (int i = 0; i < edges.length; i += 2) {
            long start = Math.max(split.start(), edges[i]), stop = Math.min(end, edges[i + 1]);
            if (start >= stop) continue;
            pieces.add(new PartitionedFile(
                split.partitionValues(), split.filePath(), start, stop - start, split.locations(),
                split.modificationTime(), split.fileSize(), split.otherConstantMetadataColumnValues()));
        }
    }

    /** A scan reads its list of splits when Spark first asks for its partitions, which nobody has done yet. */
    private static void set(FileScanRDD scan, Seq partitions) {
        try {
            Field field = FileScanRDD.class.getDeclaredField("filePartitions");
            field.setAccessible(true);
            field.set(scan, partitions);
        } catch (ReflectiveOperationException otherInternals) {
            return; // it reads the files whole
        }
    }
}
