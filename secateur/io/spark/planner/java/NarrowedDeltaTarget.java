package secateur;

import java.util.Map;
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex;
import scala.collection.immutable.Seq;

/** The files that a transaction of Delta's reads, without some that hold no row that it needs. */
final class NarrowedDeltaTarget extends TahoeBatchFileIndex implements Pruned, RangedFiles {
    private final String location, text;
    private final long number;
    private final Map ranges;

    NarrowedDeltaTarget(TahoeBatchFileIndex index, String location, FilesReply told, Seq kept, Map ranges) {
        super(
            index.spark(), index.actionType(), kept, index.deltaLog(), index.path(), index.snapshot(),
            index.partitionFiltersGenerated());
        this.location = location;
        this.text = told.text;
        this.number = told.number;
        this.ranges = ranges;
    }

    public String location() { return location; }

    public String text() { return text; }

    public long number() { return number; }

    public Map ranges() { return ranges; }

    public boolean equals(Object other) { return this == other; }

    public int hashCode() { return super.hashCode(); }
}
