package secateur;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * The files of a scan of Delta's, without some that cannot match, or whose rows the one node that reads them does not
 * need.
 *
 * It is one of Delta's own file indexes, because Delta applies deletion vectors to no others. Whatever files Delta
 * chooses, for these or for other filters, only those leave that are named here; `chosen` are all that are left, or null
 * if Delta chooses.
 */
final class NarrowedDeltaFiles extends PreparedDeltaFileIndex implements Pruned, Partial {
    final Map ranges; // path -> edges of what is read of a file; files that are read whole are not in it
    private final String location, text;
    private final long number, size;
    private final Object reply; // what Python said of the files: equal replies read the same
    private final Set dead; // paths as in the log
    private final Seq chosen;
    private final Known[] known; // null if no row that matches is left out

    NarrowedDeltaFiles(
            PreparedDeltaFileIndex index, String location, FilesReply told, Object reply, Set dead, Seq chosen,
            Map ranges, long size, Known[] known) {
        super(
            index.spark(), index.deltaLog(), index.path(), index.catalogTableOpt(), index.preparedScan(),
            index.versionScanned());
        this.location = location;
        this.text = told.text;
        this.number = told.number;
        this.reply = reply;
        this.dead = dead;
        this.chosen = chosen;
        this.ranges = ranges;
        this.size = size;
        this.known = known;
    }

    public String location() { return location; }

    public String text() { return text; }

    public long number() { return number; }

    public boolean isPartial() { return known != null; }

    public Known[] known() { return known == null ? new Known[0] : known; }

    /** Whether Python has named all files that are left, and not Delta. */
    boolean isChosen() { return chosen != null; }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
        if (chosen != null) return chosen;
        List kept = new ArrayList();
        for (Iterator all = super.matchingFiles(partitionFilters, dataFilters).iterator(); all.hasNext();) {
            AddFile file = (AddFile) all.next();
            if (!dead.contains(file.path())) kept.add(file);
        }
        return PrunedTable.seq(kept);
    }

    public long sizeInBytes() { return size; }

    public boolean equals(Object other) {
        return other instanceof NarrowedDeltaFiles && super.equals(other)
            && (chosen == null) == (((NarrowedDeltaFiles) other).chosen == null)
            && reply.equals(((NarrowedDeltaFiles) other).reply);
    }

    public int hashCode() { return super.hashCode(); }
}
