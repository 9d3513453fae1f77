package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import scala.collection.Iterator;

/**
 * A plan that can be run a second time for the values of another plan's columns: it has at least those.
 *
 * It reads lists of files, snapshots and values that stay what they are. What may differ between two runs is left out:
 * a LIMIT, a sample, ranks of rows that tie, conditions on them. That only adds rows. Where rows may have been added,
 * expressions are those that raise no error.
 */
final class RepeatableRows {
    private static final Set KEEPING = new HashSet(Arrays.asList(new String[] { // nodes that give every row of their child
        "ArrowEvalPython", "BatchEvalPython", "EventTimeWatermark", "RebalancePartitions", "Repartition",
        "RepartitionByExpression", "Sort", "Window"}));
    private static final Set DROPPING = new HashSet(Arrays.asList(new String[] { // nodes that give some of them
        "Generate", "GlobalLimit", "LocalLimit", "Offset", "Sample", "Tail", "WindowGroupLimit"}));
    final LogicalPlan plan;
    final Set columns; // ids of the columns of the other plan that it has
    final boolean isExact; // has no rows but those of the other plan

    RepeatableRows(LogicalPlan plan, Set columns, boolean isExact) {
        this.plan = plan;
        this.columns = columns;
        this.isExact = isExact;
    }

    /** The rows of a plan; or why they may be others in a second run, a String. */
    static Object of(LogicalPlan node) {
        if (node.children().isEmpty()) {
            Object columns = FixedLeaves.columns(node);
            return columns instanceof String ? columns : new RepeatableRows(node, (Set) columns, true);
        }
        if (node instanceof Union) return union(node);
        if (node instanceof Join) {
            return JoinedRows.of((Join) node, of(((Join) node).left()), of(((Join) node).right()));
        }
        String name = node.getClass().getSimpleName();
        boolean isKnown = node instanceof Project || node instanceof Filter || node instanceof Aggregate
            || KEEPING.contains(name) || DROPPING.contains(name);
        if (!isKnown) return node.nodeName() + " may have other rows when run twice";
        Object below = of((LogicalPlan) node.children().head());
        if (below instanceof String) return below;
        RepeatableRows rows = (RepeatableRows) below;
        if (node instanceof Project) return rows.projected(((Project) node).projectList().iterator());
        if (node instanceof Filter) return rows.filtered(((Filter) node).condition());
        if (!(node instanceof Aggregate)) return KEEPING.contains(name) ? rows : rows.inexact();
        Aggregate aggregate = (Aggregate) node;
        if (aggregate.groupingExpressions().isEmpty()) return "an aggregate without groups has a row even of no rows";
        return rows.projected(aggregate.aggregateExpressions().iterator());
    }

    /** Whether an expression over the other plan's columns has the same values here. */
    boolean has(Expression expression) { return isSame(expression, isExact, columns); }

    /** Whether an expression is the same in both plans, and raises no error that the other plan does not raise. */
    static boolean isSame(Expression expression, boolean isExact, Set columns) {
        return Harmless.is(expression) ? hasAll(expression, columns) : isExact && FixedPlans.isSame(expression, columns);
    }

    static boolean hasAll(Expression expression, Set columns) {
        for (Iterator all = expression.references().iterator(); all.hasNext();) {
            if (!columns.contains(((Attribute) all.next()).exprId())) return false;
        }
        return true;
    }

    private RepeatableRows inexact() { return new RepeatableRows(plan, columns, false); }

    /** Of an aggregate, what it computes from columns of its groups alone: no aggregate is harmless. */
    private RepeatableRows projected(Iterator fields) {
        List kept = new ArrayList();
        Set ids = new HashSet();
        while (fields.hasNext()) {
            NamedExpression field = (NamedExpression) fields.next();
            Expression value = field instanceof Alias ? ((Alias) field).child() : (Expression) field;
            if (!has(value)) continue;
            kept.add(field);
            ids.add(field.exprId());
        }
        return new RepeatableRows(new Project(PrunedTable.seq(kept), plan), ids, isExact);
    }

    private RepeatableRows filtered(Expression condition) {
        if (condition instanceof And) {
            return filtered(((And) condition).left()).filtered(((And) condition).right());
        }
        return has(condition) ? new RepeatableRows(new Filter(condition, plan), columns, isExact) : inexact();
    }

    /** The columns that all parts have. */
    private static Object union(LogicalPlan union) {
        List parts = new ArrayList();
        boolean isExact = true;
        for (Iterator all = union.children().iterator(); all.hasNext();) {
            Object part = of((LogicalPlan) all.next());
            if (part instanceof String) return part;
            parts.add(part);
            isExact &= ((RepeatableRows) part).isExact;
        }
        List places = FixedLeaves.places(union.output().length());
        for (int i = 0; i < parts.size(); i++) {
            LogicalPlan child = (LogicalPlan) union.children().apply(i);
            places.retainAll(FixedLeaves.placesOf(((RepeatableRows) parts.get(i)).columns, child));
        }
        List children = new ArrayList();
        for (int i = 0; i < parts.size(); i++) {
            List fields = new ArrayList();
            LogicalPlan child = (LogicalPlan) union.children().apply(i);
            for (int j = 0; j < places.size(); j++) {
                fields.add(child.output().apply(((Integer) places.get(j)).intValue()));
            }
            children.add(new Project(PrunedTable.seq(fields), ((RepeatableRows) parts.get(i)).plan));
        }
        LogicalPlan plan = (LogicalPlan) union.withNewChildren(PrunedTable.seq(children));
        return new RepeatableRows(plan, FixedLeaves.idsAt(places, union), isExact);
    }
}
