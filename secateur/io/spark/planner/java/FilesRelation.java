package secateur;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map;

/** The rows of a FilesScan, read by a V1 relation of Spark over its files. */
final class FilesRelation extends BaseRelation implements TableScan {
    private final FilesScan scan;
    private final SQLContext context;

    FilesRelation(FilesScan scan, SQLContext context) {
        this.scan = scan;
        this.context = context;
    }

    public SQLContext sqlContext() { return context; }

    public StructType schema() { return scan.readSchema(); }

    public boolean needConversion() { return false; } // rows are in Spark's internal form

    public RDD buildScan() {
        PrunedTable table = scan.table;
        HadoopFsRelation files = new HadoopFsRelation(
            new AnsweredFiles(scan.answer(), table.partitionSchema), table.partitionSchema, table.dataSchema,
            Option.empty(), new ParquetFileFormat(), (Map) scala.collection.immutable.Map$.MODULE$.empty(),
            table.spark);
        LogicalRelation relation = LogicalRelation$.MODULE$.apply(files, false).withMetadataColumns();
        Project columns = new Project(PrunedTable.seq(columns(relation)), relation);
        return Dataset.ofRows(table.spark, columns).queryExecution().toRdd();
    }

    private List columns(LogicalRelation relation) {
        String[] names = schema().fieldNames();
        List found = new ArrayList();
        for (int i = 0; i < names.length; i++) {
            for (Iterator all = relation.output().iterator(); all.hasNext();) {
                AttributeReference column = (AttributeReference) all.next();
                if (column.name().equals(names[i])) found.add(column);
            }
        }
        return found;
    }

    public String toString() { return scan.description(); }
}
