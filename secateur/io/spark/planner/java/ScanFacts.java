package secateur;

import java.util.List;
import org.apache.spark.sql.connector.read.Statistics;

/** What Spark asks of a deferred scan before its tasks are known. No class of Iceberg is named here: it may be missing. */
interface ScanFacts {
    Statistics statistics();

    /** The names of the columns whose values leave out tasks while a query runs; null if Iceberg is to tell them. */
    List partitionColumns();
}
