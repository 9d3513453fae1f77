package secateur;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.Table;
import org.apache.iceberg.types.Types;
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
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;

/** A scan of Iceberg's that reads only some ranges of some files, and the other files whole. */
final class NarrowedScan implements Scan, SupportsReportStatistics, SupportsRuntimeV2Filtering, Limitable, Pruned, TakesKeys {
    final Scan scan;
    final ScannedSnapshot snapshot;
    private final String name;
    private final SparkSession session;
    private final EnableRule rule;
    private final boolean isPartial;
    private final String[] indexed; // columns
    private final byte[] asked;
    final FileRanges ranges; // without values of a join
    private volatile Figures figures; // of the last reply
    private volatile String narrowed = ""; // what is left after run-time filters, for explain()
    private final ThreadLocal values = new ThreadLocal(); // of a join, for the next batch that this thread makes
    private boolean isKeyed; // narrowed by the keys of a source already, which a rule must not collect again

    private NarrowedScan(
            SparkSession session, Scan scan, ScannedSnapshot snapshot, String name, EnableRule rule, boolean isPartial,
            String[] indexed, byte[] asked, FileRanges ranges) {
        this.session = session;
        this.scan = scan;
        this.snapshot = snapshot;
        this.name = name;
        this.rule = rule;
        this.isPartial = isPartial;
        this.indexed = indexed;
        this.asked = asked;
        this.ranges = ranges;
        this.figures = ranges.figures;
    }

    /** `known`: the snapshot of a scan that has its tasks, or null. The result is a reason (a String) if there is no scan. */
    static Object of(
            SparkSession session, Table table, Scan scan, ScannedSnapshot known, byte[] asked, DeferredScan deferred,
            boolean isPartial, EnableRule rule) throws Exception {
        ScannedSnapshot snapshot = known == null ? ScannedSnapshot.of(scan, table) : known;
        if (snapshot == null) return "a table without a snapshot";
        String[] indexed = rule.lookups.columns(snapshot.metadata);
        if (indexed == null) return "no index";
        Schema schema = ScanParts.schema(scan);
        byte[] question = Answer.asked(session, 0, asked);
        FileRanges ranges = null;
        if (deferred != null && IndexTasks.areMissing(scan, table)) {
            Scan own = deferred.fresh();
            ranges = FileRanges.ofSnapshot(rule.asker, told(snapshot, schema, null), question);
            if (ranges != null && IndexTasks.into(own, table, ranges.tasks, isPartial)) scan = own;
            else ranges = null;
        }
        if (ranges == null) {
            if (!snapshot.isChosen) {
                if (deferred != null) scan = deferred.fresh();
                else if (ScanParts.isPlanned(scan)) return "Iceberg for this Spark does not tell which snapshot it has planned";
            }
            List paths = paths(scan);
            if (!snapshot.wasPlanned()) return "the table has changed while Iceberg planned it";
            if (paths == null) return "not a scan of data files";
            ranges = FileRanges.of(rule.asker, told(snapshot, schema, paths), paths, question);
        }
        return new NarrowedScan(
            session, scan, snapshot.settled(), table.name(), rule, isPartial, names(indexed, schema), question, ranges);
    }

    /** The paths of a scan's tasks, which Iceberg plans for this if it has not yet; null if some read no data file. */
    private static List paths(Scan scan) throws Exception {
        Map files = new LinkedHashMap();
        for (Iterator all = ((List) Reflected.call(scan, "tasks")).iterator(); all.hasNext();) {
            Object task = all.next();
            if (!(task instanceof FileScanTask)) return null;
            files.put(((FileScanTask) task).file().location(), Boolean.TRUE);
        }
        return new ArrayList(files.keySet());
    }

    /** The names of the indexed columns that a scan has; the index knows them by their field ids. */
    private static String[] names(String[] ids, Schema schema) {
        List found = new ArrayList();
        for (int i = 0; i < ids.length; i++) {
            Types.NestedField field = schema.asStruct().field(Integer.parseInt(ids[i]));
            if (field != null) found.add(field.name());
        }
        return (String[]) found.toArray(new String[0]);
    }

