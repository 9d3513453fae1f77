package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportOrdering;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan;
import org.apache.spark.sql.internal.connector.SupportsMetadata;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;
import scala.collection.immutable.Map;

public final class PrunedScan
        implements Scan, SupportsReportStatistics, SupportsReportPartitioning, SupportsReportOrdering,
            SupportsMetadata, SupportsRuntimeV2Filtering, Limitable {
    public final PrunedTable table;
    private final BlockSource source;
    final ParquetScan parquet;
    final byte[] question; // the filters of the query, and how many rows are wanted of which order
    private final boolean isPartial; // whether rows are left out that match: then only one node of a plan may read the scan
    final boolean isGrouped; // whether every partition has files of one value of each partition column that is read
    private Answer answer; // to the question; requested once
    private boolean isWhole;
    private volatile Figures figures; // of the last answer
    private volatile String narrowed = ""; // what is left after run-time filters, for explain()
    private PartitionReaderFactory reader; // made once: it broadcasts settings, and adaptive execution plans anew
    private final ThreadLocal values = new ThreadLocal(); // of a join, for the next batch that this thread makes

    PrunedScan(
            PrunedTable table, BlockSource source, ParquetScan parquet, byte[] question, boolean isPartial,
            boolean isGrouped) {
        this.table = table;
        this.source = source;
        this.parquet = parquet;
        this.question = question;
        this.isPartial = isPartial;
        this.isGrouped = isGrouped;
    }

    /** The same scan for a question of the one node that reads it. */
    PrunedScan partial(byte[] question) { return new PrunedScan(table, source, parquet, question, true, isGrouped); }

    public Scan partial(DataSourceV2ScanRelation relation, byte[] question) {
        return table.isCaseSensitive() ? null : partial(question);
    }

    public boolean isPartial() { return isPartial; }

    public Known[] known() { return answer().known; }

    public synchronized Answer answer() {
        if (answer == null) {
            answer = timed(0, question);
            figures = answer.figures;
        }
        return answer;
    }

    /** Take the answer to the same filters and more, if that leaves nothing out: then it need not be asked for again. */
    synchronized void take(Answer same) {
        isWhole = true;
        if (answer != null) return;
        answer = same;
        figures = same.figures;
    }

    /** Whether statistics are known to answer nothing of what reads this scan. */
    synchronized boolean isWhole() { return isWhole; }

    private Answer timed(long earlier, byte[] asked) {
        long started = System.nanoTime();
        Answer found = source.answer(earlier, asked);
        if (!found.isUnknown) found.figures.setNanos(System.nanoTime() - started);
        return found;
    }

    /** The answer narrowed by the values of a join, over the same files. */
    Answer narrowed(byte[] more) {
        Answer all = answer();
        Answer found = timed(all.number, more);
        if (found.isUnknown) return all;
        figures = found.figures;
        narrowed = ", " + found.text + " after run-time filters";
        return found;
    }

    synchronized PartitionReaderFactory reader() {
        if (reader == null) reader = parquet.createReaderFactory();
        return reader;
    }

    public StructType readSchema() { return parquet.readSchema(); }

    public String description() { return parquet.description() + ", IndexPruning: " + answer().text + narrowed; }

    public Map getMetaData() {
        String text = answer().text + narrowed;
        Map told = (Map) parquet.getMetaData().$plus(new Tuple2("IndexPruning", text));
        return figures.stages.isEmpty() ? told : (Map) told.$plus(new Tuple2("IndexStages", figures.stages));
    }

    public CustomMetric[] supportedCustomMetrics() { return Figures.supported(); }

    public CustomTaskMetric[] reportDriverMetrics() {
        answer();
        return figures.reported();
    }

    /** Bytes of the surviving row groups, times the share of a row that the query's columns take; and their columns. */
    public Statistics estimateStatistics() {
        final Answer found = answer();
        final double share = (double) readSchema().defaultSize() / Math.max(1, table.schema.defaultSize());
        return new Statistics() {
            public OptionalLong sizeInBytes() { return OptionalLong.of((long) Math.ceil(share * found.bytes)); }

            public OptionalLong numRows() {
                return found.rows < 0 ? OptionalLong.empty() : OptionalLong.of(found.rows);
            }

            public java.util.Map columnStats() { return ColumnFigures.byColumn(found.columns, readSchema()); }
        };
    }

    public Partitioning outputPartitioning() {
        return isGrouped ? Grouping.partitioning(parquet.readPartitionSchema(), answer(), this) : Grouping.none();
    }

    public SortOrder[] outputOrdering() {
        return isGrouped ? Grouping.order(parquet.readPartitionSchema()) : new SortOrder[0];
    }

    /** Columns whose values in a join can prune; none if rows are counted that the join may drop. */
    public NamedReference[] filterAttributes() {
        if (isPartial || table.isCaseSensitive()) return new NamedReference[0];
        Set read = new HashSet(Arrays.asList(readSchema().fieldNames()));
        List found = new ArrayList();
        for (int i = 0; i < table.filterable.length; i++) {
            if (read.contains(table.filterable[i])) found.add(Reference.to(table.filterable[i]));
        }
        return (NamedReference[]) found.toArray(new NamedReference[0]);
    }

    public void filter(Predicate[] predicates) { values.set(SourceFilters.values(predicates)); }

    /** A scan can be in a plan twice, once with values of a join: the values apply only to the next batch. */
    public Batch toBatch() {
        byte[] more = (byte[]) values.get();
        values.remove();
        return new PrunedBatch(this, more);
    }

    /** An index may change between two answers to one question: what is known beside a scan is known beside no other. */
    public boolean equals(Object other) {
        if (!(other instanceof PrunedScan)) return false;
        PrunedScan scan = (PrunedScan) other;
        return isGrouped == scan.isGrouped && source.equals(scan.source) && parquet.equals(scan.parquet)
            && Arrays.equals(question, scan.question) && Known.areEqual(told(), scan.told());
    }

    private synchronized Known[] told() { return answer == null ? new Known[0] : answer.known; }

    public int hashCode() { return 31 * source.hashCode() + Arrays.hashCode(question); }
}
