package secateur;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.Iterator;

/** A rule of Spark's optimizer: scans of sec.dataframe are told of a LIMIT or an aggregate above them. */
public final class PartialScansRule extends Rule implements Rewrite {
    public String ruleName() { return "secateur.PartialScansRule"; }

    /** Add the rule to a session, once. */
    static void addTo(SparkSession session) {
        List rules = new ArrayList();
        for (Iterator all = session.experimental().extraOptimizations().iterator(); all.hasNext();) {
            Rule rule = (Rule) all.next();
            if (rule instanceof PartialScansRule) return;
            rules.add(rule);
        }
        rules.add(new PartialScansRule());
        session.experimental().extraOptimizations_$eq(PrunedTable.seq(rules));
    }

    public TreeNode apply(TreeNode plan) {
        try {
            return rewritten((LogicalPlan) plan);
        } catch (VirtualMachineError fatal) {
            throw fatal;
        } catch (Throwable error) {
            return plan;
        }
    }

    public LogicalPlan rewritten(LogicalPlan plan) {
        if (PlanObstacles.of(plan) != null || PlanObstacles.changesRows(plan)) return plan;
        return inSubqueries(PartialScans.in(plan, null));
    }

    private LogicalPlan inSubqueries(LogicalPlan node) {
        LogicalPlan found = Children.rewritten(node, new Rewrite() {
            public LogicalPlan rewritten(LogicalPlan child) { return inSubqueries(child); }
        });
        return (LogicalPlan) found.mapExpressions(new InSubqueries(this));
    }
}
