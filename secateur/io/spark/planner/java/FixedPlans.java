package secateur;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.Iterator;

/**
 * Whether a plan that Spark has already made has the same rows in every run: a cached frame's, or a micro-batch's.
 *
 * Nothing can be left out of it. Rows are the same if no condition depends on what may differ, and no node takes some
 * rows of many; of these rows, columns that may differ are left out. The plan may be analysed only, or optimised.
 */
final class FixedPlans {
    private static final Set SAME_ROWS = new HashSet(Arrays.asList(new String[] { // those of their child
        "ArrowEvalPython", "BatchEvalPython", "EventTimeWatermark", "RebalancePartitions", "Repartition",
        "RepartitionByExpression", "ResolvedHint", "Sort", "SubqueryAlias", "View", "Window"}));
    private static final Set JOINS = new HashSet(Arrays.asList(new String[] {
        "Cross", "FullOuter", "Inner", "LeftAnti", "LeftOuter", "LeftSemi", "RightOuter"}));
    private static final String[] STREAMS = { // whose rows between two offsets are always the same
        "org.apache.iceberg.spark.source.", "org.apache.spark.sql.execution.streaming.",
        "org.apache.spark.sql.kafka010."};
    private static final String ICEBERG_TABLE = "org.apache.iceberg.spark.source.SparkTable";

    /** The ids of the columns that have the same values in every run, a Set; or why rows may differ, a String. */
    static Object columns(LogicalPlan node) {
        if (node.children().isEmpty()) return ofLeaf(node);
        if (node instanceof Union) return ofUnion(node);
        if (node instanceof Join) return ofJoin((Join) node);
        Object below = columns((LogicalPlan) node.children().head());
        if (below instanceof String) return below;
        Set known = (Set) below;
        String name = node.getClass().getSimpleName();
        if (node instanceof Filter) return isSame(((Filter) node).condition(), known) ? (Object) known : differing(node);
        if (node instanceof Project) return fields(((Project) node).projectList().iterator(), known);
        if (SAME_ROWS.contains(name)) return known;
        if (node.isStreaming()) return differing(node); // it has a state
        if (node instanceof Aggregate) return fields(((Aggregate) node).aggregateExpressions().iterator(), known);
        return name.equals("Distinct") ? (Object) known : differing(node);
    }

    private static String differing(LogicalPlan node) { return node.nodeName() + " may have other rows when run twice"; }

    static boolean isSame(Expression expression, Set known) {
        return expression.deterministic() && RepeatableRows.hasAll(expression, known) && !hasUnknown(expression);
    }

    /** Whether a part is a user's function, which may differ whatever it says, another plan, or an aggregate. */
    private static boolean hasUnknown(Expression expression) {
        if (expression instanceof UserDefinedExpression || expression instanceof PlanExpression
            || expression instanceof AggregateExpression) return true;
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            if (hasUnknown((Expression) all.next())) return true;
        }
        return false;
    }

    private static Set fields(Iterator fields, Set known) {
        Set found = new HashSet();
        while (fields.hasNext()) {
            NamedExpression field = (NamedExpression) fields.next();
            Expression value = field instanceof Alias ? ((Alias) field).child() : (Expression) field;
            if (isSame(value, known)) found.add(field.exprId());
        }
        return found;
    }

    private static Object ofJoin(Join join) {
        if (!JOINS.contains(join.joinType().toString())) return differing(join);
        if (join.left().isStreaming() && join.right().isStreaming()) return differing(join);
        Object left = columns(join.left()), right = columns(join.right());
        if (left instanceof String) return left;
        if (right instanceof String) return right;
        Set both = new HashSet((Set) left);
        both.addAll((Set) right);
        if (join.condition().isDefined() && !isSame((Expression) join.condition().get(), both)) return differing(join);
        both.retainAll(FixedLeaves.ids(join));
        return both;
    }

    private static Object ofUnion(LogicalPlan union) {
        List places = FixedLeaves.places(union.output().length());
        for (Iterator all = union.children().iterator(); all.hasNext();) {
            LogicalPlan child = (LogicalPlan) all.next();
            Object known = columns(child);
            if (known instanceof String) return known;
            places.retainAll(FixedLeaves.placesOf((Set) known, child));
        }
        return FixedLeaves.idsAt(places, union);
    }

    /** Spark has planned these leaves already: their snapshots, files and offsets are fixed. */
    private static Object ofLeaf(LogicalPlan leaf) {
        if (leaf instanceof LogicalRelation && FixedLeaves.areFiles((LogicalRelation) leaf)) return FixedLeaves.ids(leaf);
        if (leaf instanceof DataSourceV2Relation) {
            String table = ((DataSourceV2Relation) leaf).table().getClass().getName();
            if (table.equals(ICEBERG_TABLE)) return FixedLeaves.ids(leaf);
        }
        return isReplayed(leaf) ? FixedLeaves.ids(leaf) : FixedLeaves.columns(leaf);
    }

    private static boolean isReplayed(LogicalPlan leaf) {
        if (!leaf.getClass().getSimpleName().equals("StreamingDataSourceV2ScanRelation")) return false;
        try {
            String kind = Reflected.call(leaf, "stream").getClass().getName();
            for (int i = 0; i < STREAMS.length; i++) if (kind.startsWith(STREAMS[i])) return true;
        } catch (Exception otherInternals) {
            return false;
        }
        return false;
    }
}
