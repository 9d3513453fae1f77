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
 * It is one of Delta's own file indexes, because Delta applies deletion vectors to no others. A scan may have other
 * filters than Delta has seen, as one has that leaves out deleted rows; Delta then chooses files anew, and forgets a
 * LIMIT. Of these only those are read that are kept here. Sound: the others have no row that the plan needs, and later
 * filters need no more rows. Filters of partitions are left to Delta alone, so it chooses if there are any.
 */
final class NarrowedDeltaFiles extends PreparedDeltaFileIndex implements Pruned, Partial, RangedFiles {
    private final Map ranges; // path -> edges of what is read of a file; files that are read whole are not in it
    private final String location, text;
    private final long number, size;
    private final Object reply; // what Python said of the files: equal replies read the same
    private final Set kept; // paths as in the log; null if all are that are chosen
    private final Seq chosen; // by Python, which was given no filters of partitions; null if Delta chooses
    private final Known[] known; // null if no row that matches is left out

    NarrowedDeltaFiles(
            PreparedDeltaFileIndex index, String location, FilesReply told, Object reply, Set kept, Seq chosen,
            Map ranges, long size, Known[] known) {
        super(
            index.spark(), index.deltaLog(), index.path(), index.catalogTableOpt(), index.preparedScan(),
            index.versionScanned());
        this.location = location;
        this.text = told.text;
        this.number = told.number;
        this.reply = reply;
        this.kept = kept;
        this.chosen = chosen;
        this.ranges = ranges;
        this.size = size;
        this.known = known;
    }

    public String location() { return location; }

    public String text() { return text; }

    public long number() { return number; }

    public Map ranges() { return ranges; }

    public boolean isPartial() { return known != null; }

    public Known[] known() { return known == null ? new Known[0] : known; }

    /** Whether Python has named all files that are left, and not Delta. */
    boolean isChosen() { return chosen != null; }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
        if (chosen != null) return chosen;
        List found = new ArrayList();
        for (Iterator all = super.matchingFiles(partitionFilters, dataFilters).iterator(); all.hasNext();) {
            AddFile file = (AddFile) all.next();
            if (kept.contains(file.path())) found.add(file);
        }
        return PrunedTable.seq(found);
    }

    public long sizeInBytes() { return size; }

    public boolean equals(Object other) {
        return other instanceof NarrowedDeltaFiles && super.equals(other)
            && (chosen == null) == (((NarrowedDeltaFiles) other).chosen == null)
            && reply.equals(((NarrowedDeltaFiles) other).reply);
    }

    public int hashCode() { return super.hashCode(); }
}
