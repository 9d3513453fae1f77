package secateur;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import scala.collection.Iterator;

/**
 * Narrows a relation of Delta's: returns its files without those that cannot match, a reason (a String) to leave it, or
 * null if it is not Delta's.
 *
 * Compiled only if the session has Delta's jar. Version, skipping, deletion vectors and columns are Delta's; a file
 * leaves the relation only if the index proves that no row of it matches the filters above, or that the one node that
 * reads the relation does not need its rows. Sound: data files are
 * immutable, and Python has read the same version of the same table.
 */
public final class DeltaRelation implements Function {
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
        if (index != PreparedDeltaFileIndex.class && index != NarrowedDeltaFiles.class) return "files are listed by " + index;
        if (relation.isStreaming() || relation.stream().isDefined()) return "a streaming relation";
        if (OptimisticTransaction.getActive().isDefined()) return "a transaction reads it";
        Map types = new HashMap();
        StructField[] fields = files.schema().fields();
        for (int i = 0; i < fields.length; i++) types.put(fields[i].name(), fields[i].dataType());
        for (Iterator all = relation.output().iterator(); all.hasNext();) {
            AttributeReference column = (AttributeReference) all.next();
            DataType type = (DataType) types.get(column.name());
            if (type != null && !type.equals(column.dataType())) return "columns of other types than the relation's";
        }
        return null;
    }

    /** `asked`: filters, or a question of the one node that reads the relation. */
    private static Object narrowed(SparkSession session, HadoopFsRelation files, Object asked, EnableRule rule)
            throws Exception {
        boolean isPartial = !(asked instanceof List);
        PreparedDeltaFileIndex index = (PreparedDeltaFileIndex) files.location();
        String location = Roots.location(index.path());
        if (rule.lookups.columns(location + "/_delta_log") == null) return "no index";
        List chosen = new ArrayList();
        for (Iterator all = index.preparedScan().files().iterator(); all.hasNext();) chosen.add(all.next());
        byte[] told = told(location, index, files.schema().json(), chosen);
        byte[] question = Answer.asked(session, 0, isPartial ? (byte[]) asked : Question.of((List) asked));
        FilesReply reply = FilesReply.of(rule.asker, Asker.LOGGED_FILES, told, question);
        Figures.read(reply.rest);
        Known[] known = Known.read(reply.rest);
        Set dead = new HashSet();
        long size = 0;
        for (int i = 0; i < chosen.size(); i++) {
            AddFile file = (AddFile) chosen.get(i);
            if (reply.rest.readByte() == 0) dead.add(file.path());
            else size += file.size();
        }
        return new NarrowedDeltaFiles(index, location, reply.text, reply.number, dead, size, isPartial, known);
    }

    /** Encode what Delta scans; secateur/io/spark/delta/logged_files.py decodes it. */
    private static byte[] told(String location, PreparedDeltaFileIndex index, String schema, List files)
            throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        Asker.text(out, location);
        Asker.text(out, index.metadata().id());
        out.writeLong(index.version());
        Asker.text(out, schema);
        out.writeInt(files.size());
        ByteArrayOutputStream texts = new ByteArrayOutputStream();
        for (int i = 0; i < files.size(); i++) {
            texts.write(((AddFile) files.get(i)).path().getBytes(StandardCharsets.UTF_8));
            out.writeInt(texts.size());
        }
        texts.writeTo(out);
        return bytes.toByteArray();
    }
}
