/*
 * A rule of Spark's optimizer: of an indexed relation of Parquet files, only row groups that can match are read.
 *
 * Compiled in the driver by Janino, together with PrunedTable.java. Sound: the relation's own list of files decides
 * what is read, except row groups that the index proves to have no match. A relation that is not fully understood stays
 * as it is; so does one for which Python fails or does not answer in time.
 */
package secateur;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.Nondeterministic;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.V2ScanRelationPushDown$;
import org.apache.spark.sql.execution.dynamicpruning.CleanupDynamicPruningFilters$;
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

public final class EnableRule extends Rule {
    public static final String ENABLED = "secateur.enabled"; // SET secateur.enabled=false
    final Asker asker;
    private volatile Function other; // prunes scans of another source, see IcebergScan.java; or null

    /** Parts: a Function of Python, the limit of one call in ms, and how long a lookup of an index is cached, in ms. */
    public EnableRule(List parts) {
        asker = new Asker(
            (Function) parts.get(0), ((Number) parts.get(1)).longValue(), ((Number) parts.get(2)).longValue());
    }

    public String ruleName() { return "secateur.EnableRule"; }

    /** Prune scans of another source too. */
    public void alsoAsk(Function other) { this.other = other; }

    /** Prune the queries of this session and of sessions made from it later; `session` is of Spark Classic. */
    public void enable(SparkSession session) {
        List rules = without(session);
        rules.add(this);
        session.experimental().extraOptimizations_$eq(PrunedTable.seq(rules));
        asker.isOn = true;
        asker.forget();
    }

    /** Stop pruning the queries of this session, and of sessions made later. */
    public void disable(SparkSession session) {
        asker.isOn = false;
        session.experimental().extraOptimizations_$eq(PrunedTable.seq(without(session)));
    }

    /** Give sessions that are made later this rule, from their first query on. */
    public void enableLater(SparkSession session) { session.extensions().injectOptimizerRule(new InNewSessions(this)); }

    /** The session's rules without this one, and without rules of an earlier class with the same name. */
    private static List without(SparkSession session) {
        List rules = new ArrayList();
        for (Iterator all = session.experimental().extraOptimizations().iterator(); all.hasNext();) {
            Rule rule = (Rule) all.next();
            if (!rule.ruleName().equals("secateur.EnableRule")) rules.add(rule);
        }
        return rules;
    }

    /** Results for the last relations, oldest first: session, location, number of a reply or "", and a text. */
    public List events() { return asker.events(); }

    public TreeNode apply(TreeNode plan) {
        try {
            if (!SQLConf.get().getConfString(ENABLED, "true").trim().equalsIgnoreCase("true")) return plan;
            return pruned((LogicalPlan) plan);
        } catch (VirtualMachineError fatal) {
            throw fatal;
        } catch (Throwable error) {
            asker.warn("a query", String.valueOf(error));
            return plan;
        }
    }

    LogicalPlan pruned(LogicalPlan plan) {
        Rewriting rewriting = new Rewriting(this, SparkSession.active(), plan);
        return rewriting.result();
    }

    /** Rewrites one plan. */
    static final class Rewriting {
        private final EnableRule rule;
        private final SparkSession session;
        private final LogicalPlan plan;
        private final IdentityHashMap failed = new IdentityHashMap(); // relations for which Python gave no reply
        private final IdentityHashMap tables = new IdentityHashMap(); // relation -> table, or why it is unchanged
        private boolean isChanged, hasJoin;
        private String unrepeatable; // why this plan's relations must keep their partitioning, or null

        Rewriting(EnableRule rule, SparkSession session, LogicalPlan plan) {
            this.rule = rule;
            this.session = session;
            this.plan = plan;
        }

