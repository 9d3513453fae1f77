package secateur;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** A scan that can leave out rows that match, if the one node of a plan that reads it does not need them. */
interface Limitable {
    /** The scan of a relation for the question of that node, which names all filters above it; null if it has none. */
    Scan partial(DataSourceV2ScanRelation relation, byte[] question);

    /** Whether it leaves out such rows already. */
    boolean isPartial();
}
