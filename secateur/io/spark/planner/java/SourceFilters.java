package secateur;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** Filters that Spark offers to a data source, as the expressions of a question; those that are not known are left out. */
final class SourceFilters {
    private static final Map KINDS = kinds(); // predicate of a source -> expression
    private final List filters = new ArrayList(); // Predicates

    private SourceFilters() { }

    private static Map kinds() {
        String[] names = {"AND", "And", "OR", "Or", "IN", "InSet", "=", "EqualTo", "<", "LessThan", ">", "GreaterThan",
            "<=", "LessThanOrEqual", ">=", "GreaterThanOrEqual", "STARTS_WITH", "StartsWith"};
        Map found = new HashMap();
        for (int i = 0; i < names.length; i += 2) found.put(names[i], names[i + 1]);
        return found;
    }

    /** The IN lists among run-time filters: the values of a join's other side. */
    static byte[] values(Predicate[] predicates) {
        SourceFilters found = new SourceFilters();
        for (int i = 0; i < predicates.length; i++) if (isList(predicates[i])) found.filters.add(predicates[i]);
        return Question.of(found, new String[0]);
    }

    /** The comparisons and lists among filters, and what AND and OR make of them; columns: whose statistics are wanted. */
    static byte[] comparisons(Predicate[] predicates, String[] columns) {
        SourceFilters found = new SourceFilters();
        for (int i = 0; i < predicates.length; i++) if (isKnown(predicates[i])) found.filters.add(predicates[i]);
        return Question.of(found, columns);
    }

    /** Encode how many filters there are, and the tree of each. */
    void write(Question question) throws IOException {
        question.out.writeInt(filters.size());
        for (int i = 0; i < filters.size(); i++) {
            write(question, (Predicate) filters.get(i));
            question.out.writeBoolean(false);
        }
    }

    private static boolean isKnown(Expression given) {
        if (!(given instanceof Predicate)) return false;
        Predicate predicate = (Predicate) given;
        if (predicate.name().equals("IN")) return isList(predicate);
        Expression[] children = predicate.children();
        if (children.length != 2 || !KINDS.containsKey(predicate.name())) return false;
        if (isConnective(predicate)) return isKnown(children[0]) && isKnown(children[1]);
        return ofColumn(children);
    }

    private static boolean isConnective(Predicate predicate) {
        return predicate.name().equals("AND") || predicate.name().equals("OR");
    }

    private static boolean isList(Predicate predicate) {
        return predicate.name().equals("IN") && ofColumn(predicate.children());
    }

    /** Whether operands are a column and at least one literal. */
    private static boolean ofColumn(Expression[] operands) {
        if (operands.length < 2 || !(operands[0] instanceof NamedReference)) return false;
        if (((NamedReference) operands[0]).fieldNames().length != 1) return false;
        for (int i = 1; i < operands.length; i++) {
            if (!(operands[i] instanceof Literal)) return false;
        }
        return true;
    }

    private static void write(Question question, Predicate predicate) throws IOException {
        Expression[] children = predicate.children();
        String kind = (String) KINDS.get(predicate.name());
        if (isConnective(predicate)) {
            for (int i = 0; i < 2; i++) {
                write(question, (Predicate) children[i]);
                question.out.writeBoolean(true);
            }
            question.node(kind, DataTypes.BooleanType, "", "", new ArrayList(), 2);
            return;
        }
        List found = new ArrayList();
        DataType type = null;
        for (int i = 1; i < children.length; i++) {
            Literal literal = (Literal) children[i];
            type = literal.dataType();
            found.add(literal.value());
        }
        question.node("AttributeReference", type, ((NamedReference) children[0]).fieldNames()[0], "", new ArrayList(), 0);
        question.out.writeBoolean(true);
        if (predicate.name().equals("IN")) {
            question.node(kind, type, "", "", found, 1);
            return;
        }
        question.node("Literal", type, "", "", found, 0);
        question.out.writeBoolean(true);
        question.node(kind, DataTypes.BooleanType, "", "", new ArrayList(), 2);
    }
}
