package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.CheckOverflow;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import scala.collection.Iterator;

/**
 * Sums and averages of which statistics tell a part.
 *
 * An average is computed by Spark's own expression, from a sum and a count that are completed. Python tells a sum only
 * if no sum of some of the values leaves Spark's type, so nothing here overflows, whatever the mode.
 */
final class Totals {
    static final int MORE = 10, MOST = 27; // digits of a sum beyond those of its values; digits that leave room for two

    private Totals() { }

    static boolean isSummed(DataType type) {
        if (type instanceof DecimalType) return ((DecimalType) type).precision() <= MOST;
        return type instanceof LongType || type instanceof IntegerType || type instanceof ShortType
            || type instanceof ByteType;
    }

    /** The type of the sum of a type's values. */
    static DataType sumType(DataType type) {
        if (!(type instanceof DecimalType)) return DataTypes.LongType;
        return new DecimalType(((DecimalType) type).precision() + MORE, ((DecimalType) type).scale());
    }

    /** Values by the type of their sum. */
    static Expression widened(Expression values) {
        DataType type = sumType(values.dataType());
        if (type.equals(values.dataType())) return values;
        return type instanceof DecimalType
            ? (Expression) new CheckOverflow(values, (DecimalType) type, true)
            : (Expression) Cast$.MODULE$.apply(values, type, false);
    }

    /** The sum of values that are widened already. */
    static Expression ofWidened(Expression sum, DataType type) {
        return type instanceof DecimalType ? new CheckOverflow(sum, (DecimalType) type, true) : sum;
    }

    /** A sum, and what is known beside it. */
    static Expression plus(Expression sum, Known known) {
        if (known.text == null) return sum;
        DataType type = sum.dataType();
        Literal told = new Literal(Answer.value(known.text, type), type);
        return coalesced(ofWidened(new Add(sum, told), type), told);
    }

    /** The average of what is read and of what is known. */
    static Expression average(Average own, Known sum, Known count) {
        Expression values = (Expression) own.children().head();
        List counted = Arrays.asList(new Object[] {values});
        Expression read = new Count(PrunedTable.seq(counted)).toAggregateExpression();
        return average(own, plus(new Sum(values).toAggregateExpression(), sum), plus(read, count));
    }

    /** The average by Spark's own expression, of a sum and a count. */
    static Expression average(Average own, Expression sum, Expression count) {
        Attribute ofSum = (Attribute) own.aggBufferAttributes().head();
        Attribute ofCount = (Attribute) own.aggBufferAttributes().last();
        Expression total = sum.dataType().equals(ofSum.dataType())
            ? sum : (Expression) Cast$.MODULE$.apply(sum, ofSum.dataType(), false);
        return replaced(own.evaluateExpression(), ofSum, total, ofCount, count);
    }

    private static Expression replaced(
            Expression node, Attribute first, Expression one, Attribute second, Expression other) {
        if (node instanceof Attribute) {
            return ((Attribute) node).exprId().equals(first.exprId()) ? one
                : ((Attribute) node).exprId().equals(second.exprId()) ? other : node;
        }
        List children = new ArrayList();
        for (Iterator all = node.children().iterator(); all.hasNext();) {
            children.add(replaced((Expression) all.next(), first, one, second, other));
        }
        return children.isEmpty() ? node : (Expression) node.withNewChildren(PrunedTable.seq(children));
    }

    static Expression coalesced(Expression value, Expression otherwise) {
        return new Coalesce(PrunedTable.seq(Arrays.asList(new Object[] {value, otherwise})));
    }
}
