package secateur;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** A scan that can be made partial. */
interface Limitable extends Partial {
    /** The scan of a relation for the question of that node, which names all filters above it; null if it has none. */
    Scan partial(DataSourceV2ScanRelation relation, byte[] question);
}
