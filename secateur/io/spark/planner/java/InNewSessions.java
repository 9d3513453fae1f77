package secateur;

import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;

/** Adds the rule to a new session when its first query is optimized; returns the rule that comes first, if any. */
final class InNewSessions extends AbstractFunction1 {
    private final EnableRule rule;
    private final Set known = java.util.Collections.synchronizedSet(new HashSet()); // ids of sessions with the rule

    InNewSessions(EnableRule rule) { this.rule = rule; }

    public Object apply(Object session) {
        SparkSession made = (SparkSession) session;
        if (rule.isOn && known.add(made.sessionUUID())) rule.enable(made);
        return rule.first == null ? new Nothing() : rule.first;
    }
}

final class Nothing extends Rule {
    public String ruleName() { return "secateur.Nothing"; }

    public TreeNode apply(TreeNode plan) { return plan; }
}
