/*
 * A table that Spark's own Parquet reader scans, restricted to the row groups that can match according to Python.
 *
 * Compiled in the driver by Janino, which Spark ships for its generated code: so no lambdas and no generics.
 * Nothing of this file goes to executors. They get Spark's FilePartition and its ParquetPartitionReaderFactory.
 */
package secateur;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Function;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScanBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.connector.SupportsMetadata;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;

public class PrunedTable implements Table, SupportsRead, BlockSource {
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

    /** The source that a scan with these filters gets its row groups from. */
    public BlockSource source(List filters) { return this; }

    public Answer answer(long earlier, byte[] question) { return Answer.to(this, earlier, question); }

    public String name() { return name; }

    public StructType schema() { return schema; }

    public Set capabilities() { return Collections.singleton(TableCapability.BATCH_READ); }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return new PrunedScanBuilder(this, options); }

    public static Seq seq(List list) { return CollectionConverters.asScala(list).toList(); }
}

/** Where a scan gets its row groups from. Equal sources give equal answers to equal questions. */
public interface BlockSource {
    /** Row groups to read; `earlier` is the number of the answer to narrow, or 0. */
    Answer answer(long earlier, byte[] question);
}

/** Builds a scan: Spark's own builder gets the columns and exact filters, Python gets all deterministic filters. */
final class PrunedScanBuilder
        implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownCatalystFilters {
    private final PrunedTable table;
    private final ParquetScanBuilder parquet;
    private List filters = new ArrayList();

    PrunedScanBuilder(PrunedTable table, CaseInsensitiveStringMap options) {
        this.table = table;
        InMemoryFileIndex noFiles = new InMemoryFileIndex(
            table.spark, PrunedTable.seq(new ArrayList()), (Map) scala.collection.immutable.Map$.MODULE$.empty(),
            Option.empty(), NoopCache$.MODULE$,
            Option.apply(new PartitionSpec(table.partitionSchema, PrunedTable.seq(new ArrayList()))), Option.empty());
        parquet = new ParquetScanBuilder(table.spark, noFiles, table.schema, table.dataSchema, options);
    }

    public void pruneColumns(StructType required) { parquet.pruneColumns(required); }

    /** Return all filters, so that Spark applies them; push into Spark's reader only those that lose no row there. */
    public Seq pushFilters(Seq given) {
        List pushed = new ArrayList();
        for (Iterator all = given.iterator(); all.hasNext();) {
            Expression filter = (Expression) all.next();
            if (filter.deterministic()) {
                filters.add(filter);
                if (isExact(filter)) pushed.add(filter);
            }
        }
        parquet.pushFilters(PrunedTable.seq(pushed));
        return given;
    }

    public Predicate[] pushedFilters() { return parquet.pushedFilters(); }

    public Scan build() {
        return new PrunedScan(table, table.source(filters), parquet.build(), Question.of(filters));
    }

    /**
     * Whether Spark's reader loses no row by a filter. It can lose rows by filters on NULL, if null counts in the files
     * are missing or wrong; on names with a dot, which it reads as struct fields; on floats, whose bounds ignore NaN.
     */
    private static boolean isExact(Expression expression) {
        String type = expression.dataType().catalogString();
        if (!EXACT.contains(expression.getClass().getSimpleName())) return false;
        if (type.contains("float") || type.contains("double")) return false;
        if (expression instanceof AttributeReference) return !((AttributeReference) expression).name().contains(".");
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            if (!isExact((Expression) all.next())) return false;
        }
        return true;
    }

    private static final Set EXACT = new HashSet(Arrays.asList(new String[] {
        "And", "Or", "EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In", "InSet",
        "StartsWith", "IsNotNull", "Literal", "AttributeReference"}));
}

