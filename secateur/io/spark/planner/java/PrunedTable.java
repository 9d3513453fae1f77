package secateur;

import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.$colon$colon;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * A table that Spark's own Parquet reader scans, restricted to the row groups that can match according to Python.
 *
 * Compiled in the driver by Janino, which Spark ships for its generated code: so no lambdas and no generics.
 * Nothing of this goes to executors. They get Spark's FilePartition and its ParquetPartitionReaderFactory.
 */
public class PrunedTable implements Table, SupportsRead, SupportsMetadataColumns, BlockSource {
    public final SparkSession spark;
    public final String name;
    public final StructType schema; // of the table
    public final StructType dataSchema; // of its files, without partition columns
    public final StructType partitionSchema;
    public final String[] filterable; // columns for which values of a join's other side can prune
    public final Function python; // bytes of a request -> bytes of a reply, see secateur/io/spark/planner/protocol.py

    /** `parts`: the fields in order. Py4J puts Python objects into lists, not into the array of a reflective call. */
    public PrunedTable(List parts) {
        spark = (SparkSession) parts.get(0);
        name = (String) parts.get(1);
        schema = (StructType) parts.get(2);
        dataSchema = (StructType) parts.get(3);
        partitionSchema = (StructType) parts.get(4);
        filterable = (String[]) ((List) parts.get(5)).toArray(new String[0]);
        python = (Function) parts.get(6);
    }

    /** Let scans of this table be partial, where Spark's internals are those that this needs. */
    public void allowPartial() {
        try {
            PartialScansRule.addTo(spark);
        } catch (LinkageError otherInternals) {
            return;
        }
    }

    /** Whether names differ by case alone: where a file has ID, the index knows its values, and Spark reads NULL for id. */
    boolean isCaseSensitive() {
        return SQLConf.get().caseSensitiveAnalysis() || spark.sessionState().conf().caseSensitiveAnalysis();
    }

    /** The source that a scan with these filters gets its row groups from. */
    public BlockSource source(List filters) { return this; }

    public Answer answer(long earlier, byte[] question) { return Answer.to(this, earlier, question); }

    public String name() { return name; }

    public StructType schema() { return schema; }

    public MetadataColumn[] metadataColumns() { return new MetadataColumn[] {new HiddenColumn()}; }

    public Set capabilities() { return Collections.singleton(TableCapability.BATCH_READ); }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return new PrunedScanBuilder(this, options); }

    /** A list of Scala's; its converters differ between versions of Scala. */
    public static Seq seq(List list) {
        scala.collection.immutable.List found = Nil$.MODULE$;
        for (int i = list.size() - 1; i >= 0; i--) found = new $colon$colon(list.get(i), found);
        return found;
    }
}