    /** Encode a scan of some files, or of the whole snapshot (null); listed_files.py decodes it. */
    static byte[] told(ScannedSnapshot snapshot, Schema schema, List paths) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        Asker.text(out, snapshot.metadata);
        out.writeLong(snapshot.id);
        Asker.text(out, SchemaParser.toJson(schema));
        if (paths == null) {
            out.writeInt(-1);
            return bytes.toByteArray();
        }
        out.writeInt(paths.size());
        ByteArrayOutputStream texts = new ByteArrayOutputStream();
        for (int i = 0; i < paths.size(); i++) {
            texts.write(((String) paths.get(i)).getBytes(StandardCharsets.UTF_8));
            out.writeInt(texts.size());
        }
        texts.writeTo(out);
        return bytes.toByteArray();
    }

    public Scan partial(DataSourceV2ScanRelation relation, byte[] question) {
        return OtherScans.partial(rule, session, relation, question);
    }

    public boolean isPartial() { return isPartial; }

    public Known[] known() { return ranges.known; }

    public String location() { return name; }

    public String text() { return ranges.text; }

    public long number() { return ranges.number; }

    public StructType readSchema() { return scan.readSchema(); }

    public String description() {
        String stages = figures.stages.isEmpty() ? "" : ", IndexStages: " + figures.stages;
        return scan.description() + ", IndexPruning: " + ranges.text + narrowed + stages;
    }

    public Statistics estimateStatistics() {
        Statistics own = ((SupportsReportStatistics) scan).estimateStatistics();
        return FewerRows.of(own, ranges.figures.rows, ranges.columns, readSchema());
    }

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

    /** The indexed columns that are not Iceberg's own: Spark has planned the run-time filters of those already. */
    public NamedReference[] filterAttributes() {
        if (isPartial) return new NamedReference[0];
        Set read = new HashSet(Arrays.asList(readSchema().fieldNames()));
        read.removeAll(ownAttributes());
        List found = new ArrayList();
        for (int i = 0; i < indexed.length; i++) {
            if (read.contains(indexed[i])) found.add(Reference.to(indexed[i]));
        }
        return (NamedReference[]) found.toArray(new NamedReference[0]);
    }

    public boolean takes(String column) {
        if (isPartial || isKeyed) return false;
        return ownAttributes().contains(column) || Arrays.asList(indexed).contains(column);
    }

    public Scan keyed(List conditions) {
        try {
            byte[] keys = Question.of(conditions);
            FileRanges fewer = ranges.narrowed(rule.asker, Answer.asked(session, ranges.number, keys));
            ByteArrayOutputStream both = new ByteArrayOutputStream();
            both.write(asked);
            both.write(keys);
            NarrowedScan found = new NarrowedScan(
                session, scan, snapshot, name, rule, isPartial, indexed, both.toByteArray(), fewer);
            found.isKeyed = true;
            return found;
        } catch (Exception unknown) {
            return null;
        }
    }

    private Set ownAttributes() {
        NamedReference[] own = ((SupportsRuntimeV2Filtering) scan).filterAttributes();
        Set found = new HashSet();
        for (int i = 0; i < own.length; i++) found.add(own[i].fieldNames()[0]);
        return found;
    }

    public void filter(Predicate[] given) {
        Predicate[] predicates = whole(given);
        Set own = ownAttributes();
        List kept = new ArrayList();
        for (int i = 0; i < predicates.length; i++) {
            NamedReference[] columns = predicates[i].references();
            boolean isOwn = true;
            for (int j = 0; j < columns.length; j++) isOwn &= own.contains(columns[j].fieldNames()[0]);
            if (isOwn) kept.add(predicates[i]);
        }
        if (!kept.isEmpty()) ((SupportsRuntimeV2Filtering) scan).filter((Predicate[]) kept.toArray(new Predicate[0]));
        values.set(predicates.length == 0 ? null : SourceFilters.values(predicates));
    }

    /** Without lists that MergeKeys has cut off, or that may be such. */
    private Predicate[] whole(Predicate[] predicates) {
        List kept = new ArrayList();
        for (int i = 0; i < predicates.length; i++) {
            boolean isCut = predicates[i].name().equals("IN") && predicates[i].children().length == MergeKeys.MOST_KEYS + 2;
            if (isCut) rule.events.add(session, name, "", MergeKeys.TOO_MANY);
            else kept.add(predicates[i]);
        }
        return (Predicate[]) kept.toArray(new Predicate[0]);
    }

    /** A scan can be in a plan twice, once with values of a join: the values apply only to the next batch. */
    public Batch toBatch() {
        byte[] more = (byte[]) values.get();
        values.remove();
        return new NarrowedBatch(this, scan.toBatch(), more);
    }

    /** The ranges that are left by the values of a join; those of the scan if Python cannot tell. */
    FileRanges ranges(byte[] more) {
        if (more == null) return ranges;
        try {
            FileRanges fewer = ranges.narrowed(rule.asker, Answer.asked(session, ranges.number, more));
            figures = fewer.figures;
            narrowed = ", " + fewer.text + " after run-time filters";
            return fewer;
        } catch (Exception unknown) {
            return ranges;
        }
    }

    /** An index may change between two answers to one question: what is known beside a scan is known beside no other. */
    public boolean equals(Object other) {
        return other instanceof NarrowedScan && scan.equals(((NarrowedScan) other).scan)
            && Arrays.equals(asked, ((NarrowedScan) other).asked)
            && Known.areEqual(ranges.known, ((NarrowedScan) other).ranges.known);
    }

    public int hashCode() { return 31 * scan.hashCode() + Arrays.hashCode(asked); }
}