public final class PrunedScan
        implements Scan, SupportsReportStatistics, SupportsMetadata, SupportsRuntimeV2Filtering {
    public final PrunedTable table;
    private final BlockSource source;
    final ParquetScan parquet;
    final byte[] question; // the filters of the query
    private Answer answer; // to the question; requested once
    private volatile String narrowed = ""; // what is left after run-time filters, for explain()
    private final ThreadLocal values = new ThreadLocal(); // of a join, for the next batch that this thread makes

    PrunedScan(PrunedTable table, BlockSource source, ParquetScan parquet, byte[] question) {
        this.table = table;
        this.source = source;
        this.parquet = parquet;
        this.question = question;
    }

    public synchronized Answer answer() {
        if (answer == null) answer = source.answer(0, question);
        return answer;
    }

    /** The answer narrowed by the values of a join, over the same files. */
    Answer narrowed(byte[] more) {
        Answer all = answer();
        Answer found = source.answer(all.number, more);
        if (found.isUnknown) return all;
        narrowed = ", " + found.text + " after run-time filters";
        return found;
    }

    public StructType readSchema() { return parquet.readSchema(); }

    public String description() { return parquet.description() + ", IndexPruning: " + answer().text + narrowed; }

    public Map getMetaData() {
        return (Map) parquet.getMetaData().$plus(new Tuple2("IndexPruning", answer().text + narrowed));
    }

    /** Bytes of the surviving row groups, times the share of a row that the query's columns take. */
    public Statistics estimateStatistics() {
        final Answer found = answer();
        final double share = (double) readSchema().defaultSize() / Math.max(1, table.schema.defaultSize());
        return new Statistics() {
            public OptionalLong sizeInBytes() { return OptionalLong.of((long) Math.ceil(share * found.bytes)); }

            public OptionalLong numRows() {
                return found.rows < 0 ? OptionalLong.empty() : OptionalLong.of(found.rows);
            }
        };
    }

    public NamedReference[] filterAttributes() {
        Set read = new HashSet(Arrays.asList(readSchema().fieldNames()));
        List found = new ArrayList();
        for (int i = 0; i < table.filterable.length; i++) {
            if (read.contains(table.filterable[i])) {
                found.add(Expressions.column("`" + table.filterable[i].replace("`", "``") + "`"));
            }
        }
        return (NamedReference[]) found.toArray(new NamedReference[0]);
    }

    public void filter(Predicate[] predicates) { values.set(Question.ofValues(predicates)); }

    /** A scan can be in a plan twice, once with values of a join: the values apply only to the next batch. */
    public Batch toBatch() {
        byte[] more = (byte[]) values.get();
        values.remove();
        return new PrunedBatch(this, more);
    }

    public boolean equals(Object other) {
        if (!(other instanceof PrunedScan)) return false;
        PrunedScan scan = (PrunedScan) other;
        return source.equals(scan.source) && parquet.equals(scan.parquet) && Arrays.equals(question, scan.question);
    }

    public int hashCode() { return 31 * source.hashCode() + Arrays.hashCode(question); }
}

final class PrunedBatch implements Batch {
    private final PrunedScan scan;
    private final byte[] more; // values of a join, or null

    PrunedBatch(PrunedScan scan, byte[] more) {
        this.scan = scan;
        this.more = more;
    }

    public InputPartition[] planInputPartitions() {
        FilePartition[] all = scan.answer().partitions(scan, false);
        if (more == null) return all;
        return scan.narrowed(more).partitions(scan, all.length <= 1); // one stays one: Spark has planned with that
    }

    public PartitionReaderFactory createReaderFactory() { return scan.parquet.createReaderFactory(); }

    public boolean equals(Object other) {
        if (!(other instanceof PrunedBatch)) return false;
        PrunedBatch batch = (PrunedBatch) other;
        return scan.equals(batch.scan) && Arrays.equals(more, batch.more);
    }

    public int hashCode() { return scan.hashCode(); }
}

/** Encodes expressions: trees in postfix order, a node after its children. */
public final class Question {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final DataOutputStream out = new DataOutputStream(bytes);

