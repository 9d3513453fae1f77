package secateur;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** The surviving row groups, as ranges of files that hold the midpoints of these row groups and of no others. */
public final class Answer {
    private static final String AUDIT = "secateur.audit"; // SET secateur.audit=0.01
    public boolean isUnknown; // use the earlier answer
    public long number, bytes, rows;
    public String text;
    Figures figures;
    Path[] paths;
    FileStatus[] files; // as Spark has listed them; null if Python has
    long[] sizes, modified;
    Object[][] told; // per file, the values of the partition columns
    int[] file; // per range
    long[] start, length;
    Known[] known; // per aggregate of the question, over what is left out; empty if nothing is
    ColumnFigures[] columns = new ColumnFigures[0]; // of those that the question names, if anything is known of them

    /** Ask Python; `earlier` is the number of the answer to narrow, or 0. */
    static Answer to(PrunedTable table, long earlier, byte[] question) {
        try {
            byte[] reply = (byte[]) table.python.apply(asked(table.spark, earlier, question));
            return new Answer(new DataInputStream(new ByteArrayInputStream(reply)), table.partitionSchema);
        } catch (IOException malformed) {
            throw new IllegalStateException(malformed);
        }
    }

    /** Encode a request for Python. */
    public static byte[] asked(SparkSession spark, long earlier, byte[] question) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeLong(earlier);
        SQLConf conf = spark.sessionState().conf();
        Asker.text(out, conf.sessionLocalTimeZone());
        Asker.text(out, conf.getConfString(AUDIT, ""));
        out.write(question);
        return bytes.toByteArray();
    }

    /** An answer that leaves the earlier one in force. */
    public Answer() { isUnknown = true; }

    /** Ranges of files; `told`: per file, the values of its partition columns in Spark's internal form. */
    Answer(String text, long number, long bytes, long rows, Figures figures, Path[] paths, long[] sizes,
            long[] modified, Object[][] told, int[] file, long[] start, long[] length, Known[] known,
            ColumnFigures[] columns) {
        this.text = text;
        this.number = number;
        this.bytes = bytes;
        this.rows = rows;
        this.figures = figures;
        this.paths = paths;
        this.sizes = sizes;
        this.modified = modified;
        this.told = told;
        this.file = file;
        this.start = start;
        this.length = length;
        this.known = known;
        this.columns = columns;
    }

    private Answer(DataInputStream in, StructType partitions) throws IOException {
        text = text(in);
        number = in.readLong();
        if (number == -1) throw new IllegalStateException(text);
        isUnknown = number == -2;
        if (isUnknown) return;
        bytes = in.readLong();
        rows = in.readLong();
        figures = Figures.read(in);
        String scheme = text(in), authority = text(in), root = text(in);
        int files = in.readInt();
        paths = new Path[files];
        sizes = new long[files];
        modified = new long[files];
        told = new Object[files][partitions.length()];
        for (int i = 0; i < files; i++) {
            paths[i] = new Path(scheme, authority, root + "/" + text(in));
            sizes[i] = in.readLong();
            modified[i] = in.readLong();
            for (int j = 0; j < partitions.length(); j++) {
                told[i][j] = in.readBoolean() ? value(text(in), partitions.apply(j).dataType()) : null;
            }
        }
        int ranges = in.readInt();
        file = new int[ranges];
        start = new long[ranges];
        length = new long[ranges];
        for (int i = 0; i < ranges; i++) {
            file[i] = in.readInt();
            start[i] = in.readLong();
            length[i] = in.readLong();
        }
        known = Known.read(in);
        columns = ColumnFigures.read(in);
    }

    public static String text(DataInputStream in) throws IOException {
        byte[] encoded = new byte[in.readInt()];
        in.readFully(encoded);
        return new String(encoded, StandardCharsets.UTF_8);
    }

    /** Whether `value` decodes values of a type. */
    static boolean isRead(DataType type) {
        return type instanceof StringType || type instanceof DecimalType || type instanceof NumericType
            || type instanceof BooleanType || type instanceof DateType || type instanceof TimestampType
            || type instanceof TimestampNTZType;
    }

    /** Whether values of a type that are equal in SQL are equal here, and decoded by `value`. */
    static boolean isGrouped(DataType type) {
        return type instanceof StringType ? type.equals(DataTypes.StringType) : isRead(type);
    }

    static Object value(String text, DataType type) {
        if (type instanceof StringType) return UTF8String.fromString(text);
        if (type instanceof BooleanType) return Boolean.valueOf(text);
        if (type instanceof DecimalType) {
            DecimalType decimal = (DecimalType) type;
            return Decimal.apply(new BigDecimal(text), decimal.precision(), decimal.scale());
        }
        long bits = Long.parseLong(text);
        if (type instanceof DoubleType) return Double.valueOf(Double.longBitsToDouble(bits));
        if (type instanceof FloatType) return Float.valueOf((float) Double.longBitsToDouble(bits));
        if (type instanceof ShortType) return Short.valueOf((short) bits);
        if (type instanceof ByteType) return Byte.valueOf((byte) bits);
        return type instanceof IntegerType || type instanceof DateType ? (Object) Integer.valueOf((int) bits) : bits;
    }

    /** Bytes of all ranges. */
    long lengths() {
        long total = 0;
        for (int i = 0; i < length.length; i++) total += length[i];
        return total;
    }
}
