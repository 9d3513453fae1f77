package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Answers count, min, max, sum and avg of groups, and count(DISTINCT), from statistics as far as these tell; the other
 * row groups are read.
 *
 * The rows that are read are united with one row for every group that is known of the row groups left out, and Spark
 * aggregates both: SELECT k, count(*), min(x) FROM t GROUP BY k is then SELECT k, sum(n), min(m) FROM (SELECT k, 1 AS n,
 * x AS m FROM rest UNION ALL VALUES (7, 700, 5)) GROUP BY k. A column of count(DISTINCT) is one of the groups that are
 * known, as no value is lost there. Sound as FirstRows is, see there.
 */
final class KnownGroups {
    private final Chain chain;
    private final List groups = new ArrayList(); // of Attribute: grouped by, or distinct
    private final List columns = new ArrayList(); // the same by the columns of the scan
    private final List calls = new ArrayList(); // of AggregateCall
    private final List counted = new ArrayList(); // of NamedExpression: per call, what a row that is read adds
    private final Map numbers = new HashMap(); // aggregate, in its canonical form -> its number among the calls

    private KnownGroups(Chain chain) { this.chain = chain; }

    /** The aggregate over fewer row groups; null if statistics tell nothing, or other functions need all rows. */
    static LogicalPlan answered(Aggregate node, EnableRule rule) {
        Chain chain = Chain.of(node.child(), rule);
        if (chain == null || chain.isWhole()) return null;
        KnownGroups found = new KnownGroups(chain);
        for (Iterator all = node.groupingExpressions().iterator(); all.hasNext();) {
            if (!found.collectGroup((Expression) all.next())) return null;
        }
        for (Iterator all = node.aggregateExpressions().iterator(); all.hasNext();) {
            if (!found.collect((Expression) all.next())) return null;
        }
        if (found.groups.isEmpty()) return null;
        LogicalPlan rest = chain.partial(Question.ofAggregates(chain.filters, found.calls, found.columns));
        Known[] known = chain.known(rest, true);
        if (known == null || known.length % (found.groups.size() + found.calls.size()) != 0) return null;
        List results = new ArrayList();
        for (Iterator all = node.aggregateExpressions().iterator(); all.hasNext();) {
            results.add(found.completed((Expression) all.next()));
        }
        LogicalPlan both = found.united(chain.under(node.child(), rest), known);
        Object[] fields = new Object[node.productArity()];
        for (int i = 0; i < fields.length; i++) {
            Object field = node.productElement(i);
            fields[i] = field == node.aggregateExpressions() ? PrunedTable.seq(results)
                : field == node.child() ? both : field;
        }
        return (LogicalPlan) node.makeCopy(fields);
    }

    private boolean collectGroup(Expression group) {
        if (!(group instanceof Attribute) || !Answer.isGrouped(group.dataType())) return false;
        for (int i = 0; i < groups.size(); i++) {
            if (((Attribute) groups.get(i)).exprId().equals(((Attribute) group).exprId())) return true;
        }
        Expression column = chain.defined(group);
        if (column == null) return false;
        groups.add(group);
        columns.add(column);
        return true;
    }

    /** Collect the aggregates of a result; whether all are of a kind that statistics can tell. */
    private boolean collect(Expression result) {
        if (result instanceof AggregateExpression) {
            AggregateExpression aggregate = (AggregateExpression) result;
            return aggregate.isDistinct() ? collectDistinct(aggregate) : collectCall(aggregate);
        }
        for (Iterator all = result.children().iterator(); all.hasNext();) {
            if (!collect((Expression) all.next())) return false;
        }
        return true;
    }

    private boolean collectDistinct(AggregateExpression aggregate) {
        if (aggregate.filter().isDefined() || aggregate.mode() != Complete$.MODULE$) return false;
        if (!(aggregate.aggregateFunction() instanceof Count)) return false;
        for (Iterator all = aggregate.aggregateFunction().children().iterator(); all.hasNext();) {
            if (!collectGroup((Expression) all.next())) return false;
        }
        return true;
    }

