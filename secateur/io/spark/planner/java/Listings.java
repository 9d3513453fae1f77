package secateur;

import java.util.Map;
import java.util.WeakHashMap;
import scala.collection.immutable.Seq;

/** Keeps the last encoded listing of every file index of Spark's, as long as Spark keeps the index. */
final class Listings {
    private final Map known = new WeakHashMap(); // FileIndex -> Listing

    Listing of(RelationTable table, Seq directories) {
        Listing last;
        synchronized (known) {
            last = (Listing) known.get(table.relation.location());
        }
        Listing found = Listing.of(table, directories, last);
        synchronized (known) {
            if (found != last) known.put(table.relation.location(), found);
        }
        return found;
    }
}
