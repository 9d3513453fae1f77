package secateur;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnscaledValue;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;

/** An aggregate that statistics may tell: count(*), or count, count(DISTINCT), min, max, sum or avg of a column. */
final class AggregateCall {
    final String function; // of avg, the sum is told; a count beside it is asked for
    final Expression column; // by the columns of a scan; null for rows
    private final boolean isUnscaled; // Spark adds the unscaled values of decimals

    private AggregateCall(String function, Expression column, boolean isUnscaled) {
        this.function = function;
        this.column = column;
        this.isUnscaled = isUnscaled;
    }

    private AggregateCall(String function, Expression column) { this(function, column, false); }

    /** The call that an aggregate over a chain is; null if it is another one. */
    static AggregateCall of(AggregateExpression aggregate, Chain chain) {
        if (aggregate.filter().isDefined() || aggregate.mode() != Complete$.MODULE$) return null;
        AggregateFunction function = aggregate.aggregateFunction();
        if (aggregate.isDistinct()) return ofDifferent(function, chain);
        boolean isCount = function instanceof Count;
        if (function instanceof Sum || function instanceof Average) return ofTotal(function, chain);
        if (!isCount && !(function instanceof Min) && !(function instanceof Max)) return null;
        if (function.children().length() != 1) return null;
        Expression argument = (Expression) function.children().head();
        if (isCount && argument instanceof Literal) {
            return ((Literal) argument).value() == null ? null : new AggregateCall("count", null);
        }
        Expression column = chain.defined(argument);
        if (column == null || (!isCount && !Answer.isRead(column.dataType()))) return null;
        return new AggregateCall(isCount ? "count" : function instanceof Min ? "min" : "max", column);
    }

    private static AggregateCall ofDifferent(AggregateFunction function, Chain chain) {
        if (!(function instanceof Count) || function.children().length() != 1) return null;
        Expression column = chain.defined((Expression) function.children().head());
        return column == null || !Answer.isGrouped(column.dataType()) ? null : new AggregateCall("count distinct", column);
    }

    private static AggregateCall ofTotal(AggregateFunction function, Chain chain) {
        if (function.children().length() != 1) return null;
        Expression argument = (Expression) function.children().head();
        boolean isUnscaled = argument instanceof UnscaledValue;
        Expression column = chain.defined(isUnscaled ? (Expression) argument.children().head() : argument);
        if (column == null || !Totals.isSummed(column.dataType())) return null;
        return new AggregateCall(function instanceof Sum ? "sum" : "avg", column, isUnscaled);
    }

    boolean isCount() { return function.startsWith("count"); }

    boolean isAverage() { return function.equals("avg"); }

    /** The count of an average's values. */
    AggregateCall counted() { return new AggregateCall("count", column); }

    /** What is known, in the units that Spark adds. */
    Known told(Known known) { return isUnscaled ? known.unscaled() : known; }
}
