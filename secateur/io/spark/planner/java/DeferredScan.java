package secateur;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;

/**
 * A scan of Iceberg's of which Spark asks nothing, before EnableRule is called, for which Iceberg reads manifests.
 *
 * A scan that is not grouped by partition keys has no partitioning to tell. How many rows it has, the index tells.
 * Rules of all sessions use this class: it names none of Iceberg's, which a session may lack.
 */
final class DeferredScan implements Scan, SupportsReportStatistics, SupportsRuntimeV2Filtering, Limitable {
    final Scan scan;
    private final EnableRule rule;
    private final ScanBuilder builder;
    private final ScanFacts facts;
    private volatile Statistics estimate; // null until Spark asks

    DeferredScan(EnableRule rule, ScanBuilder builder, Scan scan, ScanFacts facts) {
        this.rule = rule;
        this.builder = builder;
        this.scan = scan;
        this.facts = facts;
    }

    /** A plan with scans and tables of Iceberg's, and files that Delta chose; not the plans in its expressions. */
    static LogicalPlan undone(LogicalPlan node) {
        if (node instanceof DataSourceV2ScanRelation) return undone((DataSourceV2ScanRelation) node);
        if (node instanceof LogicalRelation) return OtherScans.own(node, null);
        if (node instanceof Filter) {
            LogicalPlan relation = ((Filter) node).child(), own = OtherScans.own(relation, (Filter) node);
            if (own != relation) return OtherScans.over(node, own);
        }
        return Children.rewritten(node, new Rewrite() {
            public LogicalPlan rewritten(LogicalPlan child) { return undone(child); }
        });
    }

    static DataSourceV2ScanRelation undone(DataSourceV2ScanRelation relation) {
        Object table = relation.relation().table();
        if (!(table instanceof StandIn)) return relation;
        LogicalPlan own = Children.with(relation.relation(), table, ((StandIn) table).standsFor());
        LogicalPlan found = Children.with(relation, relation.relation(), own);
        Object scan = relation.scan() instanceof DeferredScan ? ((DeferredScan) relation.scan()).scan : relation.scan();
        return (DataSourceV2ScanRelation) Children.with(found, relation.scan(), scan);
    }

    /** The same scan anew, to be changed: Spark may have this one in a plan twice, under different filters. */
    Scan fresh() { return builder.build(); }

    public Scan partial(DataSourceV2ScanRelation relation, byte[] question) {
        return OtherScans.partial(rule, SparkSession.active(), relation, question);
    }

    public boolean isPartial() { return false; }

    public Known[] known() { return new Known[0]; }

    public StructType readSchema() { return scan.readSchema(); }

    public String description() { return scan.description(); }

    public Batch toBatch() { return scan.toBatch(); }

    public Scan.ColumnarSupportMode columnarSupportMode() { return scan.columnarSupportMode(); }

    public Statistics estimateStatistics() {
        if (estimate == null) estimate = facts.statistics();
        return estimate;
    }

    public CustomMetric[] supportedCustomMetrics() { return scan.supportedCustomMetrics(); }

    public CustomTaskMetric[] reportDriverMetrics() { return scan.reportDriverMetrics(); }

    public NamedReference[] filterAttributes() {
        List names = facts.partitionColumns();
        if (names == null) return ((SupportsRuntimeV2Filtering) scan).filterAttributes();
        NamedReference[] found = new NamedReference[names.size()];
        for (int i = 0; i < found.length; i++) found[i] = Reference.to((String) names.get(i));
        return found;
    }

    public void filter(Predicate[] predicates) { ((SupportsRuntimeV2Filtering) scan).filter(predicates); }

    public boolean equals(Object other) {
        return other instanceof DeferredScan && scan.equals(((DeferredScan) other).scan);
    }

    public int hashCode() { return scan.hashCode(); }
}
