package secateur;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** A relation of Spark; its scans read some row groups of the files that the relation lists. */
final class RelationTable extends PrunedTable {
    final HadoopFsRelation relation;
    final Path root;
    final EnableRule rule;

    private RelationTable(List parts, HadoopFsRelation relation, Path root, EnableRule rule) {
        super(parts);
        this.relation = relation;
        this.root = root;
        this.rule = rule;
    }

    /** The table that replaces a relation, or the reason (a String) why it stays. */
    static Object of(EnableRule rule, SparkSession session, LogicalRelation relation, String unrepeatable) {
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        String reason = Obstacles.of(relation, files);
        if (reason != null) return reason;
        Path root = Roots.of(relation);
        if (root == null) return "several directories are read at once";
        String location = Roots.location(root);
        String off = Switches.of(relation, location);
        if (off != null) return off;
        String[] columns = rule.lookups.columns(location);
        if (columns == null) return "no index";
        if (unrepeatable != null) return unrepeatable;
        Set indexed = new HashSet(Arrays.asList(columns));
        indexed.addAll(Arrays.asList(files.partitionSchema().fieldNames()));
        indexed.retainAll(Arrays.asList(files.schema().fieldNames()));
        List parts = Arrays.asList(new Object[] {
            session, location, files.schema(), files.dataSchema(), files.partitionSchema(),
            new ArrayList(indexed), rule.asker.python});
        return new RelationTable(parts, files, root, rule);
    }

    /** The files that Spark lists for these filters: filters that use only partition columns choose directories. */
    public BlockSource source(List filters) {
        List chosen = new ArrayList();
        Set columns = new HashSet(Arrays.asList(partitionSchema.fieldNames()));
        for (int i = 0; i < filters.size(); i++) {
            Expression filter = (Expression) filters.get(i);
            if (isOf(filter, columns) && !filter.references().isEmpty()) chosen.add(filter);
        }
        Seq none = PrunedTable.seq(new ArrayList());
        Seq directories = relation.location().listFiles(PrunedTable.seq(chosen), none);
        return new FileList(this, rule.listings.of(this, directories));
    }

    /** Whether an expression is deterministic and uses only some columns. */
    static boolean isOf(Expression expression, Set columns) {
        if (expression instanceof PlanExpression || !expression.deterministic()) return false;
        if (expression instanceof AttributeReference) return columns.contains(((AttributeReference) expression).name());
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            if (!isOf((Expression) all.next(), columns)) return false;
        }
        return true;
    }

    /** Equal if the file index and the columns are equal; scans compare the files themselves. */
    public boolean equals(Object other) {
        if (!(other instanceof RelationTable)) return false;
        RelationTable table = (RelationTable) other;
        return name.equals(table.name) && schema.equals(table.schema) && partitionSchema.equals(table.partitionSchema)
            && relation.location().equals(table.relation.location()) && relation.options().equals(table.relation.options());
    }

    public int hashCode() { return 31 * name.hashCode() + schema.hashCode(); }
}
