package secateur;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.V2ScanRelationPushDown$;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.Iterator;

/** Rewrites one plan. */
final class Rewriting {
    private final EnableRule rule;
    private final SparkSession session;
    private final LogicalPlan plan;
    private final IdentityHashMap failed = new IdentityHashMap(); // relations for which Python gave no reply
    private final IdentityHashMap tables = new IdentityHashMap(); // relation -> table, or why it is unchanged
    private boolean isChanged, hasJoin;
    private boolean isNarrowed; // some scan of another source, which takes values of a join too
    private String unrepeatable; // why this plan's relations must keep their partitioning, or null

    Rewriting(EnableRule rule, SparkSession session, LogicalPlan plan) {
        this.rule = rule;
        this.session = session;
        this.plan = plan;
    }

    /** The plan with pruned scans; the same plan if there is nothing to prune. */
    LogicalPlan result() {
        unrepeatable = PlanObstacles.of(plan);
        if (PlanObstacles.changesRows(plan)) return plan;
        while (true) {
            isChanged = false;
            LogicalPlan asked = replaced(plan);
            LogicalPlan replaced = DeferredScan.undone(unrepeatable == null ? PartialScans.in(asked, rule) : asked);
            if (!isChanged) return withKeys(hasJoin && isNarrowed ? RuntimeFilters.added(replaced) : replaced);
            LogicalPlan pushed = PartialScans.in(V2ScanRelationPushDown$.MODULE$.apply(replaced), rule);
            List scans = new ArrayList();
            collect(pushed, scans);
            if (!areAnswered(scans)) continue;
            for (int i = 0; i < scans.size(); i++) {
                PrunedScan scan = (PrunedScan) scans.get(i);
                rule.events.add(session, scan.table.name, String.valueOf(scan.answer().number), scan.answer().text);
            }
            LogicalPlan told = Grouping.told(pushed);
            return withKeys(hasJoin ? RuntimeFilters.added(told) : told);
        }
    }

    private LogicalPlan withKeys(LogicalPlan pruned) {
        return hasJoin && unrepeatable == null ? MergeKeys.filtered(rule, session, pruned) : pruned;
    }

    private boolean areAnswered(List scans) {
        boolean all = true;
        for (int i = 0; i < scans.size(); i++) {
            PrunedScan scan = (PrunedScan) scans.get(i);
            try {
                scan.answer();
            } catch (Exception error) {
                rule.events.warn(scan.table.name, String.valueOf(error.getMessage()));
                rule.events.add(session, scan.table.name, "", String.valueOf(error.getMessage()));
                failed.put(((RelationTable) scan.table).relation, "");
                all = false;
            }
        }
        return all;
    }

    private LogicalPlan replaced(LogicalPlan node) {
        if (node instanceof LogicalRelation) return relation((LogicalRelation) node);
        if (node instanceof Join) hasJoin = true;
        LogicalPlan found = Children.rewritten(node, new Rewrite() {
            public LogicalPlan rewritten(LogicalPlan child) { return replaced(child); }
        });
        if (found instanceof Filter) {
            LogicalPlan pruned = OtherScans.pruned(rule, session, (Filter) found, unrepeatable);
            isNarrowed |= pruned != found && ((Filter) pruned).child() instanceof DataSourceV2ScanRelation;
            found = pruned;
        }
        return (LogicalPlan) found.mapExpressions(new InSubqueries(rule));
    }

    private LogicalPlan relation(LogicalRelation relation) {
        if (!(relation.relation() instanceof HadoopFsRelation) || OtherScans.isDelta(relation)) return relation;
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        if (failed.containsKey(files)) return relation;
        Object known = tables.get(files);
        if (known == null) {
            known = RelationTable.of(rule, session, relation, unrepeatable);
            tables.put(files, known);
            if (known instanceof String) rule.events.add(session, Roots.place(relation), "", (String) known);
        }
        if (known instanceof String) return relation;
        isChanged = true;
        return read(known, relation.output());
    }

    /** A relation of a table; since Spark 4.1 it also has a time to travel to. */
    private static LogicalPlan read(Object table, Object output) {
        Object[] all = {
            table, output, Option.empty(), Option.empty(), CaseInsensitiveStringMap.empty(), Option.empty()};
        Constructor made = DataSourceV2Relation.class.getConstructors()[0];
        try {
            return (LogicalPlan) made.newInstance(Arrays.copyOf(all, made.getParameterTypes().length));
        } catch (Exception e) {
            throw new IllegalStateException(e.toString());
        }
    }

    private static void collect(LogicalPlan node, List scans) {
        if (node instanceof DataSourceV2ScanRelation) {
            Object scan = ((DataSourceV2ScanRelation) node).scan();
            if (scan instanceof PrunedScan && ((PrunedScan) scan).table instanceof RelationTable) scans.add(scan);
        }
        for (Iterator all = node.children().iterator(); all.hasNext();) collect((LogicalPlan) all.next(), scans);
    }
}
