package secateur;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.collection.Iterator;

/**
 * Lets the keys of a MERGE's source prune its target, also of an UPDATE and a DELETE with a subquery.
 *
 * Spark cannot: it does not broadcast the source of an outer join, and pushes no filter below the projection that numbers
 * the target's rows. Where files are written anew, it first asks which files have a match, and filters that by a source
 * with a condition only. The filter here lies on the scan itself, and has its values from a second run of the source.
 * Sound: a join of these kinds drops rows of its left side without a partner, and the second run has all keys of the
 * first.
 */
final class MergeKeys implements Rewrite {
    static final String ICEBERG_SCAN = "org.apache.iceberg.spark.source.SparkBatchQueryScan";
    static final int MOST_KEYS = 1 << 18; // of a column; the driver collects them
    static final String TOO_MANY = "a source has more than 262,144 keys: the driver does not collect them";
    private static final long MOST_BYTES = 10 << 20; // of files, which are read once more, or as much as the target has
    private static final Set DROPPING = // joins that drop rows of their left side without a partner
        new HashSet(Arrays.asList(new String[] {"Inner", "RightOuter", "LeftSemi"}));
    private final EnableRule rule;
    private final SparkSession session;
    private final boolean isDelta; // writes what changes, else the files that hold a match are asked for
    private final boolean isEarly; // keys are collected while the query is planned

    private MergeKeys(EnableRule rule, SparkSession session, boolean isDelta) {
        this.rule = rule;
        this.session = session;
        this.isDelta = isDelta;
        this.isEarly = isEarly(session.version());
    }

    /**
     * Whether a subquery of a scan may never end, or is made of other parts, as in Spark 3.5.
     *
     * Before Spark 4.1, an adaptive one prints the whole plan, and waits for the lock of the exchange that waits for it.
     * Source: TreeNode.allChildren, a lazy value there.
     */
    private static boolean isEarly(String version) {
        return version.startsWith("3.") || version.startsWith("4.0") && SQLConf.get().adaptiveExecutionEnabled();
    }

    static LogicalPlan filtered(EnableRule rule, SparkSession session, LogicalPlan plan) {
        boolean isDelta = plan instanceof WriteDelta;
        if (!isDelta && !asksForFiles(plan) || !SQLConf.get().dynamicPartitionPruningEnabled()) return plan;
        return new MergeKeys(rule, session, isDelta).rewritten(plan);
    }

    /** Whether a plan is the one that Spark runs before it writes files anew: which files have a match? */
    private static boolean asksForFiles(LogicalPlan plan) {
        if (!plan.nodeName().equals("Subquery")) return false;
        LogicalPlan asked = (LogicalPlan) plan.children().head();
        if (!(asked instanceof Aggregate) || ((Aggregate) asked).groupingExpressions().length() != 1) return false;
        Object group = ((Aggregate) asked).groupingExpressions().head();
        return group instanceof AttributeReference && ((AttributeReference) group).name().equals("_file");
    }

    /** The first join below a plan, by nodes with one child each, with a filter on its left side. */
    public LogicalPlan rewritten(LogicalPlan node) {
        if (node instanceof Join) return joined((Join) node);
        return node.children().size() == 1 ? Children.rewritten(node, this) : node;
    }

    private LogicalPlan joined(final Join join) {
        if (!DROPPING.contains(join.joinType().toString()) || join.condition().isEmpty()) return join;
        Set ids = new HashSet();
        for (Iterator all = join.left().output().iterator(); all.hasNext();) ids.add(((Attribute) all.next()).exprId());
        final List keys = new ArrayList(); // pairs of a column of the target and an expression over the source
        collect((Expression) join.condition().get(), ids, keys);
        if (keys.isEmpty()) return join;
        LogicalPlan target = target(join.left(), keys, join.right());
        if (target == join.left()) return join;
        return (LogicalPlan) join.withNewChildren(PrunedTable.seq(Arrays.asList(new Object[] {target, join.right()})));
    }

    /** Add the pairs of a column of the target and an expression over the source that a condition asks to be equal. */
    static void collect(Expression condition, Set targets, List keys) {
        if (condition instanceof And) {
            collect(((And) condition).left(), targets, keys);
            collect(((And) condition).right(), targets, keys);
        } else if (condition instanceof EqualTo) {
            Expression left = ((EqualTo) condition).left(), right = ((EqualTo) condition).right();
            if (isKey(left, right, targets)) keys.add(new Expression[] {left, right});
            else if (isKey(right, left, targets)) keys.add(new Expression[] {right, left});
        }
    }

