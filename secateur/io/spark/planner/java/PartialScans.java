package secateur;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;

/** Scans that leave out rows that match, because the one node that reads them does not need these rows. */
final class PartialScans {
    /** The plan with such scans; without a rule, those of other sources than sec.dataframe stay as they are. */
    static LogicalPlan in(LogicalPlan plan, EnableRule rule) {
        SQLConf conf = SQLConf.get(); // of files that are skipped, rows would be counted
        if (conf.ignoreCorruptFiles() || conf.ignoreMissingFiles()) return plan;
        return KnownAggregates.in(FirstRows.in(plan, rule), rule);
    }
}
