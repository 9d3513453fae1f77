package secateur;

import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;

/** Whether the session has switched pruning off, for all tables or for one. */
final class Switches {
    private static final String ENABLED = "secateur.enabled"; // SET secateur.enabled[.<table>]=false
    private static final String GROUPING = "secateur.grouping"; // SET secateur.grouping=true
    private static final String MERGING = "spark.sql.sources.v2.bucketing.preserveOrderingOnCoalesce.enabled";

    static boolean isOn() { return isTrue(ENABLED); }

    /** Why a table is switched off, or null; its name may be given whole (lake.db.events) or from the right. */
    static String ofName(String name) {
        for (int at = 0; at >= 0; at = name.indexOf('.', at) < 0 ? -1 : name.indexOf('.', at) + 1) {
            String key = ENABLED + "." + name.substring(at);
            if (!isTrue(key)) return key + " is off";
        }
        return null;
    }

    /** Why a relation is switched off by its location or by its name in the catalog, or null. */
    static String of(LogicalRelation relation, String location) {
        String key = ENABLED + "." + location;
        if (!isTrue(key)) return key + " is off";
        if (relation.catalogTable().isEmpty()) return null;
        TableIdentifier name = ((CatalogTable) relation.catalogTable().get()).identifier();
        return ofName(name.unquotedString());
    }

    /** Whether scans are to be grouped by partition columns. */
    static boolean isGrouping() { return isTrue(GROUPING, "false"); }

    /** Whether Spark may keep the order of partitions that it lays together. */
    static boolean isMergingByOrder() { return isTrue(MERGING, "false"); }

    private static boolean isTrue(String key) { return isTrue(key, "true"); }

    private static boolean isTrue(String key, String usually) {
        return SQLConf.get().getConfString(key, usually).trim().equalsIgnoreCase("true");
    }
}
