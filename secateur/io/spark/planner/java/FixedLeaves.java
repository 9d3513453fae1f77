package secateur;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.Iterator;

/** Leaves of a plan whose rows are the same when they are read twice. */
final class FixedLeaves {
    private static final String DELTA_FILES = "org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex";

    /** The ids of the columns that are the same, a Set; or why rows may be others, a String. */
    static Object columns(LogicalPlan leaf) {
        if (leaf instanceof InMemoryRelation) return ofCache((InMemoryRelation) leaf);
        if (leaf instanceof LogicalRDD) {
            Object rows = FixedRdds.of((LogicalRDD) leaf);
            return rows instanceof LogicalPlan ? of(leaf, (LogicalPlan) rows) : rows == null ? ids(leaf) : rows;
        }
        if (isFixed(leaf)) return ids(leaf);
        return leaf.nodeName() + " may have other rows when read twice";
    }

    /** Of a cache: a part of it that is lost is computed again, by its plan. */
    private static Object ofCache(InMemoryRelation leaf) {
        LogicalPlan plan;
        try {
            plan = (LogicalPlan) Reflected.call(leaf.cacheBuilder(), "logicalPlan");
        } catch (Exception missing) {
            return "a cache of Spark 3.5 does not tell its plan";
        }
        return of(leaf, plan);
    }

    /** Of a leaf that has the rows of a plan. */
    private static Object of(LogicalPlan leaf, LogicalPlan plan) {
        Object columns = FixedPlans.columns(plan);
        if (columns instanceof String) return columns;
        if (plan.output().length() != leaf.output().length()) return leaf.nodeName() + " has other columns than its plan";
        return idsAt(placesOf((Set) columns, plan), leaf);
    }

    /** Of what Spark reads from files: not a cache, and nothing that the driver holds. */
    static boolean isRead(LogicalPlan leaf) {
        return leaf instanceof DataSourceV2ScanRelation || leaf instanceof LogicalRelation;
    }

    static Set ids(LogicalPlan node) { return idsAt(places(node.output().length()), node); }

    static Set idsAt(List places, LogicalPlan node) {
        Set found = new HashSet();
        for (int i = 0; i < places.size(); i++) {
            found.add(((Attribute) node.output().apply(((Integer) places.get(i)).intValue())).exprId());
        }
        return found;
    }

    static List places(int count) {
        List found = new ArrayList();
        for (int i = 0; i < count; i++) found.add(Integer.valueOf(i));
        return found;
    }

    /** Where a plan has the columns of some ids. */
    static List placesOf(Set ids, LogicalPlan plan) {
        List found = new ArrayList();
        for (int i = 0; i < plan.output().length(); i++) {
            if (ids.contains(((Attribute) plan.output().apply(i)).exprId())) found.add(Integer.valueOf(i));
        }
        return found;
    }

    private static boolean isFixed(LogicalPlan leaf) {
        if (leaf.isStreaming()) return false;
        if (leaf instanceof LocalRelation || leaf instanceof OneRowRelation || leaf instanceof Range) return true;
        if (leaf instanceof DataSourceV2ScanRelation) {
            Object scan = ((DataSourceV2ScanRelation) leaf).scan();
            String kind = scan.getClass().getName();
            return scan instanceof Pruned || scan instanceof PrunedScan || kind.equals(MergeKeys.ICEBERG_SCAN);
        }
        return leaf instanceof LogicalRelation && (areFiles((LogicalRelation) leaf) || isOfVersion((LogicalRelation) leaf));
    }

    /** Whether a relation has the files of one version of a Delta table. */
    private static boolean isOfVersion(LogicalRelation leaf) {
        if (!(leaf.relation() instanceof HadoopFsRelation)) return false;
        Object files = ((HadoopFsRelation) leaf.relation()).location();
        return files instanceof Pruned || files.getClass().getName().equals(DELTA_FILES);
    }

    /** Whether a relation has a list of files, also one of a stream's batch. */
    static boolean areFiles(LogicalRelation leaf) {
        SQLConf conf = SQLConf.get(); // a file that cannot be read may be readable later
        if (conf.ignoreCorruptFiles() || conf.ignoreMissingFiles()) return false;
        if (!(leaf.relation() instanceof HadoopFsRelation)) return false;
        HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
        for (Iterator all = files.options().keysIterator(); all.hasNext();) {
            if (((String) all.next()).toLowerCase().startsWith("ignore")) return false;
        }
        return files.location().getClass() == InMemoryFileIndex.class;
    }
}
