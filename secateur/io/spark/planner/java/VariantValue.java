package secateur;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Product;

/**
 * The value at a path into VARIANT, which Spark 3.5 does not have: as a query writes it, and as a field of a struct, if
 * Spark has its reader extract the value. Such a field has the path in its metadata. Source: Spark's PushVariantIntoScan.
 */
final class VariantValue {
    private static final String KEY = "__VARIANT_METADATA_KEY";
    final String path, zone;
    final boolean failsOnError;

    private VariantValue(String path, boolean failsOnError, String zone) {
        this.path = path;
        this.failsOnError = failsOnError;
        this.zone = zone;
    }

    /** What an expression extracts of the VARIANT that is its first child; null for other expressions. */
    static VariantValue of(Expression expression) {
        if (expression instanceof GetStructField) {
            GetStructField field = (GetStructField) expression;
            Metadata told = field.childSchema().apply(field.ordinal()).metadata();
            if (!told.contains(KEY)) return null;
            Metadata value = told.getMetadata(KEY);
            return new VariantValue(value.getString("path"), value.getBoolean("failOnError"), value.getString("timeZoneId"));
        }
        if (!expression.getClass().getSimpleName().equals("VariantGet")) return null;
        Object path = ((Product) expression).productElement(1), fails = ((Product) expression).productElement(3);
        if (!(path instanceof Literal) || !(((Literal) path).value() instanceof UTF8String)) return null;
        return new VariantValue(String.valueOf(((Literal) path).value()), ((Boolean) fails).booleanValue(), "");
    }

    static boolean isOf(DataType type) { return type.typeName().equals("variant"); }
}
