package secateur;

import org.apache.iceberg.BaseTable;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.Iterator;

/**
 * A rule of Spark's optimizer: scans of indexed tables of Iceberg read no manifests before EnableRule has seen them.
 *
 * Compiled only if the session has Iceberg's runtime. It runs before Spark makes scans. A plan that changes rows stays
 * as it is: for conflicts, Iceberg looks at the tasks that it planned.
 */
public final class DeferredIceberg extends GuardedRule {
    private final EnableRule rule;

    public DeferredIceberg(EnableRule rule) { this.rule = rule; }

    public String ruleName() { return "secateur.DeferredIceberg"; }

    boolean applies(LogicalPlan plan) { return reads(plan) && isOn() && !changesRows(plan); }

    Events warnings() { return rule.events; }

    private boolean isOn() {
        SparkSession session = SparkSession.active();
        return Switches.isOn() && rule.isIn(session);
    }

    private static boolean reads(LogicalPlan plan) {
        if (plan instanceof DataSourceV2Relation) return ((DataSourceV2Relation) plan).table() instanceof SparkTable;
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            if (reads((LogicalPlan) all.next())) return true;
        }
        return false;
    }

    private static boolean changesRows(LogicalPlan plan) {
        return plan instanceof WriteDelta || PlanObstacles.changesRows(plan);
    }

    public LogicalPlan rewritten(LogicalPlan node) {
        if (!(node instanceof DataSourceV2Relation)) return Children.rewritten(node, this);
        Object table = ((DataSourceV2Relation) node).table();
        if (!(table instanceof SparkTable) || !isIndexed((SparkTable) table)) return node;
        return Children.with(node, table, Deferring.of(rule, (SparkTable) table, table));
    }

    /** Whether a table has an index, and files that its metadata file tells; a catalog may plan scans by itself. */
    private boolean isIndexed(SparkTable table) {
        if (table.table().getClass() != BaseTable.class) return false;
        String metadata = ((BaseTable) table.table()).operations().current().metadataFileLocation();
        return metadata != null && rule.lookups.columns(metadata) != null;
    }
}
