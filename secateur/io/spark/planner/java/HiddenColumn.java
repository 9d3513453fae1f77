package secateur;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;

/** Spark's hidden column of files, with the fields that Spark gives it for Parquet. */
final class HiddenColumn implements MetadataColumn {
    static final String NAME = "_metadata";

    public String name() { return NAME; }

    public DataType dataType() { return type(); }

    public boolean isNullable() { return false; }

    static StructType type() {
        StructType type = new StructType();
        for (Iterator all = new ParquetFileFormat().metadataSchemaFields().iterator(); all.hasNext();) {
            StructField field = (StructField) all.next();
            type = type.add(field.name(), field.dataType(), field.nullable());
        }
        return type;
    }

    /** Whether a query needs the hidden column of a table; not a column of the table with the same name. */
    static boolean isIn(StructType required, PrunedTable table) {
        return contains(required, NAME) && !contains(table.schema, NAME);
    }

    /** Whether a query needs to know how Spark splits files. */
    static boolean needsSplits(StructType required) {
        StructType fields = (StructType) required.apply(NAME).dataType();
        return contains(fields, "file_block_start") || contains(fields, "file_block_length");
    }

    private static boolean contains(StructType type, String name) { return type.getFieldIndex(name).isDefined(); }
}
