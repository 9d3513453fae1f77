package secateur;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampType;
import scala.collection.Iterator;

/** Expressions that raise an error on no row: rows that are not read then hide none. Of others it is not known. */
final class Harmless {
    private static final Set KINDS = new HashSet(Arrays.asList(new String[] {
        "Alias", "And", "AttributeReference", "CaseWhen", "Coalesce", "Concat", "Contains", "CreateArray",
        "CreateNamedStruct", "DayOfMonth", "EndsWith", "EqualNullSafe", "EqualTo", "GetStructField", "GreaterThan",
        "GreaterThanOrEqual", "If", "In", "InSet", "IsNaN", "IsNotNull", "IsNull", "Length", "LessThan",
        "LessThanOrEqual", "Literal", "Lower", "Month", "Not", "Or", "Quarter", "StartsWith", "Substring", "Upper",
        "Year"}));

    static boolean is(Expression expression) {
        boolean isKnown = expression instanceof Cast
            ? isSafe(((Cast) expression).child().dataType(), expression.dataType())
            : KINDS.contains(expression.getClass().getSimpleName());
        if (!isKnown || !expression.deterministic()) return false;
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            if (!is((Expression) all.next())) return false;
        }
        return true;
    }

    private static boolean isSafe(DataType from, DataType to) {
        boolean isAtomic = from instanceof NumericType || from instanceof DateType || from instanceof TimestampType;
        if (to instanceof StringType) return isAtomic;
        return from instanceof NumericType && to instanceof NumericType && Cast$.MODULE$.canUpCast(from, to);
    }
}
