package secateur;

import java.util.List;
import org.apache.spark.sql.execution.datasources.FileIndex;
import scala.collection.immutable.Seq;

/** The files of a relation of Delta's before anyone has chosen some. It names no class of Delta's. */
interface DeferredFiles {
    /** The files that Delta itself chooses for some filters. */
    FileIndex own(List filters);

    /** These files, of the same version. */
    FileIndex holding(Seq files);
}
