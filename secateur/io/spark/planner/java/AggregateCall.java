package secateur;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;

/** An aggregate that statistics may tell: count(*), or count, min or max of a column. */
final class AggregateCall {
    final String function;
    final Expression column; // by the columns of a scan; null for rows

    private AggregateCall(String function, Expression column) {
        this.function = function;
        this.column = column;
    }

    /** The call that an aggregate over a chain is; null if it is another one. */
    static AggregateCall of(AggregateExpression aggregate, Chain chain) {
        if (aggregate.isDistinct() || aggregate.filter().isDefined()) return null;
        if (aggregate.mode() != Complete$.MODULE$) return null;
        AggregateFunction function = aggregate.aggregateFunction();
        boolean isCount = function instanceof Count;
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
}
