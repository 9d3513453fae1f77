package secateur;

import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.types.StructType;

/** Iceberg's own estimate, or its share for the rows that are left if these are fewer; with what is known of columns. */
final class FewerRows implements Statistics {
    private final Statistics own;
    private final long rows;
    private final ColumnFigures[] columns;
    private final StructType schema;

    private FewerRows(Statistics own, long rows, ColumnFigures[] columns, StructType schema) {
        this.own = own;
        this.rows = rows;
        this.columns = columns;
        this.schema = schema;
    }

    /** Rows: of the row groups that are left; -1 if unknown. */
    static Statistics of(Statistics own, long rows, ColumnFigures[] columns, StructType schema) {
        if (!own.numRows().isPresent()) return own;
        long least = Math.min(rows < 0 ? Long.MAX_VALUE : rows, own.numRows().getAsLong());
        return new FewerRows(own, least, columns, schema);
    }

    public OptionalLong sizeInBytes() {
        OptionalLong bytes = own.sizeInBytes();
        if (!bytes.isPresent() || rows == own.numRows().getAsLong()) return bytes;
        return OptionalLong.of((long) Math.ceil((double) rows / own.numRows().getAsLong() * bytes.getAsLong()));
    }

    public OptionalLong numRows() { return OptionalLong.of(rows); }

    public Map columnStats() { return ColumnFigures.merged(own.columnStats(), columns, schema, rows); }
}
