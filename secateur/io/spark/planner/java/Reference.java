package secateur;

import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;

/** References to columns. */
final class Reference {
    private Reference() { }

    /** A reference to a top-level column of any name. */
    static NamedReference to(String column) { return Expressions.column("`" + column.replace("`", "``") + "`"); }
}
