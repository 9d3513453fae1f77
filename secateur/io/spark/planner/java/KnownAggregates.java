package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Greatest;
import org.apache.spark.sql.catalyst.expressions.Least;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.Iterator;

/**
 * Answers count, min, max, sum and avg without groups from statistics, as far as these tell; the other row groups are
 * read. count(DISTINCT) is answered here if nothing is left to read, else by KnownGroups.
 *
 * An aggregate stays in Spark's plan, over a scan of the rest, and what is known of the row groups that are left out is
 * added to its result as a constant: count(*) + 700, least(min(ts), 5). Sound as FirstRows is, see there.
 */
final class KnownAggregates {
    private final Chain chain;
    private final List calls = new ArrayList(); // of AggregateCall
    private final Map numbers = new HashMap(); // aggregate, in its canonical form -> its number among the calls

    private KnownAggregates(Chain chain) { this.chain = chain; }

    static LogicalPlan in(LogicalPlan node, final EnableRule rule) {
        if (node instanceof Aggregate) {
            LogicalPlan found = answered((Aggregate) node, rule);
            if (found == null) found = KnownGroups.answered((Aggregate) node, rule);
            if (found != null) return found;
        }
        return Children.rewritten(node, new Rewrite() {
            public LogicalPlan rewritten(LogicalPlan child) { return in(child, rule); }
        });
    }

    /** The aggregate over fewer row groups; null if statistics tell nothing, or other functions need all rows. */
    private static LogicalPlan answered(Aggregate node, EnableRule rule) {
        if (!node.groupingExpressions().isEmpty()) return null;
        Chain chain = Chain.of(node.child(), rule);
        if (chain == null || chain.isWhole()) return null;
        KnownAggregates found = new KnownAggregates(chain);
        for (Iterator all = node.aggregateExpressions().iterator(); all.hasNext();) {
            if (!found.collect((Expression) all.next())) return null;
        }
        if (found.calls.isEmpty()) return null;
        LogicalPlan rest = chain.partial(Question.ofAggregates(chain.filters, found.calls, new ArrayList()));
        Known[] known = chain.known(rest, !found.hasDifferent());
        if (known == null || known.length != found.calls.size()) return null;
        List results = new ArrayList();
        for (Iterator all = node.aggregateExpressions().iterator(); all.hasNext();) {
            results.add(found.completed((Expression) all.next(), known));
        }
        LogicalPlan over = (LogicalPlan) chain.under(node, rest);
        Object[] fields = new Object[over.productArity()];
        for (int i = 0; i < fields.length; i++) {
            boolean isResults = node.productElement(i) == node.aggregateExpressions();
            fields[i] = isResults ? PrunedTable.seq(results) : over.productElement(i);
        }
        return (LogicalPlan) over.makeCopy(fields);
    }

    /** Collect the aggregates of a result; whether all are of a kind that statistics can tell. */
    private boolean collect(Expression result) {
        if (result instanceof AggregateExpression) {
            AggregateCall call = AggregateCall.of((AggregateExpression) result, chain);
            if (call == null) return false;
            Expression key = result.canonicalized();
            if (!numbers.containsKey(key)) {
                numbers.put(key, Integer.valueOf(calls.size()));
                calls.add(call);
                if (call.isAverage()) calls.add(call.counted());
            }
            return true;
        }
        for (Iterator all = result.children().iterator(); all.hasNext();) {
            if (!collect((Expression) all.next())) return false;
        }
        return true;
    }

    /** Whether different values are counted, which may be known as groups. */
    private boolean hasDifferent() {
        for (int i = 0; i < calls.size(); i++) {
            AggregateCall call = (AggregateCall) calls.get(i);
            if (call.isCount() && !call.function.equals("count")) return true;
        }
        return false;
    }

    private Expression completed(Expression result, Known[] known) {
        if (result instanceof AggregateExpression) {
            int number = ((Integer) numbers.get(result.canonicalized())).intValue();
            AggregateCall call = (AggregateCall) calls.get(number);
            if (!call.isAverage()) return with((AggregateExpression) result, call, call.told(known[number]));
            if (known[number].text == null) return result;
            Average own = (Average) ((AggregateExpression) result).aggregateFunction();
            return Totals.average(own, call.told(known[number]), known[number + 1]);
        }
        List children = new ArrayList();
        for (Iterator all = result.children().iterator(); all.hasNext();) {
            children.add(completed((Expression) all.next(), known));
        }
        return children.isEmpty() ? result : (Expression) result.withNewChildren(PrunedTable.seq(children));
    }

    private static Expression with(AggregateExpression aggregate, AggregateCall call, Known known) {
        if (known.text == null) return aggregate; // no value in what is left out
        if (call.function.equals("sum")) return Totals.plus(aggregate, known);
        Literal told = new Literal(Answer.value(known.text, aggregate.dataType()), aggregate.dataType());
        if (call.isCount()) return new Add(aggregate, told); // of different values only if no row is left to read
        List both = Arrays.asList(new Object[] {aggregate, told});
        if (call.function.equals("min")) return new Least(PrunedTable.seq(both));
        return new Greatest(PrunedTable.seq(both));
    }
}
