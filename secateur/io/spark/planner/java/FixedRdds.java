package secateur;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * RDDs that give the same rows in every run: rows that a driver's Python holds, checkpoints, batches of a stream.
 *
 * An RDD does not tell what its functions do. So they are known by who wrote them: Spark's own, between Python and rows,
 * and of Python's only the one that changes nothing. A batch is known by the stream that runs this thread, and its plan.
 */
final class FixedRdds {
    static final List UNCHANGED = new CopyOnWriteArrayList(); // byte[2][]: Python's function of lists, pickled
    private static final String[] BETWEEN = { // the owners of functions that make rows of Python's objects
        "org.apache.spark.api.python.SerDeUtil$", "org.apache.spark.sql.classic.SparkSession$"};
    private static final String MAPPED = "org.apache.spark.rdd.MapPartitionsRDD", MAP = "org.apache.spark.rdd.RDD$";

    /** Null if rows are the same; the plan that they depend on; or why they may be others, a String. */
    static Object of(LogicalRDD leaf) {
        RDD rows = leaf.rdd();
        try {
            if (rows.isCheckpointed() || isList(rows)) return null; // a part that is lost then is an error
            LogicalPlan batch = batch(rows);
            if (batch != null) return batch;
        } catch (Exception otherInternals) {
            return "an RDD may have other rows when run twice: " + otherInternals;
        }
        return "an RDD may have other rows when run twice";
    }

    /** Whether an RDD has what Python has sent: createDataFrame of a list or of pandas without Arrow. */
    private static boolean isList(RDD rdd) throws Exception {
        String kind = rdd.getClass().getName();
        if (kind.equals("org.apache.spark.rdd.ParallelCollectionRDD")) return true;
        if (rdd.dependencies().length() != 1) return false;
        if (kind.equals("org.apache.spark.api.python.PythonRDD")) {
            if (!isUnchanging(Reflected.field(rdd, "func").get(rdd))) return false;
        } else if (!kind.equals(MAPPED) || !isBetween(Reflected.field(rdd, "f").get(rdd))) return false;
        return isList(((org.apache.spark.Dependency) rdd.dependencies().head()).rdd());
    }

    private static boolean isUnchanging(Object function) throws Exception {
        scala.collection.Seq command = (scala.collection.Seq) Reflected.call(function, "command");
        byte[] bytes = new byte[command.length()];
        scala.collection.Iterator all = command.iterator();
        for (int i = 0; i < bytes.length; i++) bytes[i] = ((Byte) all.next()).byteValue();
        for (Iterator known = UNCHANGED.iterator(); known.hasNext();) {
            byte[][] pair = (byte[][]) known.next();
            if (isLike(bytes, pair[0], pair[1])) return true;
        }
        return false;
    }

    /** Whether bytes are those of two in which these agree; the others tell how many objects lie together. */
    private static boolean isLike(byte[] bytes, byte[] small, byte[] large) {
        boolean isLike = bytes.length == small.length && bytes.length == large.length;
        for (int i = 0; isLike && i < bytes.length; i++) isLike = small[i] != large[i] || bytes[i] == small[i];
        return isLike;
    }

    /** Whether a function, and what RDD.map and its kind call for it, is one of Spark's between Python and rows. */
    private static boolean isBetween(Object function) throws Exception {
        String kind = function.getClass().getName();
        for (int i = 0; i < BETWEEN.length; i++) if (kind.startsWith(BETWEEN[i])) return true;
        if (!kind.startsWith(MAP)) return false;
        Field[] held = function.getClass().getDeclaredFields();
        int count = 0;
        for (int i = 0; i < held.length; i++) {
            if (Modifier.isStatic(held[i].getModifiers())) continue;
            held[i].setAccessible(true);
            if (!isBetween(held[i].get(function))) return false;
            count++;
        }
        return count == 1;
    }

    /** The plan of the batch that an RDD is, of the stream whose thread this is; null if it is none. */
    private static LogicalPlan batch(RDD rdd) throws Exception {
        SparkSession session = SparkSession.active();
        String id = session.sparkContext().getLocalProperty("sql.streaming.queryId");
        if (id == null) return null;
        for (Iterator all = session.sharedState().activeStreamingQueries().values().iterator(); all.hasNext();) {
            Object stream = all.next();
            if (!String.valueOf(Reflected.call(stream, "id")).equals(id)) continue;
            QueryExecution last = (QueryExecution) Reflected.call(stream, "lastExecution");
            if (last != null && last.toRdd() == rdd) return last.optimizedPlan();
        }
        return null;
    }
}
