package secateur;

import java.util.Iterator;
import java.util.List;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;

/** Parts of a scan of Iceberg's, which the runtimes for Spark 3.5 and 4.0 name otherwise than later ones. */
final class ScanParts {
    private static final String READ = "expectedSchema"; // the columns that are read; later ones tell the table's

    static boolean tellSnapshot(Object scan) { return !Reflected.has(scan, READ); }

    /** The columns of the table as the scan names them; of earlier versions those that it reads, or filters by. */
    static Schema schema(Object scan) throws Exception {
        return (Schema) Reflected.call(scan, tellSnapshot(scan) ? "schema" : READ);
    }

    static List filters(Object scan) throws Exception {
        return (List) Reflected.call(scan, tellSnapshot(scan) ? "filters" : "filterExpressions");
    }

    static Expression filter(Object scan) throws Exception {
        if (tellSnapshot(scan)) return (Expression) Reflected.call(scan, "filter");
        Expression all = Expressions.alwaysTrue();
        for (Iterator each = filters(scan).iterator(); each.hasNext();) {
            all = Expressions.and(all, (Expression) each.next());
        }
        return all;
    }

    static boolean isCaseSensitive(Object scan) throws Exception {
        return ((Boolean) Reflected.call(scan, "caseSensitive")).booleanValue();
    }

    static boolean isPlanned(Object scan) throws Exception { return Reflected.field(scan, "tasks").get(scan) != null; }

    /** Whether names mean the same columns in a scan as in the table of now. */
    static boolean areNamedAs(Table table, Object scan) throws Exception {
        Schema scanned = schema(scan), now = table.schema();
        if (tellSnapshot(scan)) return scanned.sameSchema(now);
        for (Iterator ids = TypeUtil.indexById(scanned.asStruct()).keySet().iterator(); ids.hasNext();) {
            int id = ((Integer) ids.next()).intValue();
            String name = scanned.findColumnName(id);
            if (MetadataColumns.isMetadataColumn(name.split("\\.")[0])) continue;
            Type type = scanned.findType(id), other = now.findType(id);
            if (other == null || !name.equals(now.findColumnName(id))) return false;
            if (type.isPrimitiveType() ? !type.equals(other) : type.typeId() != other.typeId()) return false;
        }
        return true;
    }
}
