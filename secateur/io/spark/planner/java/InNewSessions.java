package secateur;

import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;

/** Adds the rule to a new session when its first query is optimized; returns the rules that come first as one. */
final class InNewSessions extends AbstractFunction1 {
    private final EnableRule rule;
    private final Set known = java.util.Collections.synchronizedSet(new HashSet()); // ids of sessions with the rule

    InNewSessions(EnableRule rule) { this.rule = rule; }

    public Object apply(Object session) {
        SparkSession made = (SparkSession) session;
        if (rule.isOn && known.add(made.sessionUUID())) rule.enable(made);
        return new First(rule.firsts);
    }
}

/** Some rules, one after the other. */
final class First extends Rule {
    private final List rules;

    First(List rules) { this.rules = rules; }

    public String ruleName() { return "secateur.First"; }

    public TreeNode apply(TreeNode plan) {
        for (Iterator all = rules.iterator(); all.hasNext();) plan = ((Rule) all.next()).apply(plan);
        return plan;
    }
}
