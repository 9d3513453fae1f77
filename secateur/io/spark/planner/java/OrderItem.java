package secateur;

import org.apache.spark.sql.catalyst.expressions.Expression;

/** An item of ORDER BY. */
final class OrderItem {
    final Expression column; // by the columns of a scan
    final boolean isDescending, nullsFirst;

    OrderItem(Expression column, boolean isDescending, boolean nullsFirst) {
        this.column = column;
        this.isDescending = isDescending;
        this.nullsFirst = nullsFirst;
    }
}
