/*
 * Iceberg's own scan of a query, with its tasks cut to the row groups that survive pruning.
 *
 * Compiled in the driver by Janino, together with EnableRule.java, if the session has Iceberg's runtime. Snapshot,
 * deletes, columns, grouping and run-time filters are Iceberg's; only file ranges without a match leave its tasks.
 * Sound: data files are immutable, so what the index proves about a file holds in every snapshot that has the file.
 */
package secateur;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.iceberg.BaseScanTaskGroup;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.ScanTaskGroup;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;

/** Replaces a scan: returns the pruned scan, a reason (a String) to leave the scan, or null if it is not Iceberg's. */
public final class IcebergScan implements Function {
    public Object apply(Object given) {
        Object[] parts = (Object[]) given;
        DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) parts[1];
        Scan scan = relation.scan();
        if (!scan.getClass().getName().equals("org.apache.iceberg.spark.source.SparkBatchQueryScan")) return null;
        if (relation.keyGroupedPartitioning().isDefined()) return "its tasks are grouped by partition keys";
        if (!(relation.relation().table() instanceof SparkTable)) return "not a table of Iceberg's catalog";
        Table table = ((SparkTable) relation.relation().table()).table();
        if (!(table instanceof HasTableOperations)) return "a table without metadata of its own";
        try {
            return NarrowedScan.of((SparkSession) parts[0], table, scan, (List) parts[2], (Asker) parts[3]);
        } catch (Exception error) {
            ((Asker) parts[3]).warn(table.name(), String.valueOf(error));
            return String.valueOf(error.getMessage());
        }
    }
}

/** A scan of Iceberg's that reads only some ranges of some files, and the other files whole. */
final class NarrowedScan implements Scan, SupportsReportStatistics, SupportsRuntimeV2Filtering, Pruned {
    private final Scan scan;
    private final String name, text;
    private final long number;
    private final byte[] asked;
    private final Map ranges; // path -> long[] of starts and ends; files without an entry are read whole

    private NarrowedScan(Scan scan, String name, String text, long number, byte[] asked, Map ranges) {
        this.scan = scan;
        this.name = name;
        this.text = text;
        this.number = number;
        this.asked = asked;
        this.ranges = ranges;
    }

    static Object of(SparkSession session, Table table, Scan scan, List filters, Asker asker) throws Exception {
        String metadata = ((HasTableOperations) table).operations().current().metadataFileLocation();
        Object snapshot = Reflected.call(scan, "snapshotId");
        if (metadata == null || snapshot == null) return "a table without a snapshot";
        if (asker.columns(metadata) == null) return "no index";
        Map files = new LinkedHashMap(); // the paths of the scan's tasks
        for (Iterator all = ((List) Reflected.call(scan, "tasks")).iterator(); all.hasNext();) {
            Object task = all.next();
            if (!(task instanceof FileScanTask)) return "not a scan of data files";
            files.put(((FileScanTask) task).file().location(), Boolean.TRUE);
        }
        List paths = new ArrayList(files.keySet());
        byte[] told = told(metadata, ((Long) snapshot).longValue(), (Schema) Reflected.call(scan, "schema"), paths);
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(told);
        byte[] question = Answer.asked(session, 0, Question.of(filters));
        DataInputStream reply = asker.ask(Asker.QUESTION, digest, question);
        String text = Answer.text(reply);
        long number = reply.readLong();
        if (number == Asker.UNREGISTERED) {
            asker.ask(Asker.DATA_FILES, digest, told);
            reply = asker.ask(Asker.QUESTION, digest, question);
            text = Answer.text(reply);
            number = reply.readLong();
        }
        if (number < 0) throw new IllegalStateException(text);
        Map ranges = new HashMap();
        for (int i = 0; i < paths.size(); i++) {
            int count = reply.readInt();
            if (count < 0) continue; // the snapshot that Python opened lacks this file
            long[] edges = new long[2 * count];
            for (int j = 0; j < edges.length; j++) edges[j] = reply.readLong();
            ranges.put(paths.get(i), edges);
        }
        return new NarrowedScan(scan, table.name(), text, number, question, ranges);
    }

