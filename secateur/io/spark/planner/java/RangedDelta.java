package secateur;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.PreprocessTableWithDVsStrategy;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** Plans scans of narrowed files of Delta's as Delta does, and reads only ranges of these files. */
public final class RangedDelta extends SparkStrategy {
    private final EnableRule rule;

    public RangedDelta(EnableRule rule) { this.rule = rule; }

    public Seq apply(LogicalPlan plan) {
        try {
            LogicalRelation relation = ranged(plan);
            if (relation != null) {
                Seq plans = new PreprocessTableWithDVsStrategy(SparkSession.active()).apply(plan);
                return ranged(plans, !asksHidden(relation));
            }
        } catch (VirtualMachineError fatal) {
            throw fatal;
        } catch (Throwable error) {
            rule.events.warn("a query", String.valueOf(error));
        }
        return PrunedTable.seq(Collections.emptyList());
    }

    /** The relation that a plan reads ranges of; null if there is none. */
    private static LogicalRelation ranged(LogicalPlan node) {
        while (node instanceof Project || node instanceof Filter) node = (LogicalPlan) node.children().head();
        if (!(node instanceof LogicalRelation)) return null;
        Object relation = ((LogicalRelation) node).relation();
        if (!(relation instanceof HadoopFsRelation)) return null;
        Object files = ((HadoopFsRelation) relation).location();
        boolean isRanged = files instanceof RangedFiles && !((RangedFiles) files).ranges().isEmpty();
        return isRanged ? (LogicalRelation) node : null;
    }

    /** Whether a query asks for Spark's hidden columns; Delta adds those that it needs itself later. */
    private static boolean asksHidden(LogicalRelation relation) {
        for (Iterator all = relation.output().iterator(); all.hasNext();) {
            if (relation.relation().schema().getFieldIndex(((Attribute) all.next()).name()).isEmpty()) return true;
        }
        return false;
    }

    private static Seq ranged(Seq plans, boolean hidesPlaces) {
        List found = new ArrayList();
        for (Iterator all = plans.iterator(); all.hasNext();) found.add(ranged((SparkPlan) all.next(), hidesPlaces));
        return PrunedTable.seq(found);
    }

    private static SparkPlan ranged(SparkPlan node, boolean hidesPlaces) {
        if (node instanceof FileSourceScanExec) return RangedScan.of((FileSourceScanExec) node, hidesPlaces);
        return (SparkPlan) node.withNewChildren(ranged((Seq) node.children(), hidesPlaces));
    }
}
