package secateur;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Product;
import scala.collection.Iterator;
import scala.collection.immutable.Map;

/** Encodes expressions: trees in postfix order, a node after its children. */
public final class Question {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    final DataOutputStream out = new DataOutputStream(bytes);

    private static final long ALL = -1; // rows are wanted

    public static byte[] of(List filters) { return of(filters, new String[0]); }

    /** Encode filters, and the columns whose statistics are wanted. */
    static byte[] of(List filters, String[] columns) {
        return of(filters, ALL, new ArrayList(), new ArrayList(), new ArrayList(), columns);
    }

    /** Encode filters, how many rows are wanted, and the items of their order; without items any rows will do. */
    static byte[] ofRows(List filters, long rows, List items) { return of(filters, rows, items, new ArrayList(), new ArrayList(), new String[0]); }

    /** Encode filters, the aggregates over all rows that match, and the columns by which these are grouped. */
    static byte[] ofAggregates(List filters, List calls, List groups) {
        return of(filters, ALL, new ArrayList(), calls, groups, new String[0]);
    }

    private static byte[] of(List filters, long rows, List items, List calls, List groups, String[] columns) {
        try {
            Question question = new Question();
            question.out.writeLong(rows);
            question.out.writeInt(filters.size());
            for (int i = 0; i < filters.size(); i++) question.root((Expression) filters.get(i));
            question.out.writeInt(items.size());
            for (int i = 0; i < items.size(); i++) {
                OrderItem item = (OrderItem) items.get(i);
                question.out.writeBoolean(item.isDescending);
                question.out.writeBoolean(item.nullsFirst);
                question.root(item.column);
            }
            question.out.writeInt(calls.size());
            for (int i = 0; i < calls.size(); i++) {
                AggregateCall call = (AggregateCall) calls.get(i);
                question.text(call.function);
                question.out.writeBoolean(call.column != null);
                if (call.column != null) question.root(call.column);
            }
            question.out.writeInt(groups.size());
            for (int i = 0; i < groups.size(); i++) question.root((Expression) groups.get(i));
            question.out.writeInt(columns.length);
            for (int i = 0; i < columns.length; i++) question.text(columns[i]);
            return question.bytes.toByteArray();
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Encode the filters of a data source, and the columns whose statistics are wanted. */
    static byte[] of(SourceFilters filters, String[] columns) {
        try {
            Question question = new Question();
            question.out.writeLong(ALL);
            filters.write(question);
            for (int i = 0; i < 3; i++) question.out.writeInt(0); // no order, no aggregates, no groups
            question.out.writeInt(columns.length);
            for (int i = 0; i < columns.length; i++) question.text(columns[i]);
            return question.bytes.toByteArray();
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private void root(Expression expression) throws IOException {
        tree(expression);
        out.writeBoolean(false);
    }

    private void tree(Expression expression) throws IOException {
        int children = 0;
        for (Iterator all = expression.children().iterator(); all.hasNext(); children++) {
            tree((Expression) all.next());
            out.writeBoolean(true); // more of the tree follows
        }
        String kind = expression.getClass().getSimpleName(), detail = "", zone = "";
        DataType type = expression.dataType();
        List found = new ArrayList();
        VariantValue value = VariantValue.of(expression);
        if (expression instanceof AttributeReference) detail = ((AttributeReference) expression).name();
        else if (value != null) {
            kind = "VariantGet";
            detail = value.path;
            zone = value.zone;
            found.add(Boolean.valueOf(value.failsOnError));
        }
        else if (expression instanceof GetStructField) {
            GetStructField field = (GetStructField) expression; // its own name is spelled as in the query
            detail = field.childSchema().apply(field.ordinal()).name();
        }
        else if (kind.equals("JsonToStructs")) detail = schemaOf((Product) expression);
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
        node(isRounded ? "?" : kind, type, detail, zone, found, children);
    }

    /** What JSON text is read by; empty if options say how. */
    private static String schemaOf(Product read) {
        return ((Map) read.productElement(1)).isEmpty() ? ((DataType) read.productElement(0)).json() : "";
    }

    /** Encode one node of a tree, after its children. */
    void node(String kind, DataType type, String detail, String zone, List found, int children)
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
