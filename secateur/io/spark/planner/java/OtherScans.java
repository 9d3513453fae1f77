package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** Prunes scans of other sources than Spark's own reader, see IcebergScan.java. */
final class OtherScans {
    /** A filter over a pruned scan; the same filter if the scan is not pruned. */
    static LogicalPlan pruned(EnableRule rule, SparkSession session, Filter filter, String unrepeatable) {
        if (rule.other == null || !(filter.child() instanceof DataSourceV2ScanRelation)) return filter;
        DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) filter.child();
        if (relation.scan() instanceof Pruned || relation.scan() instanceof PrunedScan) return filter;
        List filters = new ArrayList();
        conjuncts(filter.condition(), filters);
        Object[] parts = {session, relation, filters, rule};
        Object found = Switches.ofName(relation.relation().table().name());
        if (found == null) found = unrepeatable != null ? unrepeatable : rule.other.apply(parts);
        if (found instanceof String) rule.events.add(session, relation.relation().table().name(), "", (String) found);
        if (!(found instanceof Pruned)) return filter;
        Pruned scan = (Pruned) found;
        rule.events.add(session, scan.location(), String.valueOf(scan.number()), scan.text());
        List child = Arrays.asList(new Object[] {Chain.withScan(relation, scan)});
        return (LogicalPlan) filter.withNewChildren(PrunedTable.seq(child));
    }

    private static void conjuncts(Expression condition, List found) {
        if (condition instanceof And) {
            conjuncts(((And) condition).left(), found);
            conjuncts(((And) condition).right(), found);
        } else if (condition.deterministic()) found.add(condition);
    }
}
