package secateur;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.Action$;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Narrows a relation of Delta's: returns its files without those that cannot match, a reason (a String) to leave it, or
 * null if it is not Delta's.
 *
 * Compiled only if the session has Delta's jar. Version, deletion vectors and columns are Delta's; a file leaves the
 * relation only if the index proves that no row of it matches the filters above, or that the one node that reads the
 * relation does not need its rows. Delta has chosen files by its own skipping before, or none yet (DeferredDelta.java):
 * then few files that are left are named by Python, with their vectors. Sound: data files are immutable, and Python has
 * read the same version of the same table.
 */
public final class DeltaRelation implements Function {
    static final String OTHER_TYPES = "columns of other types than the relation's";

    public Object apply(Object given) {
        Object[] parts = (Object[]) given;
        if (!(parts[1] instanceof LogicalRelation)) return null;
        LogicalRelation relation = (LogicalRelation) parts[1];
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        EnableRule rule = (EnableRule) parts[3];
        try {
            String reason = obstacle(relation, files);
            if (reason != null) return reason;
            return narrowed((SparkSession) parts[0], files, parts[2], rule);
        } catch (Exception error) {
            rule.events.warn(Roots.place(relation), String.valueOf(error));
            return String.valueOf(error.getMessage());
        }
    }

    private static String obstacle(LogicalRelation relation, HadoopFsRelation files) {
        Class index = files.location().getClass();
        boolean isKnown = index == PreparedDeltaFileIndex.class || index == NarrowedDeltaFiles.class;
        if (!isKnown && !(files.location() instanceof DeferredFiles)) return "files are listed by " + index;
        if (relation.isStreaming() || relation.stream().isDefined()) return "a streaming relation";
        if (OptimisticTransaction.getActive().isDefined()) return "a transaction reads it";
        return hasOtherTypes(relation, files) ? OTHER_TYPES : null;
    }

    /** Whether columns have other types in a query than in its relation, as after a change of the schema. */
    static boolean hasOtherTypes(LogicalRelation relation, HadoopFsRelation files) {
        Map types = new HashMap();
        StructField[] fields = files.schema().fields();
        for (int i = 0; i < fields.length; i++) types.put(fields[i].name(), fields[i].dataType());
        for (Iterator all = relation.output().iterator(); all.hasNext();) {
            AttributeReference column = (AttributeReference) all.next();
            DataType type = (DataType) types.get(column.name());
            if (type != null && !type.equals(column.dataType())) return true;
        }
        return false;
    }

