package secateur;

import java.io.DataInputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Option;
import scala.collection.Iterator;

/**
 * Narrows the files that a transaction of Delta's reads of its own table: returns them without those that cannot match
 * filters, or a reason (a String) to leave them.
 *
 * Compiled only if the session has Delta's jar. Sound: as DeltaRelation.java, and the version is the transaction's.
 */
public final class DeltaTarget implements Function {
    public Object apply(Object given) {
        Object[] parts = (Object[]) given;
        LogicalRelation relation = (LogicalRelation) parts[1];
        EnableRule rule = (EnableRule) parts[3];
        try {
            HadoopFsRelation files = (HadoopFsRelation) relation.relation();
            TahoeBatchFileIndex index = (TahoeBatchFileIndex) files.location();
            if (!isOfTransaction(index)) return "no transaction reads it";
            if (DeltaRelation.hasOtherTypes(relation, files)) return DeltaRelation.OTHER_TYPES;
            byte[] question = Answer.asked((SparkSession) parts[0], 0, Question.of((List) parts[2]));
            return narrowed(index, files.schema().json(), question, rule);
        } catch (Exception error) {
            rule.events.warn(Roots.place(relation), String.valueOf(error));
            return String.valueOf(error.getMessage());
        }
    }

    private static boolean isOfTransaction(TahoeBatchFileIndex index) {
        Option active = OptimisticTransaction.getActive();
        return active.isDefined()
            && ((OptimisticTransaction) active.get()).deltaLog().dataPath().equals(index.deltaLog().dataPath());
    }

    private static Object narrowed(TahoeBatchFileIndex index, String schema, byte[] question, EnableRule rule)
            throws Exception {
        List listed = new ArrayList();
        for (Iterator all = index.addFiles().iterator(); all.hasNext();) listed.add(all.next());
        String location = Roots.location(index.path());
        byte[] told = DeltaRelation.told(
            location, index.snapshot().metadata().id(), index.snapshot().version(), schema, listed);
        FilesReply reply = FilesReply.of(rule.asker, Asker.LOGGED_FILES, told, question);
        Figures.read(reply.rest);
        Known.read(reply.rest);
        DataInputStream in = reply.rest;
        List kept = new ArrayList();
        for (int i = 0; i < listed.size(); i++) if (in.readByte() != 0) kept.add(listed.get(i));
        if (kept.isEmpty() && !listed.isEmpty()) kept.add(smallest(listed));
        return new NarrowedDeltaTarget(
            index, location, reply, PrunedTable.seq(kept), DeltaRelation.ranges(in, index, listed));
    }

    /**
     * The smallest file with live rows, which is read for Delta's figures: of a join with nothing, Spark may not run the
     * other side, where Delta counts the source's rows.
     */
    private static Object smallest(List files) {
        AddFile found = null;
        for (int i = 0; i < files.size(); i++) {
            AddFile file = (AddFile) files.get(i);
            if (found == null || rank(file) < rank(found)) found = file;
        }
        return found;
    }

    /** A file whose rows may all be deleted comes last. */
    private static long rank(AddFile file) { return file.deletionVector() == null ? file.size() : Long.MAX_VALUE; }
}
