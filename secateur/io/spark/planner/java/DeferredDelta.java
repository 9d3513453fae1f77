package secateur;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.RowTracking;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.sources.DeltaSQLConf;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.Iterator;

/**
 * A rule of Spark's optimizer: for a filtered scan of an indexed Delta table, Delta runs no job over its log before
 * EnableRule has seen the scan.
 *
 * Compiled only if the session has Delta's jar. It runs before Delta prepares its scans, which then leaves such a scan
 * alone. Delta reads one version of a table in a whole query: so a plan that reads a table twice, or has subqueries,
 * stays Delta's; so does one that writes, for Delta's transactions note what is read.
 */
public final class DeferredDelta extends GuardedRule {
    private static final String GENERATED = "delta.generationExpression"; // gives Delta filters that it makes itself
    private final EnableRule rule;

    public DeferredDelta(EnableRule rule) { this.rule = rule; }

    public String ruleName() { return "secateur.DeferredDelta"; }

    boolean applies(LogicalPlan plan) { return isRead(plan) && isOn(); }

    Events warnings() { return rule.events; }

    private boolean isOn() {
        SparkSession session = SparkSession.active();
        boolean isSkipping = ((Boolean) session.sessionState().conf().getConf(DeltaSQLConf.DELTA_STATS_SKIPPING()))
            .booleanValue();
        return isSkipping && Switches.isOn() && rule.isIn(session) && !OptimisticTransaction.getActive().isDefined();
    }

    /** Whether a plan only reads, some Delta table, and each of them once. */
    private static boolean isRead(LogicalPlan plan) {
        Set logs = new HashSet();
        return !(plan instanceof Subquery) && areRead(plan, logs) && !logs.isEmpty()
            && !plan.containsPattern(TreePattern.PLAN_EXPRESSION()) && !plan.containsPattern(TreePattern.COMMAND());
    }

    private static boolean areRead(LogicalPlan node, Set logs) {
        Object files = files(node);
        if (files instanceof TahoeLogFileIndex && !logs.add(((TahoeLogFileIndex) files).path())) return false;
        if (files instanceof PreparedDeltaFileIndex && !logs.add(((PreparedDeltaFileIndex) files).path())) return false;
        for (Iterator all = node.children().iterator(); all.hasNext();) {
            if (!areRead((LogicalPlan) all.next(), logs)) return false;
        }
        return true;
    }

    private static Object files(LogicalPlan node) {
        if (!(node instanceof LogicalRelation)) return null;
        Object relation = ((LogicalRelation) node).relation();
        return relation instanceof HadoopFsRelation ? ((HadoopFsRelation) relation).location() : null;
    }

    public LogicalPlan rewritten(LogicalPlan node) {
        LogicalPlan found = Children.rewritten(node, this);
        if (!(found instanceof Filter)) return found;
        LogicalPlan child = ((Filter) found).child();
        Object files = files(child);
        if (!(files instanceof TahoeLogFileIndex) || ((LogicalRelation) child).isStreaming()) return found;
        if (Switches.of((LogicalRelation) child, Roots.place((LogicalRelation) child)) != null) return found;
        List filters = new ArrayList();
        OtherScans.conjuncts(((Filter) found).condition(), filters);
        if (DeltaRelation.names(filters, ((TahoeLogFileIndex) files).partitionSchema())) return found;
        DeferredDeltaFiles deferred = deferred((TahoeLogFileIndex) files);
        return deferred == null ? found : OtherScans.over(found, OtherScans.withFiles(child, deferred));
    }

    /** The files of the version that Delta would read; null without an index, and for what Delta has to plan. */
    private DeferredDeltaFiles deferred(TahoeLogFileIndex index) {
        if (!index.partitionFilters().isEmpty()) return null;
        if (rule.lookups.columns(Roots.location(index.path()) + "/_delta_log") == null) return null;
        Snapshot snapshot = index.getSnapshot();
        if (RowTracking.isEnabled(snapshot.protocol(), snapshot.metadata())) return null;
        if (snapshot.metadata().schemaString().contains(GENERATED)) return null;
        return new DeferredDeltaFiles(index, snapshot);
    }
}