    private static boolean isKey(Expression column, Expression value, Set targets) {
        if (!(column instanceof AttributeReference)) return false;
        if (!targets.contains(((AttributeReference) column).exprId()) || value.references().isEmpty()) return false;
        for (Iterator all = value.references().iterator(); all.hasNext();) {
            if (targets.contains(((Attribute) all.next()).exprId())) return false;
        }
        return true;
    }

    /** The left side with filters on its scan; the same if there is no such scan, or it has such filters already. */
    private LogicalPlan target(LogicalPlan node, List keys, final LogicalPlan source) {
        boolean isFilter = node instanceof Filter;
        if (!isFilter && !(node instanceof Project) && !(node instanceof DataSourceV2ScanRelation)) return node;
        final List rest = isFilter ? unfiltered(keys, ((Filter) node).condition(), source) : keys;
        if (rest.isEmpty()) return node;
        LogicalPlan scan = isFilter ? ((Filter) node).child() : node;
        if (scan instanceof DataSourceV2ScanRelation) return scanned(node, (DataSourceV2ScanRelation) scan, rest, source);
        return Children.rewritten(node, new Rewrite() {
            public LogicalPlan rewritten(LogicalPlan child) { return target(child, rest, source); }
        });
    }

    /** The keys whose columns a condition does not filter by values of a join. Most such filters need a broadcast. */
    private static List unfiltered(List keys, Expression condition, LogicalPlan source) {
        if (condition instanceof DynamicPruningSubquery) {
            DynamicPruningSubquery filter = (DynamicPruningSubquery) condition;
            if (filter.onlyInBroadcast() && !isBroadcast(source)) return keys; // Spark drops it
            List rest = new ArrayList();
            for (int i = 0; i < keys.size(); i++) {
                if (!filter.pruningKey().semanticEquals(((Expression[]) keys.get(i))[0])) rest.add(keys.get(i));
            }
            return rest;
        }
        List rest = keys;
        for (Iterator all = condition.children().iterator(); all.hasNext();) {
            rest = unfiltered(rest, (Expression) all.next(), source);
        }
        return rest;
    }

    /** Whether Spark will broadcast the rows of a plan, by their estimated size. */
    private static boolean isBroadcast(LogicalPlan plan) {
        scala.math.BigInt most = scala.math.BigInt.apply(SQLConf.get().autoBroadcastJoinThreshold());
        return plan.stats().sizeInBytes().compare(most) <= 0;
    }

    /** `node`: the scan, or a filter over it. */
    private LogicalPlan scanned(LogicalPlan node, DataSourceV2ScanRelation relation, List keys, LogicalPlan source) {
        if (isDelta && !(relation.relation().table() instanceof RowLevelOperationTable)) return node;
        List columns = new ArrayList();
        for (int i = 0; i < keys.size(); i++) {
            Expression column = ((Expression[]) keys.get(i))[0];
            if (relation.outputSet().contains((AttributeReference) column)) columns.add(keys.get(i));
        }
        if (columns.isEmpty()) return node;
        LogicalPlan found = node;
        if (node == relation) { // a pruned scan lies under a filter, and rows without a key have no partner
            Expression column = ((Expression[]) columns.get(0))[0];
            Filter filter = new Filter(new IsNotNull(column), relation);
            found = OtherScans.pruned(rule, session, filter, null);
            if (found == filter) return node;
        }
        Object scan = ((DataSourceV2ScanRelation) ((Filter) found).child()).scan();
        if (!(scan instanceof TakesKeys)) return node;
        Object rows = rows(source, relation);
        List collected = new ArrayList();
        for (int i = 0; i < columns.size() && rows instanceof RepeatableRows; i++) {
            Expression[] pair = (Expression[]) columns.get(i);
            if (!((TakesKeys) scan).takes(((AttributeReference) pair[0]).name())) continue;
            Object filter = filter(pair[0], pair[1], (RepeatableRows) rows);
            if (filter instanceof String) rows = filter;
            else if (isEarly) collected.add(filter);
            else found = new Filter((Expression) filter, found);
        }
        if (rows instanceof RepeatableRows) return collected.isEmpty() ? found : keyed((Filter) found, collected);
        rule.events.add(session, relation.relation().table().name(), "", (String) rows);
        return node;
    }