    public static byte[] of(List filters) {
        try {
            Question question = new Question();
            question.out.writeInt(filters.size());
            for (int i = 0; i < filters.size(); i++) {
                question.tree((Expression) filters.get(i));
                question.out.writeBoolean(false);
            }
            return question.bytes.toByteArray();
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Encode the IN lists among run-time filters, the values of a join's other side; other predicates are ignored. */
    static byte[] ofValues(Predicate[] predicates) {
        try {
            Question question = new Question();
            List lists = new ArrayList();
            for (int i = 0; i < predicates.length; i++) if (isList(predicates[i])) lists.add(predicates[i]);
            question.out.writeInt(lists.size());
            for (int i = 0; i < lists.size(); i++) question.list(((Predicate) lists.get(i)).children());
            return question.bytes.toByteArray();
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static boolean isList(Predicate predicate) {
        org.apache.spark.sql.connector.expressions.Expression[] children = predicate.children();
        if (!predicate.name().equals("IN") || children.length < 2) return false;
        if (!(children[0] instanceof NamedReference)) return false;
        if (((NamedReference) children[0]).fieldNames().length != 1) return false;
        for (int i = 1; i < children.length; i++) {
            if (!(children[i] instanceof org.apache.spark.sql.connector.expressions.Literal)) return false;
        }
        return true;
    }

    private void list(org.apache.spark.sql.connector.expressions.Expression[] children) throws IOException {
        List found = new ArrayList();
        DataType type = null;
        for (int i = 1; i < children.length; i++) {
            org.apache.spark.sql.connector.expressions.Literal literal =
                (org.apache.spark.sql.connector.expressions.Literal) children[i];
            type = literal.dataType();
            found.add(literal.value());
        }
        String column = ((NamedReference) children[0]).fieldNames()[0];
        node("AttributeReference", type, column, "", new ArrayList(), 0);
        out.writeBoolean(true);
        node("InSet", type, "", "", found, 1);
        out.writeBoolean(false);
    }

    private void tree(Expression expression) throws IOException {
        int children = 0;
        for (Iterator all = expression.children().iterator(); all.hasNext(); children++) {
            tree((Expression) all.next());
            out.writeBoolean(true); // more of the tree follows
        }
        String detail = "", zone = "";
        DataType type = expression.dataType();
        List found = new ArrayList();
        if (expression instanceof AttributeReference) detail = ((AttributeReference) expression).name();
        else if (expression instanceof GetStructField) {
            GetStructField field = (GetStructField) expression; // its own name is spelled as in the query
            detail = field.childSchema().apply(field.ordinal()).name();
        }
        else if (expression instanceof Like) detail = String.valueOf(((Like) expression).escapeChar());
        else if (expression instanceof Literal) found.add(((Literal) expression).value());
        else if (expression instanceof InSet) {
            InSet in = (InSet) expression;
            type = in.child().dataType();
            for (Iterator all = in.hset().iterator(); all.hasNext();) found.add(all.next());
        }
        if (expression instanceof TimeZoneAwareExpression) {
            Option own = ((TimeZoneAwareExpression) expression).timeZoneId();
            if (own.isDefined()) zone = (String) own.get();
        }
        // This setting changes the precision and rounding of decimal results, which Python does not model.
        boolean isRounded = type instanceof DecimalType && expression instanceof BinaryArithmetic
            && !SQLConf.get().decimalOperationsAllowPrecisionLoss();
        node(isRounded ? "?" : expression.getClass().getSimpleName(), type, detail, zone, found, children);
    }

    private void node(String kind, DataType type, String detail, String zone, List found, int children)
            throws IOException {
        text(kind);
        text(type.simpleString());
        text(detail);
        text(zone);
        List texts = new ArrayList(found.size());
        for (int i = 0; i < found.size(); i++) texts.add(bytesOf(found.get(i)));
        out.writeInt(texts.size());
        for (int i = 0; i < texts.size(); i++) out.writeInt(texts.get(i) == null ? -1 : ((byte[]) texts.get(i)).length);
        for (int i = 0; i < texts.size(); i++) if (texts.get(i) != null) out.write((byte[]) texts.get(i));
        out.writeInt(children);
    }

    /** A value in Spark's internal form: text and bytes unchanged, anything else as printed. */
    private static byte[] bytesOf(Object value) {
        if (value == null) return null;
        if (value instanceof byte[]) return (byte[]) value;
        if (value instanceof UTF8String) return ((UTF8String) value).getBytes();
        return String.valueOf(value).getBytes(StandardCharsets.UTF_8);
    }

    private void text(String text) throws IOException {
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        out.writeInt(encoded.length);
        out.write(encoded);
    }
}

/** The surviving row groups, as ranges of files that hold the midpoints of these row groups and of no others. */
public final class Answer {
    public boolean isUnknown; // use the earlier answer
    public long number, bytes, rows;
    public String text;
    private Path[] paths;
    private long[] sizes, modified;
    private Object[][] told; // per file, the values of the partition columns
    private int[] file; // per range
    private long[] start, length;

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
        byte[] zone = spark.sessionState().conf().sessionLocalTimeZone().getBytes(StandardCharsets.UTF_8);
        out.writeInt(zone.length);
        out.write(zone);
        out.write(question);
        return bytes.toByteArray();
    }

    /** An answer that leaves the earlier one in force. */
    public Answer() { isUnknown = true; }

    /** Ranges of files; `told`: per file, the values of its partition columns in Spark's internal form. */
    public Answer(String text, long number, long bytes, long rows, Path[] paths, long[] sizes, long[] modified,
            Object[][] told, int[] file, long[] start, long[] length) {
        this.text = text;
        this.number = number;
        this.bytes = bytes;
        this.rows = rows;
        this.paths = paths;
        this.sizes = sizes;
        this.modified = modified;
        this.told = told;
        this.file = file;
        this.start = start;
        this.length = length;
    }

    private Answer(DataInputStream in, StructType partitions) throws IOException {
        text = text(in);
        number = in.readLong();
        if (number == -1) throw new IllegalStateException(text);
        isUnknown = number == -2;
        if (isUnknown) return;
        bytes = in.readLong();
        rows = in.readLong();
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
    }

    public static String text(DataInputStream in) throws IOException {
        byte[] encoded = new byte[in.readInt()];
        in.readFully(encoded);
        return new String(encoded, StandardCharsets.UTF_8);
    }

    private static Object value(String text, DataType type) {
        if (type instanceof StringType) return UTF8String.fromString(text);
        if (type instanceof DecimalType) {
            DecimalType decimal = (DecimalType) type;
            return Decimal.apply(new BigDecimal(text), decimal.precision(), decimal.scale());
        }
        long bits = Long.parseLong(text);
        if (type instanceof DoubleType) return Double.valueOf(Double.longBitsToDouble(bits));
        return type instanceof IntegerType || type instanceof DateType ? (Object) Integer.valueOf((int) bits) : bits;
    }

    /** The ranges, split and packed as Spark does with files, or all in one partition. */
    FilePartition[] partitions(PrunedScan scan, boolean inOne) {
        SparkSession spark = scan.table.spark;
        long most = inOne ? Long.MAX_VALUE : FilePartition.maxSplitBytes(spark, new Total(this, spark));
        InternalRow[] rows = new InternalRow[paths.length];
        SparkPath[] names = new SparkPath[paths.length];
        for (int i = 0; i < paths.length; i++) {
            rows[i] = row(scan, told[i]);
            names[i] = SparkPath.fromPath(paths[i]);
        }
        List pieces = new ArrayList(start.length);
        for (int i = 0; i < start.length; i++) {
            for (long done = 0; done < length[i]; done += most) {
                long size = Math.min(most, length[i] - done);
                pieces.add(new PartitionedFile(
                    rows[file[i]], names[file[i]], start[i] + done, size, new String[0],
                    modified[file[i]], sizes[file[i]], (Map) scala.collection.immutable.Map$.MODULE$.empty()));
                if (most == Long.MAX_VALUE) break;
            }
        }
        if (inOne) {
            if (pieces.isEmpty()) return new FilePartition[0];
            PartitionedFile[] all = (PartitionedFile[]) pieces.toArray(new PartitionedFile[0]);
            return new FilePartition[] {new FilePartition(0, all)};
        }
        Collections.sort(pieces, new Comparator() {
            public int compare(Object a, Object b) {
                return Long.compare(((PartitionedFile) b).length(), ((PartitionedFile) a).length());
            }
        });
        List found = CollectionConverters.asJava(
            FilePartition.getFilePartitions(spark, PrunedTable.seq(pieces), most));
        return (FilePartition[]) found.toArray(new FilePartition[0]);
    }

    private static InternalRow row(PrunedScan scan, Object[] all) {
        StructField[] read = scan.parquet.readPartitionSchema().fields();
        Object[] values = new Object[read.length];
        for (int i = 0; i < read.length; i++) {
            values[i] = all[((Integer) scan.table.partitionSchema.getFieldIndex(read[i].name()).get()).intValue()];
        }
        return new GenericInternalRow(values);
    }

    long lengths() {
        long total = 0;
        for (int i = 0; i < length.length; i++) total += length[i];
        return total;
    }

    int ranges() { return length.length; }
}

/** Bytes to read plus the cost of opening files, from which Spark computes the size of a split. */
final class Total extends AbstractFunction0 {
    private final long bytes;

    Total(Answer answer, SparkSession spark) {
        bytes = answer.lengths() + answer.ranges() * spark.sessionState().conf().filesOpenCostInBytes();
    }

    public Object apply() { return bytes; }
}