    private boolean collectCall(AggregateExpression aggregate) {
        AggregateCall call = AggregateCall.of(aggregate, chain);
        if (call == null) return false;
        Expression key = aggregate.canonicalized();
        if (numbers.containsKey(key)) return true;
        numbers.put(key, Integer.valueOf(calls.size()));
        Expression argument = (Expression) aggregate.aggregateFunction().children().head();
        boolean isTotal = call.function.equals("sum") || call.isAverage();
        add(call, isTotal ? Totals.widened(argument) : argument);
        if (call.isAverage()) add(call.counted(), argument);
        return true;
    }

    /** Add a call, and what a row that is read adds to it. */
    private void add(AggregateCall call, Expression argument) {
        calls.add(call);
        Expression added = argument;
        if (call.function.equals("count")) added = call.column == null ? (Expression) number(1) : one(argument);
        counted.add(new Alias(
            added, call.function, NamedExpression$.MODULE$.newExprId(), PrunedTable.seq(new ArrayList()),
            Option.empty(), PrunedTable.seq(new ArrayList())));
    }

    private static Expression one(Expression argument) {
        return new If(new IsNotNull(argument), number(1), number(0));
    }

    private static Literal number(long value) { return new Literal(Long.valueOf(value), DataTypes.LongType); }

    /** A result over the united rows. */
    private Expression completed(Expression result) {
        if (result instanceof AggregateExpression) {
            AggregateExpression aggregate = (AggregateExpression) result;
            return aggregate.isDistinct() ? aggregate : completedCall(aggregate);
        }
        List children = new ArrayList();
        for (Iterator all = result.children().iterator(); all.hasNext();) {
            children.add(completed((Expression) all.next()));
        }
        return children.isEmpty() ? result : (Expression) result.withNewChildren(PrunedTable.seq(children));
    }

    private Expression completedCall(AggregateExpression aggregate) {
        int number = ((Integer) numbers.get(aggregate.canonicalized())).intValue();
        Attribute added = added(number);
        AggregateFunction own = aggregate.aggregateFunction();
        if (own instanceof Average) {
            Expression sum = Totals.ofWidened(new Sum(added).toAggregateExpression(), added.dataType());
            Expression values = new Sum(added(number + 1)).toAggregateExpression();
            return Totals.average((Average) own, sum, Totals.coalesced(values, number(0)));
        }
        boolean isCount = own instanceof Count;
        Object function = isCount ? new Sum(added) : own.withNewChildren(listed(added));
        Expression found = (Expression) aggregate.withNewChildren(listed(function));
        if (own instanceof Sum) return Totals.ofWidened(found, added.dataType());
        return isCount ? Totals.coalesced(found, number(0)) : found; // of no rows
    }

    private Attribute added(int call) { return ((NamedExpression) counted.get(call)).toAttribute(); }

    /** What is known, row by row, in the units that Spark adds. */
    private Known[] told(Known[] known) {
        int width = groups.size() + calls.size();
        Known[] found = new Known[known.length];
        for (int i = 0; i < known.length; i++) {
            int call = i % width - groups.size();
            found[i] = call < 0 ? known[i] : ((AggregateCall) calls.get(call)).told(known[i]);
        }
        return found;
    }

    private static Seq listed(Object only) {
        return PrunedTable.seq(Arrays.asList(new Object[] {only}));
    }

    /** What is read of a chain, with a row for every known group. */
    private LogicalPlan united(LogicalPlan read, Known[] known) {
        List fields = new ArrayList(groups);
        fields.addAll(counted);
        LogicalPlan rows = new Project(PrunedTable.seq(fields), read);
        LogicalPlan told = LocalRows.of(fields, told(known));
        return new Union(PrunedTable.seq(Arrays.asList(new Object[] {rows, told})), false, false);
    }
}