    private static LogicalPlan keyed(Filter filter, List conditions) {
        DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) filter.child();
        Object scan = ((TakesKeys) relation.scan()).keyed(conditions);
        return scan == null ? filter : OtherScans.over(filter, Chain.withScan(relation, scan));
    }

    /** The rows of a source; or why it is not to be run a second time for its keys, a String. */
    static Object rows(LogicalPlan source, LogicalPlan target) {
        Object rows = RepeatableRows.of(source);
        boolean isLarger = rows instanceof RepeatableRows && isLarger(((RepeatableRows) rows).plan, target);
        return isLarger ? "the source has more bytes to read than the target" : rows;
    }

    /** The filter that a column has one of the source's values; or why there is none, a String. */
    private Object filter(Expression column, Expression value, RepeatableRows rows) {
        Object keys = keys(value, rows);
        if (keys instanceof String) return keys;
        if (!isEarly) return subquery(column, (LogicalPlan) keys);
        if (!Answer.isGrouped(column.dataType())) return "keys of this type are not collected before the query";
        Object filter = CollectedKeys.filter(session, column, (LogicalPlan) keys);
        return filter == null ? TOO_MANY : filter;
    }

    /** A plan of the source's values that are not NULL, of at most MOST_KEYS and one more; or why there is none, a String. */
    static Object keys(Expression value, RepeatableRows rows) {
        if (!rows.has(value)) return "the keys of the source may be others when it is run twice";
        boolean isColumn = value instanceof AttributeReference;
        Expression field = isColumn
            ? value : new Alias(value, "key", NamedExpression$.MODULE$.newExprId(), PrunedTable.seq(new ArrayList()),
                Option.empty(), PrunedTable.seq(new ArrayList()));
        LogicalPlan keys = new Project(PrunedTable.seq(Arrays.asList(new Object[] {field})), rows.plan);
        LogicalPlan narrow = (LogicalPlan) ColumnPruning$.MODULE$.apply(keys); // so that nothing else can raise an error
        return few((NamedExpression) keys.output().head(), narrow);
    }

    /** The distinct values of a column that are not NULL; if there are more than MOST_KEYS, one more than these. */
    private static LogicalPlan few(NamedExpression key, LogicalPlan keys) {
        Object one = PrunedTable.seq(Arrays.asList(new Object[] {key}));
        LogicalPlan some = new Filter(new IsNotNull((Expression) key), keys);
        LogicalPlan distinct = (LogicalPlan) made(Aggregate.class, new Object[] {one, one, some, Option.empty()});
        Expression most = Literal$.MODULE$.apply(Integer.valueOf(MOST_KEYS + 1));
        return new GlobalLimit(most, new LocalLimit(most, distinct));
    }

    /** Whether the files that a plan reads have more bytes than those of the target, by Spark's estimates. */
    private static boolean isLarger(LogicalPlan plan, LogicalPlan target) {
        scala.math.BigInt all = scala.math.BigInt.apply(0);
        for (Iterator leaves = plan.collectLeaves().iterator(); leaves.hasNext();) {
            LogicalPlan leaf = (LogicalPlan) leaves.next();
            if (FixedLeaves.isRead(leaf)) all = all.$plus(leaf.stats().sizeInBytes());
        }
        return all.compare(scala.math.BigInt.apply(MOST_BYTES)) > 0 && all.compare(target.stats().sizeInBytes()) > 0;
    }

    /** Spark's own kind of run-time filter; of several versions of Spark. */
    private static Expression subquery(Expression column, LogicalPlan keys) {
        Object first = keys.output().head();
        Object[] fields = {
            column, keys, PrunedTable.seq(Arrays.asList(new Object[] {first})),
            PrunedTable.seq(Arrays.asList(new Object[] {Integer.valueOf(0)})), Boolean.FALSE,
            NamedExpression$.MODULE$.newExprId(), Option.empty()};
        return (Expression) made(DynamicPruningSubquery.class, fields);
    }

    private static Object made(Class kind, Object[] fields) {
        Constructor constructor = kind.getConstructors()[0];
        try {
            return constructor.newInstance(Arrays.copyOf(fields, constructor.getParameterTypes().length));
        } catch (Exception e) {
            throw new IllegalStateException(e.toString());
        }
    }
}
