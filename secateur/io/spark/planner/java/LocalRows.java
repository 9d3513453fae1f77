package secateur;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Option;

/** Rows that a plan itself holds. */
final class LocalRows {
    private LocalRows() { }

    /** Rows of known values, one after the other, with columns of the types of some fields. */
    static LogicalPlan of(List fields, Known[] known) {
        List columns = new ArrayList();
        for (int i = 0; i < fields.size(); i++) {
            columns.add(((NamedExpression) fields.get(i)).toAttribute().newInstance().withNullability(true));
        }
        List rows = new ArrayList();
        for (int start = 0; start < known.length; start += columns.size()) {
            Object[] values = new Object[columns.size()];
            for (int i = 0; i < values.length; i++) {
                String text = known[start + i].text;
                values[i] = text == null ? null : Answer.value(text, ((Attribute) columns.get(i)).dataType());
            }
            rows.add(new GenericInternalRow(values));
        }
        return relation(PrunedTable.seq(columns), PrunedTable.seq(rows));
    }

    /** A relation; since Spark 4 it also has a stream. */
    private static LogicalPlan relation(Object columns, Object rows) {
        Object[] all = {columns, rows, Boolean.FALSE, Option.empty()};
        Constructor made = LocalRelation.class.getConstructors()[0];
        try {
            return (LogicalPlan) made.newInstance(Arrays.copyOf(all, made.getParameterTypes().length));
        } catch (Exception e) {
            throw new IllegalStateException(e.toString());
        }
    }
}
