package secateur;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Rewrites the plans inside expressions, each by itself: a run-time filter's plan must equal the plan it repeats. */
final class InSubqueries extends AbstractFunction1 {
    private final Rewrite rule;

    InSubqueries(Rewrite rule) { this.rule = rule; }

    public Object apply(Object given) {
        Expression expression = (Expression) given;
        boolean differs = false;
        List children = new ArrayList();
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            Object child = all.next();
            Object found = apply(child);
            differs |= found != child;
            children.add(found);
        }
        if (differs) expression = (Expression) expression.withNewChildren(PrunedTable.seq(children));
        if (!(expression instanceof PlanExpression)) return expression;
        PlanExpression subquery = (PlanExpression) expression;
        if (!(subquery.plan() instanceof LogicalPlan)) return expression;
        LogicalPlan plan = (LogicalPlan) subquery.plan(), found = rule.rewritten(plan);
        return found == plan ? expression : subquery.withNewPlan(found);
    }
}
