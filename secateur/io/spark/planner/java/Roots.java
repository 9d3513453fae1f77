package secateur;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/** Where the tables of relations lie. */
final class Roots {
    /** The only directory of a relation; that of the table if Spark has already chosen some of its partitions. */
    static Path of(LogicalRelation relation) {
        if (relation.catalogTable().isDefined()) {
            CatalogTable table = (CatalogTable) relation.catalogTable().get();
            return table.storage().locationUri().isDefined() ? new Path(table.location()) : null;
        }
        Seq roots = ((HadoopFsRelation) relation.relation()).location().rootPaths();
        return roots.length() == 1 ? (Path) roots.head() : null;
    }

    /** A local path, or a URI, as Python opens it. */
    static String location(Path root) {
        String scheme = root.toUri().getScheme();
        return scheme == null || scheme.equals("file") ? root.toUri().getPath() : root.toString();
    }

    /** The location of a relation, or all of its directories, for reports. */
    static String place(LogicalRelation relation) {
        Path root = of(relation);
        if (root != null) return location(root);
        return String.valueOf(((HadoopFsRelation) relation.relation()).location().rootPaths());
    }
}
