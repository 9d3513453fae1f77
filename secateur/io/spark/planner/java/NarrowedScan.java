package secateur;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.ScanTaskGroup;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.Table;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.types.StructType;

/** A scan of Iceberg's that reads only some ranges of some files, and the other files whole. */
final class NarrowedScan implements Scan, SupportsReportStatistics, SupportsRuntimeV2Filtering, Pruned {
    private final Scan scan;
    private final String name, text;
    private final long number;
    private final Figures figures;
    private final byte[] asked;
    private final Map ranges; // path -> long[] of starts and ends; files without an entry are read whole

    private NarrowedScan(Scan scan, String name, String text, long number, Figures figures, byte[] asked, Map ranges) {
        this.scan = scan;
        this.name = name;
        this.text = text;
        this.number = number;
        this.figures = figures;
        this.asked = asked;
        this.ranges = ranges;
    }

    static Object of(SparkSession session, Table table, Scan scan, List filters, EnableRule rule) throws Exception {
        long started = System.nanoTime();
        String metadata = ((HasTableOperations) table).operations().current().metadataFileLocation();
        Object snapshot = Reflected.call(scan, "snapshotId");
        if (metadata == null || snapshot == null) return "a table without a snapshot";
        if (rule.lookups.columns(metadata) == null) return "no index";
        Map files = new LinkedHashMap(); // the paths of the scan's tasks
        for (Iterator all = ((List) Reflected.call(scan, "tasks")).iterator(); all.hasNext();) {
            Object task = all.next();
            if (!(task instanceof FileScanTask)) return "not a scan of data files";
            files.put(((FileScanTask) task).file().location(), Boolean.TRUE);
        }
        List paths = new ArrayList(files.keySet());
        byte[] told = told(metadata, ((Long) snapshot).longValue(), (Schema) Reflected.call(scan, "schema"), paths);
        byte[] question = Answer.asked(session, 0, Question.of(filters));
        FilesReply reply = FilesReply.of(rule.asker, Asker.DATA_FILES, told, question);
        Figures figures = Figures.read(reply.rest);
        Map ranges = new HashMap();
        for (int i = 0; i < paths.size(); i++) {
            int count = reply.rest.readInt();
            if (count < 0) continue; // the snapshot that Python opened lacks this file
            long[] edges = new long[2 * count];
            for (int j = 0; j < edges.length; j++) edges[j] = reply.rest.readLong();
            ranges.put(paths.get(i), edges);
        }
        figures.setNanos(System.nanoTime() - started);
        return new NarrowedScan(scan, table.name(), reply.text, reply.number, figures, question, ranges);
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

    public String description() {
        String stages = figures.stages.isEmpty() ? "" : ", IndexStages: " + figures.stages;
        return scan.description() + ", IndexPruning: " + text + stages;
    }

    public Statistics estimateStatistics() { return ((SupportsReportStatistics) scan).estimateStatistics(); }

    public CustomMetric[] supportedCustomMetrics() {
        List all = new ArrayList(Arrays.asList(scan.supportedCustomMetrics()));
        all.addAll(Arrays.asList(Figures.supported()));
        return (CustomMetric[]) all.toArray(new CustomMetric[0]);
    }

    public CustomTaskMetric[] reportDriverMetrics() {
        List all = new ArrayList(Arrays.asList(scan.reportDriverMetrics()));
        all.addAll(Arrays.asList(figures.reported()));
        return (CustomTaskMetric[]) all.toArray(new CustomTaskMetric[0]);
    }

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