        /** The plan with pruned scans; the same plan if there is nothing to prune. */
        LogicalPlan result() {
            unrepeatable = Obstacles.ofPlan(plan);
            if (Obstacles.changesRows(plan)) return plan;
            while (true) {
                isChanged = false;
                LogicalPlan replaced = replaced(plan);
                if (!isChanged) return replaced; // its subqueries may have changed
                LogicalPlan pushed = V2ScanRelationPushDown$.MODULE$.apply(replaced);
                List scans = new ArrayList();
                collect(pushed, scans);
                if (!areAnswered(scans)) continue;
                for (int i = 0; i < scans.size(); i++) {
                    PrunedScan scan = (PrunedScan) scans.get(i);
                    rule.asker.event(session, scan.table.name, String.valueOf(scan.answer().number), scan.answer().text);
                }
                return hasJoin ? withRuntimeFilters(pushed) : pushed;
            }
        }

        /** Let the values of a join's small side prune its big side while the query runs. */
        private static LogicalPlan withRuntimeFilters(LogicalPlan pushed) {
            LogicalPlan filtered = PartitionPruning$.MODULE$.apply(pushed);
            if (filtered.fastEquals(pushed)) return pushed;
            return CleanupDynamicPruningFilters$.MODULE$.apply(PushDownPredicates$.MODULE$.apply(filtered));
        }

        private boolean areAnswered(List scans) {
            boolean all = true;
            for (int i = 0; i < scans.size(); i++) {
                PrunedScan scan = (PrunedScan) scans.get(i);
                try {
                    scan.answer();
                } catch (Exception error) {
                    rule.asker.warn(scan.table.name, String.valueOf(error.getMessage()));
                    rule.asker.event(session, scan.table.name, "", String.valueOf(error.getMessage()));
                    failed.put(((RelationTable) scan.table).relation, "");
                    all = false;
                }
            }
            return all;
        }

        private LogicalPlan replaced(LogicalPlan node) {
            if (node instanceof LogicalRelation) return relation((LogicalRelation) node);
            if (node instanceof Join) hasJoin = true;
            List children = new ArrayList();
            boolean differs = false;
            for (Iterator all = node.children().iterator(); all.hasNext();) {
                LogicalPlan child = (LogicalPlan) all.next();
                LogicalPlan found = replaced(child);
                differs |= found != child;
                children.add(found);
            }
            LogicalPlan found = differs ? (LogicalPlan) node.withNewChildren(PrunedTable.seq(children)) : node;
            if (found instanceof Filter) found = filtered((Filter) found);
            return (LogicalPlan) found.mapExpressions(new InSubqueries(rule));
        }

        /** Prune the scan of another source below a filter. */
        private LogicalPlan filtered(Filter filter) {
            if (rule.other == null || !(filter.child() instanceof DataSourceV2ScanRelation)) return filter;
            DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) filter.child();
            if (relation.scan() instanceof Pruned || relation.scan() instanceof PrunedScan) return filter;
            List filters = new ArrayList();
            conjuncts(filter.condition(), filters);
            Object found = unrepeatable != null ? unrepeatable : rule.other.apply(new Object[] {session, relation, filters, rule.asker});
            if (found instanceof String) rule.asker.event(session, relation.relation().table().name(), "", (String) found);
            if (!(found instanceof Pruned)) return filter;
            Pruned scan = (Pruned) found;
            rule.asker.event(session, scan.location(), String.valueOf(scan.number()), scan.text());
            Object[] fields = new Object[relation.productArity()];
            for (int i = 0; i < fields.length; i++) {
                fields[i] = relation.productElement(i) == relation.scan() ? scan : relation.productElement(i);
            }
            List child = Arrays.asList(new Object[] {relation.makeCopy(fields)});
            return (LogicalPlan) filter.withNewChildren(PrunedTable.seq(child));
        }

        private static void conjuncts(Expression condition, List found) {
            if (condition instanceof And) {
                conjuncts(((And) condition).left(), found);
                conjuncts(((And) condition).right(), found);
            } else if (condition.deterministic()) found.add(condition);
        }

        private LogicalPlan relation(LogicalRelation relation) {
            if (!(relation.relation() instanceof HadoopFsRelation)) return relation;
            HadoopFsRelation files = (HadoopFsRelation) relation.relation();
            if (failed.containsKey(files)) return relation;
            Object known = tables.get(files);
            if (known == null) {
                known = table(relation, files);
                tables.put(files, known);
                if (known instanceof String) rule.asker.event(session, place(relation, files), "", (String) known);
            }
            if (known instanceof String) return relation;
            isChanged = true;
            return new DataSourceV2Relation(
                (RelationTable) known, relation.output(), Option.empty(), Option.empty(),
                CaseInsensitiveStringMap.empty(), Option.empty());
        }

