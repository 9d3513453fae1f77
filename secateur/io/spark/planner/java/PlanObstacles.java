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

    private static final Set NO_ROW_IDS = new HashSet(), SPARK_ROW_IDS = new HashSet(Arrays.asList(new String[] {"__row_id"}));
    private static final Set DELTA_ROW_IDS = new HashSet(Arrays.asList(new String[] {
        "_row_id_", "_source_row_index", "_target_row_index_"}));

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
    static String of(LogicalPlan plan) { return of(plan, plan instanceof WriteDelta ? SPARK_ROW_IDS : NO_ROW_IDS); }

    /** The same of a query that a transaction of Delta's runs. */
    static String ofTransaction(LogicalPlan plan) { return of(plan, DELTA_ROW_IDS); }

    private static String of(LogicalPlan plan, Set rowIds) {
        if (plan instanceof Sample) return "a sample depends on how rows are partitioned";
        for (Iterator all = plan.expressions().iterator(); all.hasNext();) {
            Expression expression = (Expression) all.next();
            String reason = isRowId(expression, rowIds) ? null : ofExpression(expression, rowIds == DELTA_ROW_IDS);
            if (reason != null) return reason;
        }
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            String reason = of((LogicalPlan) all.next(), rowIds);
            if (reason != null) return reason;
        }
        return null;
    }

    /** The number that every row of a MERGE gets, to see that none matches twice: any will do. */
    private static boolean isRowId(Expression expression, Set names) {
        return expression instanceof Alias && names.contains(((Alias) expression).name())
            && ((Alias) expression).child() instanceof MonotonicallyIncreasingID;
    }

    /** Whether a node counts its rows for Delta's figures. */
    static boolean count(LogicalPlan node) {
        for (Iterator all = node.expressions().iterator(); all.hasNext();) {
            if (counts((Expression) all.next())) return true;
        }
        return false;
    }

    private static boolean counts(Expression expression) {
        if (isFigure(expression)) return true;
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            if (counts((Expression) all.next())) return true;
        }
        return false;
    }

    /** Whether an expression adds to one of Delta's figures when it is evaluated; its value is that of its child. */
    private static boolean isFigure(Expression expression) {
        return expression.getClass().getName().startsWith("org.apache.spark.sql.delta.metric.");
    }

    private static String ofExpression(Expression expression, boolean hasFigures) {
        String kind = expression.getClass().getSimpleName();
        boolean isKnown = expression instanceof InputFileName || hasFigures && isFigure(expression);
        if ((expression instanceof Nondeterministic && !isKnown) || kind.startsWith("InputFileBlock")) {
            return expression.prettyName() + " depends on how rows are partitioned";
        }
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            String reason = ofExpression((Expression) all.next(), hasFigures);
            if (reason != null) return reason;
        }
        return null;
    }
}
