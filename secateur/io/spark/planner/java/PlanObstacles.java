package secateur;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.Nondeterministic;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import scala.collection.Iterator;

/** Reasons not to prune any relation of a plan. */
final class PlanObstacles {
    private static final Set ROW_LEVEL = new HashSet(Arrays.asList(new String[] {
        "ReplaceData", "WriteDelta", "MergeRows", "MergeIntoTable", "UpdateTable", "DeleteFromTable"}));

    /** Whether a plan is a MERGE, an UPDATE or a DELETE: these detect conflicts from the files that they read. */
    static boolean changesRows(LogicalPlan plan) {
        if (ROW_LEVEL.contains(plan.getClass().getSimpleName())) return true;
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            if (changesRows((LogicalPlan) all.next())) return true;
        }
        return false;
    }

    /** Why the result depends on how rows are partitioned, or null. If it does, every relation stays unchanged. */
    static String of(LogicalPlan plan) {
        if (plan instanceof Sample) return "a sample depends on how rows are partitioned";
        for (Iterator all = plan.expressions().iterator(); all.hasNext();) {
            String reason = ofExpression((Expression) all.next());
            if (reason != null) return reason;
        }
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            String reason = of((LogicalPlan) all.next());
            if (reason != null) return reason;
        }
        return null;
    }

    private static String ofExpression(Expression expression) {
        String kind = expression.getClass().getSimpleName();
        boolean isName = expression instanceof InputFileName;
        if ((expression instanceof Nondeterministic && !isName) || kind.startsWith("InputFileBlock")) {
            return expression.prettyName() + " depends on how rows are partitioned";
        }
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            String reason = ofExpression((Expression) all.next());
            if (reason != null) return reason;
        }
        return null;
    }
}
