package secateur;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * The files of a scan of Delta's, without some that cannot match.
 *
 * It is one of Delta's own file indexes, because Delta applies deletion vectors to no others. Whatever files Delta
 * chooses, for these or for other filters, only those leave that are named here.
 */
final class NarrowedDeltaFiles extends PreparedDeltaFileIndex implements Pruned, Partial {
    private final String location, text;
    private final long number, size;
    private final Set dead; // paths as in the log
    private final boolean isPartial; // whether files of `dead` may have rows that match
    private final Known[] known;

    NarrowedDeltaFiles(
            PreparedDeltaFileIndex index, String location, String text, long number, Set dead, long size,
            boolean isPartial, Known[] known) {
        super(
            index.spark(), index.deltaLog(), index.path(), index.catalogTableOpt(), index.preparedScan(),
            index.versionScanned());
        this.location = location;
        this.text = text;
        this.number = number;
        this.dead = dead;
        this.size = size;
        this.isPartial = isPartial;
        this.known = known;
    }

    public String location() { return location; }

    public String text() { return text; }

    public long number() { return number; }

    public boolean isPartial() { return isPartial; }

    public Known[] known() { return known; }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
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
            && dead.equals(((NarrowedDeltaFiles) other).dead);
    }

    public int hashCode() { return super.hashCode(); }
}