        /** The table that replaces a relation, or the reason (a String) why it stays. */
        private Object table(LogicalRelation relation, HadoopFsRelation files) {
            String reason = Obstacles.of(session, relation, files);
            if (reason != null) return reason;
            Path root = root(relation, files);
            if (root == null) return "several directories are read at once";
            String location = location(root);
            String[] columns = rule.asker.columns(location);
            if (columns == null) return "no index";
            if (unrepeatable != null) return unrepeatable;
            Set indexed = new HashSet(Arrays.asList(columns));
            indexed.addAll(Arrays.asList(files.partitionSchema().fieldNames()));
            indexed.retainAll(Arrays.asList(files.schema().fieldNames()));
            List parts = Arrays.asList(new Object[] {
                session, location, files.schema(), files.dataSchema(), files.partitionSchema(),
                new ArrayList(indexed), rule.asker.python});
            return new RelationTable(parts, files, root, rule.asker);
        }

        private static String place(LogicalRelation relation, HadoopFsRelation files) {
            Path root = root(relation, files);
            return root == null ? String.valueOf(files.location().rootPaths()) : location(root);
        }

        /** The only directory of a relation; that of the table if Spark has already chosen some of its partitions. */
        private static Path root(LogicalRelation relation, HadoopFsRelation files) {
            if (relation.catalogTable().isDefined()) {
                CatalogTable table = (CatalogTable) relation.catalogTable().get();
                return table.storage().locationUri().isDefined() ? new Path(table.location()) : null;
            }
            Seq roots = files.location().rootPaths();
            return roots.length() == 1 ? (Path) roots.head() : null;
        }

        /** A local path, or a URI, as Python opens it. */
        private static String location(Path root) {
            String scheme = root.toUri().getScheme();
            return scheme == null || scheme.equals("file") ? root.toUri().getPath() : root.toString();
        }

        private static void collect(LogicalPlan node, List scans) {
            if (node instanceof DataSourceV2ScanRelation) {
                Object scan = ((DataSourceV2ScanRelation) node).scan();
                if (scan instanceof PrunedScan && ((PrunedScan) scan).table instanceof RelationTable) scans.add(scan);
            }
            for (Iterator all = node.children().iterator(); all.hasNext();) collect((LogicalPlan) all.next(), scans);
        }
    }
}

/** A pruned scan of another source: its location, a text for explain, and the number of the reply. */
public interface Pruned {
    String location();

    String text();

    long number();
}

/** Rewrites the plans inside expressions, each by itself: a run-time filter's plan must equal the plan it repeats. */
final class InSubqueries extends AbstractFunction1 {
    private final EnableRule rule;

    InSubqueries(EnableRule rule) { this.rule = rule; }

    public Object apply(Object given) {
        Expression expression = (Expression) given;
        boolean differs = false;
        List children = new ArrayList();
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            Object child = all.next();
            Object found = apply(child);
            differs |= found != child;
            children.add(found);
        }
        if (differs) expression = (Expression) expression.withNewChildren(PrunedTable.seq(children));
        if (!(expression instanceof PlanExpression)) return expression;
        PlanExpression subquery = (PlanExpression) expression;
        if (!(subquery.plan() instanceof LogicalPlan)) return expression;
        LogicalPlan plan = (LogicalPlan) subquery.plan(), found = rule.pruned(plan);
        return found == plan ? expression : subquery.withNewPlan(found);
    }
}

/** Adds the rule to a new session when its first query is optimized; returns a rule that does nothing. */
final class InNewSessions extends AbstractFunction1 {
    private final EnableRule rule;
    private final Set known = java.util.Collections.synchronizedSet(new HashSet()); // ids of sessions with the rule

    InNewSessions(EnableRule rule) { this.rule = rule; }

    public Object apply(Object session) {
        SparkSession made = (SparkSession) session;
        if (rule.asker.isOn && known.add(made.sessionUUID())) rule.enable(made);
        return new Nothing();
    }
}

