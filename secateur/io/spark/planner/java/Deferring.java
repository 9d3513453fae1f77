package secateur;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.BatchScan;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;

/** Behaves like a table of Iceberg's, or like its scan builder, but that the scans in the end are deferred. */
final class Deferring implements InvocationHandler {
    private static final Set LINEAGE = // columns whose values need more of a manifest than tasks have
        new LinkedHashSet(Arrays.asList(new String[] {"_row_id", "_last_updated_sequence_number"}));
    private final EnableRule rule;
    private final SparkTable table;
    private final Object target;
    private volatile Predicate[] filters = new Predicate[0]; // that Spark has offered to a builder

    private Deferring(EnableRule rule, SparkTable table, Object target) {
        this.rule = rule;
        this.table = table;
        this.target = target;
    }

    static Object of(EnableRule rule, SparkTable table, Object target) {
        Set kinds = new LinkedHashSet();
        kinds.add(StandIn.class);
        for (Class each = target.getClass(); each != null; each = each.getSuperclass()) {
            kinds.addAll(Arrays.asList(each.getInterfaces()));
        }
        return Proxy.newProxyInstance(
            Deferring.class.getClassLoader(), (Class[]) kinds.toArray(new Class[0]), new Deferring(rule, table, target));
    }

    public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
        String name = method.getName();
        if (name.equals("standsFor")) return target;
        if (name.equals("equals")) { // to none but its kind: Spark keeps a plan that equals what a rule makes of it
            Object other = arguments[0];
            return Boolean.valueOf(other instanceof StandIn && target.equals(((StandIn) other).standsFor()));
        }
        if (name.equals("pushPredicates")) filters = (Predicate[]) arguments[0];
        Object result;
        try {
            result = method.invoke(target, arguments);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
        if (target == table) return name.equals("newScanBuilder") ? of(rule, table, result) : result;
        return name.equals("build") ? deferred((Scan) result) : result;
    }

    /** A batch scan of Iceberg's, deferred; another scan as it is, and one that Iceberg groups by partition keys. */
    private Scan deferred(Scan scan) {
        try {
            if (!scan.getClass().getName().equals(IcebergScan.KIND)) return scan;
            if (!(Reflected.field(scan, "scan").get(scan) instanceof BatchScan)) return scan;
            List columns = new ArrayList(Arrays.asList(scan.readSchema().fieldNames()));
            columns.retainAll(LINEAGE);
            if (Reflected.field(scan, "preserveDataGrouping").getBoolean(scan) || !columns.isEmpty()) {
                ScannedSnapshot.tell(scan, table.table());
                return scan;
            }
            return new DeferredScan(rule, (ScanBuilder) target, scan, facts(scan, filters));
        } catch (Exception otherInternals) {
            return scan;
        }
    }

    /** Filters: those that Spark has offered to the builder, whether it takes them or not. */
    private ScanFacts facts(final Scan scan, final Predicate[] offered) {
        final EnableRule asking = rule;
        final Table own = table.table();
        return new ScanFacts() {
            public Statistics statistics() { return IndexEstimate.of(asking, own, scan, offered); }

            public List partitionColumns() { return IndexTasks.partitionColumns(scan, own); }
        };
    }
}
