package secateur;

import java.io.DataInputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.internal.SQLConf;
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
    private boolean isText;

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

    /** The columns of a scan whose statistics Spark's optimizer uses, as the session is set. */
    static String[] asked(SQLConf conf, StructType schema) {
        return conf.cboEnabled() || conf.planStatsEnabled() ? asked(schema) : new String[0];
    }

    /** The columns of a schema that Spark estimates by: for a number of values of another type its estimates fail. */
    private static String[] asked(StructType schema) {
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
                column.isText = fields[j].dataType() instanceof StringType;
                if (column.least != null) column.min = Answer.value(column.least, fields[j].dataType());
                if (column.greatest != null) column.max = Answer.value(column.greatest, fields[j].dataType());
                found.put(Reference.to(column.name), column);
            }
        }
        return found;
    }

    /** What a table's own format knows, and what is known here of at most so many rows. */
    static Map merged(Map own, ColumnFigures[] all, StructType schema, long rows) {
        Map found = new HashMap(own), known = byColumn(all, schema);
        for (Iterator columns = known.keySet().iterator(); columns.hasNext();) {
            Object column = columns.next();
            ColumnFigures here = (ColumnFigures) known.get(column);
            ColumnStatistics there = (ColumnStatistics) own.get(column);
            long distinct = there == null ? -1 : there.distinctCount().orElse(-1);
            if (here.distinct < 0 && distinct >= 0) here = here.counted(Math.min(distinct, rows));
            if (here != null) found.put(column, here);
        }
        return found;
    }

    /** The same with a number of different values; null for numbers without bounds, which Spark takes for none. */
    private ColumnFigures counted(long number) {
        if (least == null && !isText) return null;
        ColumnFigures found = new ColumnFigures(name, nulls, number, least, greatest);
        found.min = min;
        found.max = max;
        return found;
    }

    public OptionalLong distinctCount() { return known(distinct); }

    public OptionalLong nullCount() { return known(nulls); }

    public Optional min() { return distinct < 0 ? Optional.empty() : Optional.ofNullable(min); }

    public Optional max() { return distinct < 0 ? Optional.empty() : Optional.ofNullable(max); }

    private static OptionalLong known(long count) { return count < 0 ? OptionalLong.empty() : OptionalLong.of(count); }
}