final class Nothing extends Rule {
    public String ruleName() { return "secateur.Nothing"; }

    public TreeNode apply(TreeNode plan) { return plan; }
}

/** Reasons not to replace the scan of a relation; null if there is none. */
final class Obstacles {
    private static final Set PLAIN_OPTIONS = new HashSet(Arrays.asList(new String[] {
        "path", "compression", "parquet.compression", "serialization.format"}));

    static String of(SparkSession session, LogicalRelation relation, HadoopFsRelation files) {
        if (files.fileFormat().getClass() != ParquetFileFormat.class) return "not Spark's reader of Parquet files";
        if (relation.isStreaming() || relation.stream().isDefined()) return "a streaming relation";
        Class index = files.location().getClass();
        if (index != InMemoryFileIndex.class && index != CatalogFileIndex.class) return "files are listed by " + index;
        if (files.bucketSpec().isDefined()) return "a bucketed table";
        if (!files.overlappedPartCols().isEmpty()) return "a partition column that the files have too";
        String reason = ofColumns(relation, files);
        if (reason == null) reason = ofOptions(files);
        return reason == null ? ofSettings() : reason;
    }

    private static String ofColumns(LogicalRelation relation, HadoopFsRelation files) {
        Seq output = relation.output();
        StructField[] fields = files.schema().fields();
        if (output.length() != fields.length) return "hidden columns are asked for";
        for (int i = 0; i < fields.length; i++) {
            AttributeReference column = (AttributeReference) output.apply(i);
            if (!column.name().equals(fields[i].name())) return "columns that the relation does not have";
            if (!column.dataType().equals(fields[i].dataType())) return "columns of other types than the relation's";
            if (!isPlain(fields[i].dataType())) return "a column of type " + fields[i].dataType().simpleString();
            if (fields[i].metadata().contains("EXISTS_DEFAULT")) return "a column with a default";
        }
        return null;
    }

    private static boolean isPlain(DataType type) {
        if (type instanceof ArrayType) return isPlain(((ArrayType) type).elementType());
        if (type instanceof MapType) return isPlain(((MapType) type).keyType()) && isPlain(((MapType) type).valueType());
        if (type instanceof StructType) {
            StructField[] fields = ((StructType) type).fields();
            for (int i = 0; i < fields.length; i++) {
                if (!isPlain(fields[i].dataType()) || fields[i].metadata().contains("EXISTS_DEFAULT")) return false;
            }
            return true;
        }
        return type instanceof NumericType || type instanceof StringType || type instanceof BinaryType
            || type instanceof BooleanType || type instanceof DateType || type instanceof TimestampType
            || type instanceof TimestampNTZType;
    }

    private static String ofOptions(HadoopFsRelation files) {
        for (Iterator all = files.options().keysIterator(); all.hasNext();) {
            String name = (String) all.next();
            if (!PLAIN_OPTIONS.contains(name.toLowerCase(java.util.Locale.ROOT))) return "the option " + name;
        }
        return null;
    }

    private static String ofSettings() {
        SQLConf conf = SQLConf.get();
        if (conf.ignoreCorruptFiles()) return "spark.sql.files.ignoreCorruptFiles";
        if (conf.ignoreMissingFiles()) return "spark.sql.files.ignoreMissingFiles";
        String[] off = {
            "spark.sql.parquet.fieldId.read.enabled", "spark.sql.parquet.int96TimestampConversion",
            "spark.sql.legacy.parquet.nanosAsLong"};
        for (int i = 0; i < off.length; i++) {
            if (conf.getConfString(off[i], "false").equalsIgnoreCase("true")) return off[i];
        }
        String[] modes = {"spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead"};
        for (int i = 0; i < modes.length; i++) {
            if (conf.getConfString(modes[i], "CORRECTED").equalsIgnoreCase("LEGACY")) return modes[i];
        }
        return null;
    }

    private static final Set ROW_LEVEL = new HashSet(Arrays.asList(new String[] {
        "ReplaceData", "WriteDelta", "MergeRows", "MergeIntoTable", "UpdateTable", "DeleteFromTable"}));

