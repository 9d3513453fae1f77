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
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.Iterator;

/**
 * A plan that can be run a second time for the values of another plan's columns: it has at least those.
 *
 * It reads lists of files, snapshots and values that stay what they are. What may differ between two runs is left out:
 * a LIMIT, a sample, ranks of rows that tie, conditions on them. That only adds rows. Expressions are those that raise no
 * error, since these rows may be others than the query's.
 */
final class RepeatableRows {
    private static final Set DROPPED = new HashSet(Arrays.asList(new String[] { // nodes that give some rows of their child
        "GlobalLimit", "LocalLimit", "Offset", "RebalancePartitions", "Repartition", "RepartitionByExpression", "Sample",
        "Sort", "Tail", "Window", "WindowGroupLimit"}));
    final LogicalPlan plan;
    private final Set columns; // ids of the columns of the other plan that it has

    private RepeatableRows(LogicalPlan plan, Set columns) {
        this.plan = plan;
        this.columns = columns;
    }

    /** The rows of a plan; or why they may be others in a second run, a String. */
    static Object of(LogicalPlan node) {
        if (node.children().isEmpty()) {
            String name = node.nodeName();
            return isFixed(node) ? (Object) new RepeatableRows(node, ids(node)) : name + " may have other rows when read twice";
        }
        boolean isKnown = node instanceof Project || node instanceof Filter || node instanceof Aggregate
            || DROPPED.contains(node.getClass().getSimpleName());
        if (!isKnown) return node.nodeName() + " may have other rows when run twice";
        Object below = of((LogicalPlan) node.children().head());
        if (below instanceof String) return below;
        RepeatableRows rows = (RepeatableRows) below;
        if (node instanceof Project) return rows.projected(((Project) node).projectList().iterator());
        if (node instanceof Aggregate) return rows.projected(((Aggregate) node).aggregateExpressions().iterator());
        if (node instanceof Filter) return rows.filtered(((Filter) node).condition());
        return rows;
    }

    /** Whether an expression over the other plan's columns has the same values here. */
    boolean has(Expression expression) {
        if (!Harmless.is(expression)) return false;
        for (Iterator all = expression.references().iterator(); all.hasNext();) {
            if (!columns.contains(((Attribute) all.next()).exprId())) return false;
        }
        return true;
    }

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
        return new RepeatableRows(new Project(PrunedTable.seq(kept), plan), ids);
    }

    private RepeatableRows filtered(Expression condition) {
        if (condition instanceof And) {
            return filtered(((And) condition).left()).filtered(((And) condition).right());
        }
        return has(condition) ? new RepeatableRows(new Filter(condition, plan), columns) : this;
    }

    private static Set ids(LogicalPlan node) {
        Set found = new HashSet();
        for (Iterator all = node.output().iterator(); all.hasNext();) found.add(((Attribute) all.next()).exprId());
        return found;
    }

    private static boolean isFixed(LogicalPlan leaf) {
        if (leaf.isStreaming()) return false;
        if (leaf instanceof LocalRelation || leaf instanceof Range) return true;
        if (leaf instanceof DataSourceV2ScanRelation) {
            Object scan = ((DataSourceV2ScanRelation) leaf).scan();
            String kind = scan.getClass().getName();
            return scan instanceof Pruned || scan instanceof PrunedScan || kind.equals(MergeKeys.ICEBERG_SCAN);
        }
        SQLConf conf = SQLConf.get(); // a file that cannot be read may be readable later
        if (conf.ignoreCorruptFiles() || conf.ignoreMissingFiles() || !(leaf instanceof LogicalRelation)) return false;
        if (!(((LogicalRelation) leaf).relation() instanceof HadoopFsRelation)) return false;
        HadoopFsRelation files = (HadoopFsRelation) ((LogicalRelation) leaf).relation();
        for (Iterator all = files.options().keysIterator(); all.hasNext();) {
            if (((String) all.next()).toLowerCase().startsWith("ignore")) return false;
        }
        return files.location().getClass() == InMemoryFileIndex.class;
    }
}
