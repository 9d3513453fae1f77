package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.Iterator;

/**
 * Prunes what Delta's MERGE, UPDATE and DELETE read of the table that they change.
 *
 * Delta first looks for the rows that match. Then it reads the files that have some: whole, by a join that keeps all rows
 * or without a filter, where it writes them anew; and again the rows that match where deletion vectors mark them. Each is
 * a query of its own. Sound: a row is left out only if a filter above, or a join with the source, drops it. The source's
 * keys are collected before, for Delta names its files when the query is planned. What a commit conflicts with Delta has
 * noted before: the files that it gave to the transaction.
 */
final class TransactionReads implements Rewrite {
    private static final String TARGET = "org.apache.spark.sql.delta.files.TahoeBatchFileIndex";
    private static final TreeNodeTag ASKED = new TreeNodeTag("secateur.ASKED"); // a rule is called until nothing changes
    private static final Set LEFT = // joins that drop rows of their left side without a partner
        new HashSet(Arrays.asList(new String[] {"Inner", "RightOuter", "LeftSemi"}));
    private static final Set RIGHT = // and of their right side
        new HashSet(Arrays.asList(new String[] {"Inner", "LeftOuter", "LeftSemi", "LeftAnti"}));
    private final EnableRule rule;
    private final SparkSession session;

    private TransactionReads(EnableRule rule, SparkSession session) {
        this.rule = rule;
        this.session = session;
    }

    static LogicalPlan narrowed(EnableRule rule, SparkSession session, LogicalPlan plan) {
        if (rule.targets == null || !readsTarget(plan) || PlanObstacles.ofTransaction(plan) != null) return plan;
        return new TransactionReads(rule, session).rewritten(plan);
    }

    private static boolean readsTarget(LogicalPlan plan) {
        for (Iterator leaves = plan.collectLeaves().iterator(); leaves.hasNext();) {
            if (isTarget((LogicalPlan) leaves.next())) return true;
        }
        return false;
    }

    private static boolean isTarget(LogicalPlan leaf) {
        if (!(leaf instanceof LogicalRelation) || leaf.isStreaming()) return false;
        Object files = ((LogicalRelation) leaf).relation();
        return files instanceof HadoopFsRelation
            && ((HadoopFsRelation) files).location().getClass().getName().equals(TARGET);
    }

    public LogicalPlan rewritten(LogicalPlan node) { return read(node, new ArrayList(), new ArrayList(), null); }

    /** `keys`: pairs of a column and an expression over `source`, which are equal in every row that is needed. */
    private LogicalPlan read(LogicalPlan node, List filters, List keys, final LogicalPlan source) {
        if (node instanceof Join) return joined((Join) node);
        if (isTarget(node)) return narrowed((LogicalRelation) node, filters, keys, source);
        final List above = new ArrayList(), equal = new ArrayList();
        if (node instanceof Filter) {
            if (leading(((Filter) node).condition(), above)) {
                above.addAll(filters);
                equal.addAll(keys);
            }
        } else if (node instanceof Project && !PlanObstacles.count(node)) {
            above.addAll(filters);
            equal.addAll(keys);
        }
        return Children.rewritten(node, new Rewrite() {
            public LogicalPlan rewritten(LogicalPlan child) { return read(child, above, equal, source); }
        });
    }

    /** Add the conjuncts before the first that counts rows, or draws lots; whether that are all. */
    private static boolean leading(Expression condition, List filters) {
        if (condition instanceof And) {
            return leading(((And) condition).left(), filters) && leading(((And) condition).right(), filters);
        }
        if (!condition.deterministic()) return false;
        return filters.add(condition);
    }

    private LogicalPlan joined(Join join) {
        LogicalPlan left = side(join, join.left(), LEFT, join.right());
        LogicalPlan right = side(join, join.right(), RIGHT, join.left());
        if (left == join.left() && right == join.right()) return join;
        return (LogicalPlan) join.withNewChildren(PrunedTable.seq(Arrays.asList(new Object[] {left, right})));
    }

    private LogicalPlan side(Join join, LogicalPlan side, Set dropping, LogicalPlan other) {
        List keys = new ArrayList();
        boolean isDropping = dropping.contains(join.joinType().toString()) && join.condition().isDefined();
        if (isDropping && SQLConf.get().dynamicPartitionPruningEnabled()) {
            MergeKeys.collect((Expression) join.condition().get(), FixedLeaves.ids(side), keys);
        }
        return read(side, new ArrayList(), keys, other);
    }

    private LogicalPlan narrowed(LogicalRelation relation, List filters, List keys, LogicalPlan source) {
        String place = Roots.place(relation);
        List own = new ArrayList(); // filters of the relation's own columns
        for (int i = 0; i < filters.size(); i++) if (isOf(filters.get(i), relation)) own.add(filters.get(i));
        if (own.isEmpty() && keys.isEmpty() || relation.getTagValue(ASKED).isDefined()) return relation;
        relation.setTagValue(ASKED, Boolean.TRUE);
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        Path root = (Path) files.location().rootPaths().head();
        String[] columns = rule.lookups.columns(Roots.location(root) + "/_delta_log");
        Object found = Switches.of(relation, place);
        if (found == null && columns == null) found = "no index";
        if (found == null) {
            Set known = new HashSet(Arrays.asList(columns));
            known.addAll(Arrays.asList(files.partitionSchema().fieldNames()));
            collect(relation, keys, known, source, place, own);
            if (own.isEmpty()) return relation;
            found = rule.targets.apply(new Object[] {session, relation, own, rule});
        }
        return OtherScans.isPruned(rule, session, place, found)
            ? OtherScans.withFiles(relation, (org.apache.spark.sql.execution.datasources.FileIndex) found) : relation;
    }

    private static boolean isOf(Object expression, LogicalRelation relation) {
        return ((Expression) expression).references().subsetOf(relation.outputSet());
    }

    /** Add to the filters that columns have one of the source's values, where these are known to be the same twice. */
    private void collect(
            LogicalRelation relation, List keys, Set known, LogicalPlan source, String place, List filters) {
        Object rows = null; // the source's; or why these may differ, a String
        for (int i = 0; i < keys.size() && !(rows instanceof String); i++) {
            AttributeReference column = (AttributeReference) ((Expression[]) keys.get(i))[0];
            if (!isOf(column, relation) || !known.contains(column.name()) || !Answer.isGrouped(column.dataType())) continue;
            if (rows == null) rows = MergeKeys.rows(source, relation);
            if (!(rows instanceof RepeatableRows)) break;
            Object values = MergeKeys.keys(((Expression[]) keys.get(i))[1], (RepeatableRows) rows);
            if (values instanceof String) {
                rows = values;
                continue;
            }
            Expression filter = CollectedKeys.filter(session, column, (LogicalPlan) values);
            if (filter == null) rule.events.add(session, place, "", MergeKeys.TOO_MANY);
            else filters.add(filter);
        }
        if (rows instanceof String) rule.events.add(session, place, "", (String) rows);
    }
}