    /** Whether a plan is a MERGE, an UPDATE or a DELETE: these detect conflicts from the files that they read. */
    static boolean changesRows(LogicalPlan plan) {
        if (ROW_LEVEL.contains(plan.getClass().getSimpleName())) return true;
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            if (changesRows((LogicalPlan) all.next())) return true;
        }
        return false;
    }

    /** Why the result depends on how rows are partitioned, or null. If it does, every relation stays unchanged. */
    static String ofPlan(LogicalPlan plan) {
        if (plan instanceof Sample) return "a sample depends on how rows are partitioned";
        for (Iterator all = plan.expressions().iterator(); all.hasNext();) {
            String reason = ofExpression((Expression) all.next());
            if (reason != null) return reason;
        }
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            String reason = ofPlan((LogicalPlan) all.next());
            if (reason != null) return reason;
        }
        return null;
    }

    private static String ofExpression(Expression expression) {
        String kind = expression.getClass().getSimpleName();
        boolean isName = expression instanceof InputFileName;
        if ((expression instanceof Nondeterministic && !isName) || kind.startsWith("InputFileBlock")) {
            return expression.prettyName() + " depends on how rows are partitioned";
        }
        for (Iterator all = expression.children().iterator(); all.hasNext();) {
            String reason = ofExpression((Expression) all.next());
            if (reason != null) return reason;
        }
        return null;
    }
}

/** A relation of Spark; its scans read some row groups of the files that the relation lists. */
final class RelationTable extends PrunedTable {
    final HadoopFsRelation relation;
    final Path root;
    final Asker asker;

    RelationTable(List parts, HadoopFsRelation relation, Path root, Asker asker) {
        super(parts);
        this.relation = relation;
        this.root = root;
        this.asker = asker;
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
        return new FileList(this, relation.location().listFiles(PrunedTable.seq(chosen), none));
    }

    private static boolean isOf(Expression expression, Set columns) {
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
            && relation.location().equals(table.relation.location());
    }

    public int hashCode() { return 31 * name.hashCode() + schema.hashCode(); }
}

/** The files that Spark lists for a scan, and their encoding for Python. */
final class FileList implements BlockSource {
    private final RelationTable table;
    private final List files = new ArrayList(); // FileStatusWithMetadata
    private final List partitions = new ArrayList(); // InternalRow
    private final int[] partition; // of every file
    private final byte[] told, digest; // the encoded list, and its SHA-256

