package secateur;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
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
            if (isRanged(plan)) return ranged(new PreprocessTableWithDVsStrategy(SparkSession.active()).apply(plan));
        } catch (VirtualMachineError fatal) {
            throw fatal;
        } catch (Throwable error) {
            rule.events.warn("a query", String.valueOf(error));
        }
        return PrunedTable.seq(Collections.emptyList());
    }

    private static boolean isRanged(LogicalPlan node) {
        while (node instanceof Project || node instanceof Filter) node = (LogicalPlan) node.children().head();
        if (!(node instanceof LogicalRelation)) return false;
        Object relation = ((LogicalRelation) node).relation();
        if (!(relation instanceof HadoopFsRelation)) return false;
        Object files = ((HadoopFsRelation) relation).location();
        return files instanceof NarrowedDeltaFiles && !((NarrowedDeltaFiles) files).ranges.isEmpty();
    }

    private static Seq ranged(Seq plans) {
        List found = new ArrayList();
        for (Iterator all = plans.iterator(); all.hasNext();) found.add(ranged((SparkPlan) all.next()));
        return PrunedTable.seq(found);
    }

    private static SparkPlan ranged(SparkPlan node) {
        if (node instanceof FileSourceScanExec) return RangedScan.of((FileSourceScanExec) node);
        return (SparkPlan) node.withNewChildren(ranged((Seq) node.children()));
    }
}
