package secateur;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.RowNumber;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Tells scans under a LIMIT how many rows are wanted, and of which order: they read what can hold the first rows of it.
 *
 * Spark's plan stays, with its limit, sort and filters. Sound: between the limit and the scan there are only
 * projections, filters, and at most one sort of all rows. Python gets every one of these filters, and so knows which
 * row groups match whole. Only this limit reads the scan, which is a copy that differs from all others.
 *
 * A limit is also Spark's WindowGroupLimit, which it puts below row_number() &lt;= n, if all rows are of one partition.
 */
final class FirstRows {
    private long wanted = Long.MAX_VALUE; // rows
    private boolean isGlobal; // whether rows of all partitions are counted together, so that the first come first
    private Seq order; // of SortOrder; null = any rows will do

    static LogicalPlan in(LogicalPlan node, final EnableRule rule) {
        if (node instanceof GlobalLimit || node instanceof LocalLimit) {
            LogicalPlan found = new FirstRows().under(node, rule);
            if (found != null) return found;
        } else if (node instanceof WindowGroupLimit) {
            LogicalPlan found = new FirstRows().ofPartition((WindowGroupLimit) node, rule);
            if (found != null) return found;
        }
        return Children.rewritten(node, new Rewrite() {
            public LogicalPlan rewritten(LogicalPlan child) { return in(child, rule); }
        });
    }

    /** The plan with a limited scan; null if the scan below is not known to serve this limit alone. */
    private LogicalPlan under(LogicalPlan top, EnableRule rule) {
        LogicalPlan node = top;
        while (order == null) {
            if (node instanceof GlobalLimit) {
                if (!isGlobal && wanted < Long.MAX_VALUE) return null;
                isGlobal = true;
                wanted = Math.min(wanted, number(((GlobalLimit) node).limitExpr()));
            } else if (node instanceof LocalLimit) {
                long own = number(((LocalLimit) node).limitExpr());
                if (isGlobal && own < wanted) return null;
                wanted = Math.min(wanted, own);
            } else if (node instanceof Offset) wanted += number(((Offset) node).offsetExpr());
            else if (node instanceof Sort) {
                if (!isGlobal || !((Sort) node).global()) return null;
                order = ((Sort) node).order();
            } else if (!(node instanceof Project) || !isDeterministic(node)) break;
            if (wanted < 0 || wanted > Integer.MAX_VALUE) return null;
            node = (LogicalPlan) node.children().head();
        }
        Chain chain = Chain.of(node, rule);
        List items = chain == null ? null : items(chain);
        if (items == null) return null;
        LogicalPlan limited = chain.partial(Question.ofRows(chain.filters, wanted, items));
        return limited == null ? null : chain.under(top, limited);
    }

    /** The plan of row_number() <= n with a limited scan; null if filters may leave rows of several partitions. */
    private LogicalPlan ofPartition(WindowGroupLimit node, EnableRule rule) {
        Chain chain = node.rankLikeFunction() instanceof RowNumber ? Chain.of(node.child(), rule) : null;
        if (chain == null) return null;
        for (Iterator all = node.partitionSpec().iterator(); all.hasNext();) {
            if (!chain.isOneValue((Expression) all.next())) return null;
        }
        order = node.orderSpec();
        List items = items(chain);
        if (items == null || node.limit() < 0) return null;
        LogicalPlan limited = chain.partial(Question.ofRows(chain.filters, node.limit(), items));
        return limited == null ? null : chain.under(node, limited);
    }

    private static long number(Expression limit) {
        Object value = limit instanceof Literal ? ((Literal) limit).value() : null;
        return value instanceof Integer ? ((Integer) value).longValue() : Long.MIN_VALUE / 2;
    }

    private static boolean isDeterministic(LogicalPlan node) {
        for (Iterator all = node.expressions().iterator(); all.hasNext();) {
            if (!((Expression) all.next()).deterministic()) return false;
        }
        return true;
    }

    /** The items of the order by columns of the scan; null if one has other columns. */
    private List items(Chain chain) {
        List found = new ArrayList();
        if (order == null) return found;
        for (Iterator all = order.iterator(); all.hasNext();) {
            SortOrder item = (SortOrder) all.next();
            Expression column = chain.defined(item.child());
            if (column == null) return null;
            found.add(new OrderItem(
                column, item.direction() != Ascending$.MODULE$, item.nullOrdering() == NullsFirst$.MODULE$));
        }
        return found;
    }
}
