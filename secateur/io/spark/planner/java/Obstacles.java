package secateur;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** Reasons not to replace the scan of a relation; null if there is none. */
final class Obstacles {
    private static final Set PLAIN_OPTIONS = new HashSet(Arrays.asList(new String[] {
        "path", "compression", "parquet.compression", "serialization.format", "partitionoverwritemode",
        "pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter"})); // the last choose files to list

    static String of(LogicalRelation relation, HadoopFsRelation files) {
        if (files.fileFormat().getClass() != ParquetFileFormat.class) return "not Spark's reader of Parquet files";
        if (relation.isStreaming() || hasStream(relation)) return "a streaming relation";
        Class index = files.location().getClass();
        if (index != InMemoryFileIndex.class && index != CatalogFileIndex.class) return "files are listed by " + index;
        if (files.bucketSpec().isDefined()) return "a bucketed table";
        if (!files.overlappedPartCols().isEmpty()) return "a partition column that the files have too";
        String reason = ofColumns(relation, files);
        if (reason == null) reason = ofOptions(files);
        return reason == null ? ofSettings() : reason;
    }

    /** Whether a relation has a stream: its fifth field, which Spark 3.5 does not have. */
    private static boolean hasStream(LogicalRelation relation) {
        return relation.productArity() > 4 && ((Option) relation.productElement(4)).isDefined();
    }

    private static String ofColumns(LogicalRelation relation, HadoopFsRelation files) {
        Seq output = relation.output();
        StructField[] fields = files.schema().fields();
        if (output.length() != fields.length) return "hidden columns are asked for";
        for (int i = 0; i < fields.length; i++) {
            AttributeReference column = (AttributeReference) output.apply(i);
            if (!column.name().equals(fields[i].name())) return "columns that the relation does not have";
            if (!column.dataType().equals(fields[i].dataType())) return "columns of other types than the relation's";
            if (!isPlain(fields[i].dataType())) return "a column of type " + fields[i].dataType().simpleString();
            if (fields[i].metadata().contains("EXISTS_DEFAULT")) return "a column with a default";
        }
        return null;
    }

    private static boolean isPlain(DataType type) {
        if (VariantValue.isOf(type)) return true;
        if (type instanceof ArrayType) return isPlain(((ArrayType) type).elementType());
        if (type instanceof MapType) {
            MapType map = (MapType) type;
            return isPlain(map.keyType()) && isPlain(map.valueType());
        }
        if (type instanceof StructType) {
            StructField[] fields = ((StructType) type).fields();
            for (int i = 0; i < fields.length; i++) {
                if (!isPlain(fields[i].dataType()) || fields[i].metadata().contains("EXISTS_DEFAULT")) return false;
            }
            return true;
        }
        return type instanceof NumericType || type instanceof StringType || type instanceof BinaryType
            || type instanceof BooleanType || type instanceof DateType || type instanceof TimestampType
            || type instanceof TimestampNTZType;
    }

    private static String ofOptions(HadoopFsRelation files) {
        for (Iterator all = files.options().keysIterator(); all.hasNext();) {
            String name = (String) all.next();
            if (name.equalsIgnoreCase("mergeSchema") && "false".equals(files.options().apply(name))) continue; // Hive's
            if (!PLAIN_OPTIONS.contains(name.toLowerCase(java.util.Locale.ROOT))) return "the option " + name;
        }
        return null;
    }

    private static String ofSettings() {
        SQLConf conf = SQLConf.get();
        if (conf.ignoreCorruptFiles()) return "spark.sql.files.ignoreCorruptFiles";
        if (conf.ignoreMissingFiles()) return "spark.sql.files.ignoreMissingFiles";
        if (conf.caseSensitiveAnalysis()) return "spark.sql.caseSensitive"; // an index finds ID where Spark looks for id
        String[] off = {
            "spark.sql.parquet.fieldId.read.enabled", "spark.sql.parquet.int96TimestampConversion",
            "spark.sql.legacy.parquet.nanosAsLong"};
        for (int i = 0; i < off.length; i++) {
            if (conf.getConfString(off[i], "false").equalsIgnoreCase("true")) return off[i];
        }
        String[] modes = {"spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead"};
        for (int i = 0; i < modes.length; i++) {
            if (conf.getConfString(modes[i], "CORRECTED").equalsIgnoreCase("LEGACY")) return modes[i];
        }
        return null;
    }
}
