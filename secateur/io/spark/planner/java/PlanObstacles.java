package secateur;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.MonotonicallyIncreasingID;
import org.apache.spark.sql.catalyst.expressions.Nondeterministic;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import scala.collection.Iterator;

/** Reasons not to prune any relation of a plan. */
final class PlanObstacles {
    private static final Set REWRITES = new HashSet(Arrays.asList(new String[] {
        "ReplaceData", "MergeIntoTable", "UpdateTable", "DeleteFromTable"}));

    /**
     * Whether a plan is a MERGE, an UPDATE or a DELETE that writes files anew: then every row of a file that it reads is
     * needed. WriteDelta is left out: it writes what changes, and Iceberg looks for conflicts by filters, not by files.
     */
    static boolean changesRows(LogicalPlan plan) {
        if (REWRITES.contains(plan.getClass().getSimpleName())) return true;
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            if (changesRows((LogicalPlan) all.next())) return true;
        }
        return false;
    }

    /** Why the result depends on how rows are partitioned, or null. If it does, every relation stays unchanged. */
    static String of(LogicalPlan plan) { return of(plan, plan instanceof WriteDelta); }

    private static String of(LogicalPlan plan, boolean isWrite) {
        if (plan instanceof Sample) return "a sample depends on how rows are partitioned";
        for (Iterator all = plan.expressions().iterator(); all.hasNext();) {
            Expression expression = (Expression) all.next();
            String reason = isWrite && isRowId(expression) ? null : ofExpression(expression);
            if (reason != null) return reason;
        }
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            String reason = of((LogicalPlan) all.next(), isWrite);
            if (reason != null) return reason;
        }
        return null;
    }

    /** The number that Spark gives every row of a MERGE's target, to see that none matches twice: any will do. */
    private static boolean isRowId(Expression expression) {
        return expression instanceof Alias && ((Alias) expression).name().equals("__row_id")
            && ((Alias) expression).child() instanceof MonotonicallyIncreasingID;
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
