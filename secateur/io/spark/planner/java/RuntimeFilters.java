package secateur;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.dynamicpruning.CleanupDynamicPruningFilters$;
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning$;
import scala.collection.Iterator;

/**
 * Lets the values of a join's small side prune its big side while the query runs.
 *
 * Spark's rule does it for partition columns, of which a query joins few. Here every column of an index counts, and in
 * a chain of joins the plan of every filter holds the filters of all joins before it: their number doubles at each
 * join, and Spark plans each of them. So filters that hold too many others are left out.
 */
final class RuntimeFilters {
    private static final int MOST_PLANS = 4; // of one filter: its own, and those of the filters within
    private final IdentityHashMap bounded = new IdentityHashMap(); // plan -> the plan without large filters
    private final IdentityHashMap plans = new IdentityHashMap(); // such a plan -> how many plans its filters have
    private final IdentityHashMap seen = new IdentityHashMap(); // plans as they were before
    private final Set earlier = new HashSet(); // ids of the filters that Spark gave them, which stay

    private RuntimeFilters(LogicalPlan before) { see(before); }

    /** The plan with run-time filters; the same plan if Spark finds no use for one. */
    static LogicalPlan added(LogicalPlan plan) {
        LogicalPlan filtered = PartitionPruning$.MODULE$.apply(plan);
        if (filtered.fastEquals(plan)) return plan;
        LogicalPlan few = new RuntimeFilters(plan).bounded(filtered);
        return CleanupDynamicPruningFilters$.MODULE$.apply(PushDownPredicates$.MODULE$.apply(few));
    }

    private void see(LogicalPlan plan) {
        if (seen.put(plan, "") != null) return;
        for (Iterator each = plan.children().iterator(); each.hasNext();) see((LogicalPlan) each.next());
        if (plan instanceof Filter) see(((Filter) plan).condition());
    }

    private void see(Expression expression) {
        if (expression instanceof DynamicPruningSubquery) {
            earlier.add(((DynamicPruningSubquery) expression).exprId());
            see(((DynamicPruningSubquery) expression).buildQuery());
        }
        for (Iterator each = expression.children().iterator(); each.hasNext();) see((Expression) each.next());
    }

    /** Each plan is looked at once: a filter repeats the plan of the other side, and both have to stay equal. */
    private LogicalPlan bounded(LogicalPlan plan) {
        LogicalPlan known = (LogicalPlan) bounded.get(plan);
        if (known != null) return known;
        int all = 0;
        List children = new ArrayList();
        boolean differs = false;
        for (Iterator each = plan.children().iterator(); each.hasNext();) {
            LogicalPlan child = (LogicalPlan) each.next();
            LogicalPlan small = bounded(child);
            differs |= small != child;
            all += plansOf(small);
            children.add(small);
        }
        LogicalPlan result = differs ? (LogicalPlan) plan.withNewChildren(PrunedTable.seq(children)) : plan;
        if (result instanceof Filter) {
            Expression condition = boundedWithin(((Filter) result).condition());
            int more = plansWithin(condition);
            boolean isNew = condition instanceof DynamicPruningSubquery
                && !earlier.contains(((DynamicPruningSubquery) condition).exprId());
            if (isNew && more > MOST_PLANS) {
                result = ((Filter) result).child();
            } else {
                all += more;
                if (condition != ((Filter) result).condition()) result = new Filter(condition, ((Filter) result).child());
            }
        }
        plans.put(result, Integer.valueOf(all));
        bounded.put(plan, result);
        return result;
    }

    private int plansOf(LogicalPlan plan) { return ((Integer) plans.get(plan)).intValue(); }

    private Expression boundedWithin(Expression expression) {
        if (expression instanceof DynamicPruningSubquery) {
            DynamicPruningSubquery filter = (DynamicPruningSubquery) expression;
            LogicalPlan small = bounded(filter.buildQuery());
            return small == filter.buildQuery() ? filter : (Expression) filter.withNewPlan(small);
        }
        List children = new ArrayList();
        boolean differs = false;
        for (Iterator each = expression.children().iterator(); each.hasNext();) {
            Expression child = (Expression) each.next();
            Expression small = boundedWithin(child);
            differs |= small != child;
            children.add(small);
        }
        return differs ? (Expression) expression.withNewChildren(PrunedTable.seq(children)) : expression;
    }

    /** Of an expression that is bounded. */
    private int plansWithin(Expression expression) {
        if (expression instanceof DynamicPruningSubquery) {
            return 1 + plansOf(((DynamicPruningSubquery) expression).buildQuery());
        }
        int all = 0;
        for (Iterator each = expression.children().iterator(); each.hasNext();) {
            all += plansWithin((Expression) each.next());
        }
        return all;
    }
}
