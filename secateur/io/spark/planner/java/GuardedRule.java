package secateur;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** A rule of Spark's optimizer: where it fails, the plan stays as it is, with a warning. */
abstract class GuardedRule extends Rule implements Rewrite {
    public TreeNode apply(TreeNode plan) {
        try {
            return applies((LogicalPlan) plan) ? rewritten((LogicalPlan) plan) : plan;
        } catch (VirtualMachineError fatal) {
            throw fatal;
        } catch (SourceFailed failed) {
            new scala.util.Failure(failed.getCause()).get(); // throws it, whatever its kind
            return plan;
        } catch (Throwable error) {
            warnings().warn("a query", String.valueOf(error));
            return plan;
        }
    }

    abstract boolean applies(LogicalPlan plan) throws Exception;

    abstract Events warnings();
}
