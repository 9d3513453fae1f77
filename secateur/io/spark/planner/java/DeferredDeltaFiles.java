package secateur;

import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.ExpressionSet;
import org.apache.spark.sql.catalyst.expressions.ExpressionSet$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.stats.DataSize;
import org.apache.spark.sql.delta.stats.DeltaDataSkippingType;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.collection.immutable.Set;
import scala.collection.immutable.Set$;

/**
 * The files of one version of a Delta table, for which Delta has not yet run its job over the log.
 *
 * Asked by anyone but DeltaRelation, it does as Delta does: it chooses files by the filters that it is given.
 */
final class DeferredDeltaFiles extends PreparedDeltaFileIndex implements DeferredFiles {
    private final Snapshot snapshot;

    DeferredDeltaFiles(TahoeLogFileIndex index, Snapshot snapshot) {
        super(
            index.spark(), index.deltaLog(), index.path(), index.catalogTableOpt(), scan(snapshot, nothing()),
            index.versionToUse());
        this.snapshot = snapshot;
    }

    private static Seq nothing() { return PrunedTable.seq(Collections.emptyList()); }

    private static DeltaScan scan(Snapshot snapshot, Seq files) {
        ExpressionSet none = ExpressionSet$.MODULE$.apply(nothing());
        Option unknown = Option.empty();
        DataSize size = new DataSize(unknown, unknown, unknown, unknown);
        return new DeltaScan(
            snapshot.version(), files, size, size, size, snapshot, none, none, none, (Set) Set$.MODULE$.empty(), none,
            0L, DeltaDataSkippingType.noSkippingV1());
    }

    public FileIndex own(List filters) { return prepared(snapshot.filesForScan(PrunedTable.seq(filters), false)); }

    public FileIndex holding(Seq files) { return prepared(scan(snapshot, files)); }

    private PreparedDeltaFileIndex prepared(DeltaScan scan) {
        return new PreparedDeltaFileIndex(spark(), deltaLog(), path(), catalogTableOpt(), scan, versionScanned());
    }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
        Seq filters = (Seq) partitionFilters.appendedAll(dataFilters);
        return snapshot.filesForScan(filters, false).files();
    }

    public String[] inputFiles() { return ((FileIndex) own(Collections.emptyList())).inputFiles(); }

    public long sizeInBytes() {
        Option known = snapshot.sizeInBytesIfKnown();
        return known.isDefined() ? ((Long) known.get()).longValue() : super.sizeInBytes();
    }

    public boolean equals(Object other) {
        return other instanceof DeferredDeltaFiles && super.equals(other)
            && snapshot.version() == ((DeferredDeltaFiles) other).snapshot.version();
    }

    public int hashCode() { return super.hashCode(); }
}
