package secateur;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * The rows of a join that can be run a second time, from those of its sides, see RepeatableRows.java.
 *
 * A side may have more rows than the query's. That adds rows to a join, but where a row is there because it has no
 * partner: then the side where partners are looked for must have no more. Where the condition is not kept whole, or is
 * no equality, the join could have far more rows: then one side alone, which has all values of its own columns.
 */
final class JoinedRows {
    private static final Set LEFT_ALONE = new HashSet(Arrays.asList(new String[] { // joins whose rows each have one of the left side
        "Cross", "Inner", "LeftAnti", "LeftOuter", "LeftSemi"}));

    static Object of(Join join, Object left, Object right) {
        String type = join.joinType().toString();
        boolean hasBoth = left instanceof RepeatableRows && right instanceof RepeatableRows;
        if (hasBoth && isWhole(join, (RepeatableRows) left, (RepeatableRows) right)) {
            Object joined = joined(join, type, (RepeatableRows) left, (RepeatableRows) right);
            if (joined != null) return joined;
        }
        if (left instanceof RepeatableRows && LEFT_ALONE.contains(type)) return alone((RepeatableRows) left);
        if (right instanceof RepeatableRows && (type.equals("Inner") || type.equals("Cross") || type.equals("RightOuter"))) {
            return alone((RepeatableRows) right);
        }
        if (left instanceof String) return left;
        return right instanceof String ? right : type + " join may have other rows when run twice";
    }

    private static RepeatableRows alone(RepeatableRows side) { return new RepeatableRows(side.plan, side.columns, false); }

    /** The join itself; null if more rows of a side could take rows away. */
    private static RepeatableRows joined(Join join, String type, RepeatableRows left, RepeatableRows right) {
        boolean isMore = type.equals("Inner") || type.equals("LeftSemi")
            || (type.equals("LeftOuter") || type.equals("LeftAnti")) && right.isExact
            || type.equals("RightOuter") && left.isExact || type.equals("FullOuter") && left.isExact && right.isExact;
        if (!isMore) return null;
        Set columns = new HashSet(left.columns);
        if (!type.equals("LeftSemi") && !type.equals("LeftAnti")) columns.addAll(right.columns);
        Object[] sides = {left.plan, right.plan};
        LogicalPlan plan = (LogicalPlan) join.withNewChildren(PrunedTable.seq(Arrays.asList(sides)));
        return new RepeatableRows(plan, columns, left.isExact && right.isExact);
    }

    /** Whether both sides have all that the condition asks for, and it has an equality of the two. */
    private static boolean isWhole(Join join, RepeatableRows left, RepeatableRows right) {
        if (join.condition().isEmpty()) return false;
        Expression condition = (Expression) join.condition().get();
        Set both = new HashSet(left.columns);
        both.addAll(right.columns);
        boolean isExact = left.isExact && right.isExact;
        return RepeatableRows.isSame(condition, isExact, both) && hasEquality(condition, left, right);
    }

    private static boolean hasEquality(Expression condition, RepeatableRows left, RepeatableRows right) {
        if (condition instanceof And) {
            return hasEquality(((And) condition).left(), left, right) || hasEquality(((And) condition).right(), left, right);
        }
        if (!(condition instanceof EqualTo) && !(condition instanceof EqualNullSafe)) return false;
        Expression first = (Expression) condition.children().apply(0), second = (Expression) condition.children().apply(1);
        return isOf(first, left) && isOf(second, right) || isOf(first, right) && isOf(second, left);
    }

    private static boolean isOf(Expression value, RepeatableRows side) {
        return !value.references().isEmpty() && RepeatableRows.hasAll(value, side.columns);
    }
}
