package secateur;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.Iterator;

/** Changes the children and the fields of a plan's node. */
final class Children {
    private Children() { }

    /** A node with another value in the place of one of its fields. */
    static LogicalPlan with(LogicalPlan node, Object field, Object other) {
        Object[] fields = new Object[node.productArity()];
        for (int i = 0; i < fields.length; i++) {
            fields[i] = node.productElement(i) == field ? other : node.productElement(i);
        }
        return (LogicalPlan) node.makeCopy(fields);
    }

    /** The node over rewritten children; the same node if they are the same. */
    static LogicalPlan rewritten(LogicalPlan node, Rewrite rewrite) {
        List children = new ArrayList();
        boolean differs = false;
        for (Iterator all = node.children().iterator(); all.hasNext();) {
            LogicalPlan child = (LogicalPlan) all.next(), found = rewrite.rewritten(child);
            differs |= found != child;
            children.add(found);
        }
        return differs ? (LogicalPlan) node.withNewChildren(PrunedTable.seq(children)) : node;
    }
}
