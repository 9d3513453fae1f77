package secateur;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;

/** The keys of a MERGE's source as a condition on the target, from a run of the source before the query. */
final class CollectedKeys {
    /** That a column has one of the values of a plan with one column; null if these are more than are collected. */
    static Expression filter(SparkSession session, Expression column, LogicalPlan keys) {
        SparkPlan plan = QueryExecution.prepareExecutedPlan(session, keys);
        InternalRow[] rows;
        try {
            rows = plan.executeCollect();
        } catch (VirtualMachineError fatal) {
            throw fatal;
        } catch (Throwable error) {
            throw new SourceFailed(error);
        }
        if (rows.length > MergeKeys.MOST_KEYS) return null;
        if (rows.length == 0) return Literal$.MODULE$.apply(Boolean.FALSE);
        List values = new ArrayList(rows.length);
        for (int i = 0; i < rows.length; i++) values.add(rows[i].get(0, column.dataType()));
        return new InSet(column, PrunedTable.seq(values).toSet());
    }
}