    /** `asked`: filters, or a question of the one node that reads the relation. */
    private static Object narrowed(SparkSession session, HadoopFsRelation files, Object asked, EnableRule rule)
            throws Exception {
        boolean isPartial = !(asked instanceof List);
        PreparedDeltaFileIndex index = (PreparedDeltaFileIndex) files.location();
        String location = Roots.location(index.path());
        if (rule.lookups.columns(location + "/_delta_log") == null) return "no index";
        byte[] question = Answer.asked(session, 0, isPartial ? (byte[]) asked : Question.of((List) asked));
        if (index instanceof DeferredFiles) {
            DeferredFiles deferred = (DeferredFiles) index;
            List filters = (List) asked; // OtherScans asks of partial relations only if files are chosen
            Object chosen = names(filters, index.partitionSchema()) ? null
                : chosen(location, index, deferred, files.schema().json(), question, rule);
            if (chosen != null) return chosen;
            index = (PreparedDeltaFileIndex) deferred.own(filters);
        }
        List listed = new ArrayList();
        for (Iterator all = index.preparedScan().files().iterator(); all.hasNext();) listed.add(all.next());
        byte[] told = told(location, index.metadata().id(), index.version(), files.schema().json(), listed);
        FilesReply reply = FilesReply.of(rule.asker, Asker.LOGGED_FILES, told, question);
        Figures.read(reply.rest);
        Known[] known = Known.read(reply.rest);
        byte[] rest = reply.rest.readAllBytes();
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(rest));
        List kept = new ArrayList();
        Set paths = new HashSet();
        long size = 0;
        for (int i = 0; i < listed.size(); i++) {
            AddFile file = (AddFile) listed.get(i);
            if (in.readByte() == 0) continue;
            kept.add(file);
            paths.add(file.path());
            size += file.size();
        }
        Map ranges = ranges(in, index, listed);
        boolean isChosen = index instanceof NarrowedDeltaFiles && ((NarrowedDeltaFiles) index).isChosen();
        return new NarrowedDeltaFiles(
            index, location, reply, ByteBuffer.wrap(rest), paths, isChosen ? PrunedTable.seq(kept) : null, ranges, size,
            isPartial ? known : null);
    }

    /** The files that Python chooses by its own reading of the version's log; null if they are many. */
    private static Object chosen(
            String location, PreparedDeltaFileIndex index, DeferredFiles deferred, String schema, byte[] question,
            EnableRule rule) throws Exception {
        FilesReply reply = FilesReply.of(
            rule.asker, Asker.LOGGED_FILES, told(location, index.metadata().id(), index.version(), schema, null), question);
        Figures.read(reply.rest);
        Known.read(reply.rest);
        byte[] rest = reply.rest.readAllBytes();
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(rest));
        int n = in.readInt();
        if (n < 0) return null;
        List files = new ArrayList();
        long size = 0;
        for (int i = 0; i < n; i++) {
            AddFile file = (AddFile) Action$.MODULE$.fromJson(Answer.text(in));
            files.add(file);
            size += file.size();
        }
        Seq kept = PrunedTable.seq(files);
        Map ranges = ranges(in, index, files);
        return new NarrowedDeltaFiles(
            (PreparedDeltaFileIndex) deferred.holding(kept), location, reply, ByteBuffer.wrap(rest), null,
            kept, ranges, size, null);
    }

    /** Where to read the files that are read in part: path -> edges of ranges, ascending. */
    static Map ranges(DataInputStream in, TahoeFileIndex index, List files) throws IOException {
        Map found = new HashMap();
        int n = in.readInt();
        for (int i = 0; i < n; i++) {
            Path path = index.absolutePath(((AddFile) files.get(in.readInt())).path());
            long[] known = (long[]) found.get(path);
            long[] edges = known == null ? new long[2] : Arrays.copyOf(known, known.length + 2);
            edges[edges.length - 2] = in.readLong();
            edges[edges.length - 1] = in.readLong();
            found.put(path, edges);
        }
        return found;
    }

    /** Whether some filter names a column of the partitioning: Spark leaves such a filter to Delta alone. */
    static boolean names(List filters, StructType partitions) {
        for (int i = 0; i < filters.size(); i++) {
            for (Iterator all = ((Expression) filters.get(i)).references().iterator(); all.hasNext();) {
                String name = ((Attribute) all.next()).name();
                StructField[] fields = partitions.fields();
                for (int j = 0; j < fields.length; j++) if (fields[j].name().equalsIgnoreCase(name)) return true;
            }
        }
        return false;
    }

    /** Encode what Delta scans, whose files may be null; secateur/io/spark/delta/logged_files.py decodes it. */
    static byte[] told(String location, String id, long version, String schema, List files) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        Asker.text(out, location);
        Asker.text(out, id);
        out.writeLong(version);
        Asker.text(out, schema);
        out.writeInt(files == null ? -1 : files.size());
        if (files == null) return bytes.toByteArray();
        ByteArrayOutputStream texts = new ByteArrayOutputStream();
        for (int i = 0; i < files.size(); i++) {
            texts.write(((AddFile) files.get(i)).path().getBytes(StandardCharsets.UTF_8));
            out.writeInt(texts.size());
        }
        texts.writeTo(out);
        return bytes.toByteArray();
    }
}
