package secateur;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** What a rule does to a whole plan, and to the plan of a subquery. */
interface Rewrite {
    LogicalPlan rewritten(LogicalPlan plan);
}