    FileList(RelationTable table, Seq directories) {
        this.table = table;
        List numbers = new ArrayList();
        for (Iterator all = directories.iterator(); all.hasNext();) {
            PartitionDirectory directory = (PartitionDirectory) all.next();
            for (Iterator below = directory.files().iterator(); below.hasNext();) {
                files.add(below.next());
                numbers.add(Integer.valueOf(partitions.size()));
            }
            partitions.add(directory.values());
        }
        partition = new int[files.size()];
        for (int i = 0; i < partition.length; i++) partition[i] = ((Integer) numbers.get(i)).intValue();
        try {
            told = told();
            digest = MessageDigest.getInstance("SHA-256").digest(told);
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private FileStatusWithMetadata file(int i) { return (FileStatusWithMetadata) files.get(i); }

    /** Encode the list; secateur/io/spark/planner/file_list.py decodes it. */
    private byte[] told() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        Asker.text(out, table.name);
        Asker.text(out, table.dataSchema.json());
        Asker.text(out, table.partitionSchema.json());
        out.writeInt(files.size());
        ByteArrayOutputStream paths = new ByteArrayOutputStream();
        for (int i = 0; i < files.size(); i++) {
            paths.write(below(file(i).getPath()).getBytes(StandardCharsets.UTF_8));
            out.writeInt(paths.size());
        }
        paths.writeTo(out);
        for (int i = 0; i < files.size(); i++) out.writeLong(file(i).getLen());
        for (int i = 0; i < files.size(); i++) out.writeLong(file(i).getModificationTime());
        for (int i = 0; i < files.size(); i++) out.writeInt(partition[i]);
        out.writeInt(partitions.size());
        StructField[] columns = table.partitionSchema.fields();
        for (int i = 0; i < partitions.size(); i++) {
            InternalRow row = (InternalRow) partitions.get(i);
            for (int j = 0; j < columns.length; j++) {
                out.writeBoolean(!row.isNullAt(j));
                if (!row.isNullAt(j)) Asker.text(out, String.valueOf(row.get(j, columns[j].dataType())));
            }
        }
        return bytes.toByteArray();
    }

    /** A path relative to the table's; empty if it lies elsewhere. */
    private String below(Path path) {
        java.net.URI file = path.toUri(), root = table.root.toUri();
        boolean isThere = root.getScheme() == null
            || (root.getScheme().equals(file.getScheme()) && String.valueOf(root.getAuthority()).equals(
                String.valueOf(file.getAuthority())));
        String prefix = root.getPath().endsWith("/") ? root.getPath() : root.getPath() + "/";
        return isThere && file.getPath().startsWith(prefix) ? file.getPath().substring(prefix.length()) : "";
    }

    public Answer answer(long earlier, byte[] question) {
        try {
            return asked(earlier, question);
        } catch (Exception error) {
            if (earlier == 0) throw new IllegalStateException(String.valueOf(error.getMessage()));
            table.asker.warn(table.name, String.valueOf(error.getMessage()));
            return new Answer();
        }
    }

    private Answer asked(long earlier, byte[] question) throws IOException {
        byte[] asked = Answer.asked(table.spark, earlier, question);
        DataInputStream reply = table.asker.ask(Asker.QUESTION, digest, asked);
        String text = Answer.text(reply);
        long number = reply.readLong();
        if (number == Asker.UNREGISTERED && earlier == 0) {
            table.asker.ask(Asker.FILES, digest, told);
            reply = table.asker.ask(Asker.QUESTION, digest, asked);
            text = Answer.text(reply);
            number = reply.readLong();
        }
        if (number == Asker.UNKNOWN || (number < 0 && earlier != 0)) return new Answer();
        if (number < 0) throw new IllegalStateException(text);
        return read(text, number, reply);
    }

    private Answer read(String text, long number, DataInputStream in) throws IOException {
        long size = in.readLong(), rows = in.readLong();
        int n = in.readInt();
        Path[] paths = new Path[n];
        long[] sizes = new long[n], modified = new long[n];
        StructField[] columns = table.partitionSchema.fields();
        Object[][] values = new Object[n][columns.length];
        for (int i = 0; i < n; i++) {
            int at = in.readInt();
            paths[i] = file(at).getPath();
            sizes[i] = file(at).getLen();
            modified[i] = file(at).getModificationTime();
            InternalRow row = (InternalRow) partitions.get(partition[at]);
            for (int j = 0; j < columns.length; j++) {
                values[i][j] = row.isNullAt(j) ? null : row.get(j, columns[j].dataType());
            }
        }
        int ranges = in.readInt();
        int[] file = new int[ranges];
        long[] start = new long[ranges], length = new long[ranges];
        for (int i = 0; i < ranges; i++) {
            file[i] = in.readInt();
            start[i] = in.readLong();
            length[i] = in.readLong();
        }
        return new Answer(text, number, size, rows, paths, sizes, modified, values, file, start, length);
    }

    public boolean equals(Object other) {
        return other instanceof FileList && Arrays.equals(digest, ((FileList) other).digest);
    }

    public int hashCode() { return Arrays.hashCode(digest); }
}

/** Calls Python with a time limit; caches which tables have an index, and keeps warnings and events. */
public final class Asker {
    public static final byte LOOK = 0, FILES = 1, QUESTION = 2, DATA_FILES = 3; // kinds of requests
    public static final long UNKNOWN = -2, UNREGISTERED = -3; // numbers of replies without row groups
    private static final int FAILED_LOOKS = 30; // a failed lookup is cached this many times as long
    private static final int MOST_LOOKS = 1000, MOST_WARNINGS = 100, MOST_EVENTS = 100;
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(new ThreadFactory() {
        public Thread newThread(Runnable runnable) {
            Thread thread = new Thread(runnable, "secateur");
            thread.setDaemon(true);
            return thread;
        }
    });
    final Function python;
    private final long mostMillis;
    private final long lookMillis; // a lookup expires, so that an index built later in the session is found
    volatile boolean isOn = true; // for sessions that are made later
    private volatile long silentUntil; // no calls until then, after one that took too long
    private final Map looks = new LinkedHashMap(); // location -> Look
    private final Set warned = new HashSet();
    private final ArrayDeque events = new ArrayDeque();

