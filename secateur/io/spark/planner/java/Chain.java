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
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** Harmless projections and filters over a pruned scan, and nothing else: which rows pass is known exactly. */
final class Chain {
    final DataSourceV2ScanRelation relation;
    final List filters; // all of them, by columns of the scan
    private final Map definitions = new HashMap(); // id of a column of the chain -> its definition by the scan's

    private Chain(DataSourceV2ScanRelation relation, List filters) {
        this.relation = relation;
        this.filters = filters;
    }

    /** The chain that a plan is; null if it is another plan, or if its scan already leaves out rows that match. */
    static Chain of(LogicalPlan plan) {
        Tuple3 operation = (Tuple3) PhysicalOperation$.MODULE$.unapply(plan).get();
        if (!(operation._3() instanceof DataSourceV2ScanRelation)) return null;
        DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) operation._3();
        if (!(relation.scan() instanceof Limitable) || ((Limitable) relation.scan()).isPartial()) return null;
        List filters = new ArrayList();
        for (Iterator all = ((Seq) operation._2()).iterator(); all.hasNext();) {
            Expression filter = (Expression) all.next();
            if (!filter.deterministic() || holdsPlan(filter)) return null;
            filters.add(filter);
        }
        Chain found = new Chain(relation, filters);
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

    /** The scan that reads Parquet files of a directory; null if it is of another source. */
    PrunedScan scan() { return relation.scan() instanceof PrunedScan ? (PrunedScan) relation.scan() : null; }

    /** The scan for a question of the node above; null if it cannot be asked. */
    Scan partial(byte[] question) { return ((Limitable) relation.scan()).partial(relation, question); }

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

    /** A plan that ends in this chain by nodes with one child each, over another scan. */
    LogicalPlan under(LogicalPlan node, Scan scan) {
        if (node == relation) return withScan(DeferredScan.undone(relation), scan);
        LogicalPlan child = under((LogicalPlan) node.children().head(), scan);
        return (LogicalPlan) node.withNewChildren(PrunedTable.seq(Arrays.asList(new Object[] {child})));
    }

    static LogicalPlan withScan(DataSourceV2ScanRelation relation, Object scan) {
        return Children.with(relation, relation.scan(), scan);
    }
}