    /** Encode the scan; secateur/io/spark/iceberg/listed_files.py decodes it. */
    private static byte[] told(String metadata, long snapshot, Schema schema, List paths) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        Asker.text(out, metadata);
        out.writeLong(snapshot);
        Asker.text(out, SchemaParser.toJson(schema));
        out.writeInt(paths.size());
        ByteArrayOutputStream texts = new ByteArrayOutputStream();
        for (int i = 0; i < paths.size(); i++) {
            texts.write(((String) paths.get(i)).getBytes(StandardCharsets.UTF_8));
            out.writeInt(texts.size());
        }
        texts.writeTo(out);
        return bytes.toByteArray();
    }

    public String location() { return name; }

    public String text() { return text; }

    public long number() { return number; }

    public StructType readSchema() { return scan.readSchema(); }

    public String description() { return scan.description() + ", IndexPruning: " + text; }

    public Statistics estimateStatistics() { return ((SupportsReportStatistics) scan).estimateStatistics(); }

    public CustomMetric[] supportedCustomMetrics() { return scan.supportedCustomMetrics(); }

    public CustomTaskMetric[] reportDriverMetrics() { return scan.reportDriverMetrics(); }

    public Scan.ColumnarSupportMode columnarSupportMode() { return scan.columnarSupportMode(); }

    public NamedReference[] filterAttributes() { return ((SupportsRuntimeV2Filtering) scan).filterAttributes(); }

    public void filter(Predicate[] predicates) { ((SupportsRuntimeV2Filtering) scan).filter(predicates); }

    public Batch toBatch() { return new NarrowedBatch(this, scan.toBatch()); }

    /** The tasks of a partition, cut to the ranges; empty if nothing of it has to be read. */
    List cut(ScanTaskGroup group) throws Exception {
        List found = new ArrayList();
        for (Iterator all = group.tasks().iterator(); all.hasNext();) {
            Object given = all.next();
            FileScanTask task = given instanceof FileScanTask ? (FileScanTask) given : null;
            long[] edges = task == null ? null : (long[]) ranges.get(task.file().location());
            if (edges == null || task.file().format() != FileFormat.PARQUET) {
                found.add(given);
                continue;
            }
            long first = task.start(), last = task.start() + task.length();
            for (int i = 0; i < edges.length; i += 2) {
                long start = Math.max(first, edges[i]), stop = Math.min(last, edges[i + 1]);
                if (start >= stop) continue;
                found.add(start == first && stop == last ? task : Reflected.part(task, start, stop - start));
            }
        }
        return found;
    }

    public boolean equals(Object other) {
        return other instanceof NarrowedScan && scan.equals(((NarrowedScan) other).scan)
            && Arrays.equals(asked, ((NarrowedScan) other).asked);
    }

    public int hashCode() { return 31 * scan.hashCode() + Arrays.hashCode(asked); }
}

final class NarrowedBatch implements Batch {
    private final NarrowedScan scan;
    private final Batch batch;

    NarrowedBatch(NarrowedScan scan, Batch batch) {
        this.scan = scan;
        this.batch = batch;
    }

    public InputPartition[] planInputPartitions() {
        InputPartition[] all = batch.planInputPartitions(); // every call makes new partitions, so they can be changed
        List found = new ArrayList();
        try {
            for (int i = 0; i < all.length; i++) {
                Field field = Reflected.taskGroup(all[i]);
                ScanTaskGroup group = (ScanTaskGroup) field.get(all[i]);
                List tasks = scan.cut(group);
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
            && batch.equals(((NarrowedBatch) other).batch);
    }

    public int hashCode() { return scan.hashCode(); }
}

/** Access to members of Iceberg's that are not public. */
final class Reflected {
    static Object call(Object target, String name) throws Exception {
        for (Class each = target.getClass(); each != null; each = each.getSuperclass()) {
            Method[] methods = each.getDeclaredMethods();
            for (int i = 0; i < methods.length; i++) {
                if (!methods[i].getName().equals(name) || methods[i].getParameterTypes().length > 0) continue;
                methods[i].setAccessible(true);
                return methods[i].invoke(target, new Object[0]);
            }
        }
        throw new NoSuchMethodException(name);
    }

    static Field taskGroup(InputPartition partition) throws Exception {
        Field field = partition.getClass().getDeclaredField("taskGroup");
        field.setAccessible(true);
        return field;
    }

    static Object part(FileScanTask task, long start, long length) throws Exception {
        Class made = Class.forName(
            "org.apache.iceberg.BaseFileScanTask$SplitScanTask", true, FileScanTask.class.getClassLoader());
        Constructor constructor = made.getDeclaredConstructor(
            new Class[] {Long.TYPE, Long.TYPE, FileScanTask.class});
        constructor.setAccessible(true);
        return constructor.newInstance(new Object[] {Long.valueOf(start), Long.valueOf(length), task});
    }
}
