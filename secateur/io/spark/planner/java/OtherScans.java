package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Tuple2;
import scala.collection.immutable.Map;

/**
 * Prunes what other sources than Spark's own reader scan: see IcebergScan.java and DeltaRelation.java.
 *
 * A source is a Function of a session, a relation, filters (or a question of the one node that reads it), and the rule.
 * It returns what takes the place of a part of the relation, a reason (a String) to leave it, or null if the relation is
 * not its own.
 */
final class OtherScans {
    private static final String DELTA = "org.apache.spark.sql.delta.";

    /** A filter over a pruned scan; the same filter if the scan is not pruned. */
    static LogicalPlan pruned(EnableRule rule, SparkSession session, Filter filter, String unrepeatable) {
        LogicalPlan relation = filter.child();
        if (rule.others.isEmpty()) return filter;
        Object part = part(relation);
        if (part == null || part instanceof Pruned || part instanceof PrunedScan) return filter;
        List filters = new ArrayList();
        conjuncts(filter.condition(), filters);
        String name = name(relation);
        Object found = off(relation, name);
        if (found == null) found = unrepeatable;
        if (found == null) found = asked(rule, new Object[] {session, relation, filters, rule});
        if (!isPruned(rule, session, name, found)) return filter;
        return over(filter, with(relation, found));
    }

    /** A node over another child than its only one. */
    static LogicalPlan over(LogicalPlan node, LogicalPlan child) {
        return (LogicalPlan) node.withNewChildren(PrunedTable.seq(Arrays.asList(new Object[] {child})));
    }

    /** A relation whose files Delta chooses, if nobody has chosen them yet; the filter above it may be null. */
    static LogicalPlan own(LogicalPlan relation, Filter above) {
        Object files = relation instanceof LogicalRelation ? part(relation) : null;
        if (!(files instanceof DeferredFiles)) return relation;
        List filters = new ArrayList();
        if (above != null) conjuncts(above.condition(), filters);
        return withFiles(relation, ((DeferredFiles) files).own(filters));
    }

    /** The scan of a relation of Iceberg's for a question of the one node that reads it; null without an answer. */
    static Scan partial(EnableRule rule, SparkSession session, DataSourceV2ScanRelation relation, byte[] question) {
        if (off(relation, name(relation)) != null) return null;
        Object found = asked(rule, new Object[] {session, relation, question, rule});
        return isPruned(rule, session, name(relation), found) ? (Scan) found : null;
    }

    /**
     * A relation of Delta's for a question of the one node that reads it; null without an answer.
     *
     * An option names the question: Delta's files equal those with fewer rows, and Spark runs equal scans of a query once.
     */
    static LogicalPlan partial(EnableRule rule, LogicalRelation relation, byte[] question) {
        if (off(relation, name(relation)) != null) return null;
        if (part(relation) instanceof DeferredFiles) return null; // Python has not answered for its filters
        SparkSession session = SparkSession.active();
        Object found = asked(rule, new Object[] {session, relation, question, rule});
        if (!isPruned(rule, session, name(relation), found)) return null;
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        Object options = files.options().$plus(new Tuple2("secateur.question", String.valueOf(Arrays.hashCode(question))));
        return withFiles(relation, (FileIndex) found, (Map) options);
    }

    /** Whether a result takes the place of a part of a relation; it is kept for reports. */
    static boolean isPruned(EnableRule rule, SparkSession session, String name, Object found) {
        if (found instanceof String) rule.events.add(session, name, "", (String) found);
        if (!(found instanceof Pruned)) return false;
        Pruned pruned = (Pruned) found;
        rule.events.add(session, pruned.location(), String.valueOf(pruned.number()), pruned.text());
        return true;
    }

    /** Whether the files of a relation are listed by Delta. */
    static boolean isDelta(LogicalRelation relation) {
        if (!(relation.relation() instanceof HadoopFsRelation)) return false;
        Object files = ((HadoopFsRelation) relation.relation()).location();
        return files instanceof Pruned || files instanceof DeferredFiles
            || files.getClass().getName().startsWith(DELTA);
    }

    /** The part of a relation that is replaced, or null. */
    private static Object part(LogicalPlan relation) {
        if (relation instanceof DataSourceV2ScanRelation) return ((DataSourceV2ScanRelation) relation).scan();
        if (!(relation instanceof LogicalRelation) || !isDelta((LogicalRelation) relation)) return null;
        return ((HadoopFsRelation) ((LogicalRelation) relation).relation()).location();
    }

    private static String name(LogicalPlan relation) {
        if (relation instanceof LogicalRelation) return Roots.place((LogicalRelation) relation);
        return ((DataSourceV2ScanRelation) relation).relation().table().name();
    }

    private static String off(LogicalPlan relation, String name) {
        return relation instanceof LogicalRelation
            ? Switches.of((LogicalRelation) relation, name) : Switches.ofName(name);
    }

    private static Object asked(EnableRule rule, Object[] parts) {
        for (Iterator all = rule.others.iterator(); all.hasNext();) {
            Object found = ((Function) all.next()).apply(parts);
            if (found != null) return found;
        }
        return null;
    }

    private static LogicalPlan with(LogicalPlan relation, Object pruned) {
        if (relation instanceof DataSourceV2ScanRelation) {
            return Chain.withScan(DeferredScan.undone((DataSourceV2ScanRelation) relation), pruned);
        }
        return withFiles(relation, (FileIndex) pruned);
    }

    /** A relation that reads other files. */
    static LogicalPlan withFiles(LogicalPlan relation, FileIndex index) {
        HadoopFsRelation files = (HadoopFsRelation) ((LogicalRelation) relation).relation();
        return withFiles((LogicalRelation) relation, index, files.options());
    }

    private static LogicalPlan withFiles(LogicalRelation relation, FileIndex index, Map options) {
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        HadoopFsRelation fewer = new HadoopFsRelation(
            index, files.partitionSchema(), files.dataSchema(),
            files.bucketSpec(), files.fileFormat(), options, files.sparkSession());
        return Children.with(relation, files, fewer);
    }

    /** Add the deterministic conjuncts of a condition to those found. */
    static void conjuncts(Expression condition, List found) {
        if (condition instanceof And) {
            conjuncts(((And) condition).left(), found);
            conjuncts(((And) condition).right(), found);
        } else if (condition.deterministic()) found.add(condition);
    }
}
