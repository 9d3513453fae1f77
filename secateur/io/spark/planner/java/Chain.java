package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** Harmless projections and filters over a pruned scan, and nothing else: which rows pass is known exactly. */
final class Chain {
    final LogicalPlan relation; // that a scan reads, or of files of Delta's
    private final EnableRule rule; // null if only scans of sec.dataframe are asked for
    final List filters; // all of them, by columns of the scan
    private final Map definitions = new HashMap(); // id of a column of the chain -> its definition by the scan's

    private Chain(LogicalPlan relation, EnableRule rule, List filters) {
        this.relation = relation;
        this.rule = rule;
        this.filters = filters;
    }

    /** The chain that a plan is; null if it is another plan, or if its scan already leaves out rows that match. */
    static Chain of(LogicalPlan plan, EnableRule rule) {
        Tuple3 operation = (Tuple3) PhysicalOperation$.MODULE$.unapply(plan).get();
        LogicalPlan relation = (LogicalPlan) operation._3();
        Object part = part(relation);
        boolean isDelta = relation instanceof LogicalRelation && OtherScans.isDelta((LogicalRelation) relation);
        if (!(part instanceof Limitable) && !(isDelta && rule != null)) return null;
        if (part instanceof Partial && ((Partial) part).isPartial()) return null;
        List filters = new ArrayList();
        for (Iterator all = ((Seq) operation._2()).iterator(); all.hasNext();) {
            Expression filter = (Expression) all.next();
            if (!filter.deterministic() || holdsPlan(filter)) return null;
            filters.add(filter);
        }
        Chain found = new Chain(relation, rule, filters);
        for (Iterator all = ((Seq) operation._1()).iterator(); all.hasNext();) {
            NamedExpression field = (NamedExpression) all.next();
            if (!Harmless.is((Expression) field)) return null;
            Object definition = field instanceof Alias ? ((Alias) field).child() : field;
            found.definitions.put(field.exprId(), definition);
        }
        return found;
    }

    private static boolean holdsPlan(Expression expression) {
        if (expression instanceof PlanExpression) return true;
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            if (holdsPlan((Expression) all.next())) return true;
        }
        return false;
    }

    /** What reads the rows of a relation: a scan, or the files of a relation of Spark's own kind. */
    private static Object part(LogicalPlan relation) {
        if (relation instanceof DataSourceV2ScanRelation) return ((DataSourceV2ScanRelation) relation).scan();
        if (!(relation instanceof LogicalRelation)) return null;
        Object files = ((LogicalRelation) relation).relation();
        return files instanceof HadoopFsRelation ? ((HadoopFsRelation) files).location() : null;
    }

    boolean isOfDelta() { return relation instanceof LogicalRelation; }

    /** Whether statistics are known to answer nothing of what reads this chain. */
    boolean isWhole() { return part(relation) instanceof PrunedScan && ((PrunedScan) part(relation)).isWhole(); }

    /** The relation for a question of the node above; null if it cannot be asked. */
    LogicalPlan partial(byte[] question) {
        if (isOfDelta()) return OtherScans.partial(rule, (LogicalRelation) relation, question);
        DataSourceV2ScanRelation scanned = (DataSourceV2ScanRelation) relation;
        Object scan = ((Limitable) scanned.scan()).partial(scanned, question);
        return scan == null ? null : withScan(DeferredScan.undone(scanned), scan);
    }

    /**
     * What is known of the aggregates that the question of a partial relation names; null if nothing is. Then, if that
     * settles it, nothing else is asked of the scan.
     */
    Known[] known(LogicalPlan partial, boolean settles) {
        if (partial == null) return null;
        Known[] known;
        try {
            known = ((Partial) part(partial)).known();
        } catch (IllegalStateException error) { // of Python; the scan as it was is asked next, and reports it
            return null;
        }
        if (known == null || known.length > 0) return known;
        if (!settles) return null;
        Object part = part(relation);
        if (part instanceof PrunedScan) ((PrunedScan) part).take(((PrunedScan) part(partial)).answer());
        return null;
    }

    /** An expression over the chain's columns, by the columns of the scan; null if it has others. */
    Expression defined(Expression expression) {
        if (expression instanceof Attribute) {
            return (Expression) definitions.get(((Attribute) expression).exprId());
        }
        List children = new ArrayList();
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            Expression found = defined((Expression) all.next());
            if (found == null) return null;
            children.add(found);
        }
        return children.isEmpty() ? expression : (Expression) expression.withNewChildren(PrunedTable.seq(children));
    }

    /** Whether an expression over the chain's columns has one value on all rows that pass, by a filter. */
    boolean isOneValue(Expression expression) {
        Expression column = defined(expression);
        if (column instanceof Literal) return true;
        for (int i = 0; column instanceof Attribute && i < filters.size(); i++) {
            Expression filter = (Expression) filters.get(i);
            boolean isEqual = filter instanceof EqualTo || filter instanceof EqualNullSafe;
            if (!isEqual && !(filter instanceof IsNull)) continue;
            Expression left = (Expression) filter.children().head(), right = (Expression) filter.children().last();
            if (!isEqual && left.semanticEquals(column)) return true;
            if (left instanceof Literal && right.semanticEquals(column)) return true;
            if (right instanceof Literal && left.semanticEquals(column)) return true;
        }
        return false;
    }

    /** A plan that ends in this chain by nodes with one child each, over a partial relation. */
    LogicalPlan under(LogicalPlan node, LogicalPlan partial) {
        if (node == relation) return partial;
        LogicalPlan child = under((LogicalPlan) node.children().head(), partial);
        return (LogicalPlan) node.withNewChildren(PrunedTable.seq(Arrays.asList(new Object[] {child})));
    }

    static LogicalPlan withScan(DataSourceV2ScanRelation relation, Object scan) {
        return Children.with(relation, relation.scan(), scan);
    }
}
