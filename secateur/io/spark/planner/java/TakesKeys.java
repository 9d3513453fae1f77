package secateur;

import java.util.List;
import org.apache.spark.sql.connector.read.Scan;

/** A scan that the values of a join's other side can prune while a query runs. */
interface TakesKeys {
    /** Whether values of a column can prune it. */
    boolean takes(String column);

    /** The scan without what conditions on such columns leave out, from before the query; null where that is unknown. */
    Scan keyed(List conditions);
}
