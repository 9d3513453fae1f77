package secateur;

import java.io.DataInputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/** What Python knows of a column of a scan, for the estimates of Spark's optimizer. */
final class ColumnFigures implements ColumnStatistics {
    private final String name;
    private final long nulls, distinct; // -1 = unknown
    private final String least, greatest; // in Spark's internal form; null: unknown
    private Object min, max;

    private ColumnFigures(String name, long nulls, long distinct, String least, String greatest) {
        this.name = name;
        this.nulls = nulls;
        this.distinct = distinct;
        this.least = least;
        this.greatest = greatest;
    }

    static ColumnFigures[] read(DataInputStream in) throws IOException {
        ColumnFigures[] found = new ColumnFigures[in.readInt()];
        for (int i = 0; i < found.length; i++) {
            String name = Answer.text(in);
            long nulls = in.readLong(), distinct = in.readLong();
            boolean isBounded = in.readBoolean();
            found[i] = new ColumnFigures(
                name, nulls, distinct, isBounded ? Answer.text(in) : null, isBounded ? Answer.text(in) : null);
        }
        return found;
    }

    /** The columns of a schema that Spark estimates by: for a number of values of another type its estimates fail. */
    static String[] asked(StructType schema) {
        String[] names = schema.fieldNames();
        int count = 0;
        for (int i = 0; i < names.length; i++) if (isEstimated(schema.apply(i).dataType())) names[count++] = names[i];
        String[] found = new String[count];
        System.arraycopy(names, 0, found, 0, count);
        return found;
    }

    private static boolean isEstimated(DataType type) {
        return type instanceof NumericType || type instanceof BooleanType || type instanceof DateType
            || type instanceof TimestampType || type instanceof StringType;
    }

    /** By the references of columns. */
    static Map byColumn(ColumnFigures[] all, StructType schema) {
        Map found = new HashMap();
        for (int i = 0; i < all.length; i++) {
            ColumnFigures column = all[i];
            StructField[] fields = schema.fields();
            for (int j = 0; j < fields.length; j++) {
                if (!fields[j].name().equals(column.name)) continue;
                if (column.least != null) column.min = Answer.value(column.least, fields[j].dataType());
                if (column.greatest != null) column.max = Answer.value(column.greatest, fields[j].dataType());
                found.put(Reference.to(column.name), column);
            }
        }
        return found;
    }

    public OptionalLong distinctCount() { return known(distinct); }

    public OptionalLong nullCount() { return known(nulls); }

    public Optional min() { return Optional.ofNullable(min); }

    public Optional max() { return Optional.ofNullable(max); }

    private static OptionalLong known(long count) { return count < 0 ? OptionalLong.empty() : OptionalLong.of(count); }
}