    Asker(Function python, long mostMillis, long lookMillis) {
        this.python = python;
        this.mostMillis = mostMillis;
        this.lookMillis = lookMillis;
    }

    private static final class Look {
        long until;
        String[] columns; // of the index; null if there is none
    }

    /** The indexed columns of a table, null if there is no index. Cached for `lookMillis`. */
    public String[] columns(String location) {
        long now = System.currentTimeMillis();
        synchronized (looks) {
            Look known = (Look) looks.get(location);
            if (known != null && now < known.until) return known.columns;
        }
        Look look = new Look();
        try {
            DataInputStream reply = ask(LOOK, location.getBytes(StandardCharsets.UTF_8), new byte[0]);
            int count = reply.readInt();
            if (count >= 0) look.columns = new String[count];
            for (int i = 0; i < count; i++) look.columns[i] = Answer.text(reply);
        } catch (Exception error) {
            warn(location, String.valueOf(error.getMessage()));
            look.until = FAILED_LOOKS * lookMillis; // do not wait for an unreachable location again and again
        }
        look.until += System.currentTimeMillis() + lookMillis;
        synchronized (looks) {
            if (looks.size() >= MOST_LOOKS) looks.clear();
            looks.put(location, look);
        }
        return look.columns;
    }

    /** Call Python and return its reply. Throws IllegalStateException if it fails or takes too long. */
    public DataInputStream ask(final byte kind, final byte[] head, final byte[] body) {
        if (System.currentTimeMillis() < silentUntil) throw new IllegalStateException("Python did not answer in time");
        Future reply = THREADS.submit(new Callable() {
            public Object call() throws IOException {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                DataOutputStream out = new DataOutputStream(bytes);
                out.writeByte(kind);
                out.writeInt(head.length);
                out.write(head);
                out.write(body);
                return python.apply(bytes.toByteArray());
            }
        });
        try {
            return new DataInputStream(new ByteArrayInputStream((byte[]) reply.get(mostMillis, TimeUnit.MILLISECONDS)));
        } catch (TimeoutException slow) {
            silentUntil = System.currentTimeMillis() + lookMillis;
            throw new IllegalStateException("Python did not answer within " + mostMillis + " ms");
        } catch (ExecutionException error) {
            throw new IllegalStateException(String.valueOf(error.getCause()));
        } catch (InterruptedException cancelled) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the query is cancelled");
        }
    }

    /** Log, once for each location and reason, that a table is read unpruned. */
    public void warn(String location, String reason) {
        synchronized (warned) {
            if (warned.size() >= MOST_WARNINGS || !warned.add(location + " " + reason)) return;
        }
        LoggerFactory.getLogger("secateur").warn(location + " is read unpruned: " + reason);
    }

    void event(SparkSession session, String location, String number, String text) {
        String[] event = {session.sessionUUID(), location, number, text};
        synchronized (events) {
            if (!events.isEmpty() && Arrays.equals((String[]) events.peekLast(), event)) return;
            if (events.size() >= MOST_EVENTS) events.removeFirst();
            events.addLast(event);
        }
    }

    List events() {
        List found = new ArrayList();
        synchronized (events) {
            for (java.util.Iterator all = events.iterator(); all.hasNext();) {
                String[] event = (String[]) all.next();
                for (int i = 0; i < event.length; i++) found.add(event[i]);
            }
        }
        return found;
    }

    /** Forget which locations have an index and which have none, and allow calls again. */
    void forget() {
        synchronized (looks) {
            looks.clear();
        }
        silentUntil = 0;
    }

    public static void text(DataOutputStream out, String text) throws IOException {
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        out.writeInt(encoded.length);
        out.write(encoded);
    }
}
