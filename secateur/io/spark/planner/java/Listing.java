package secateur;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** The files that Spark lists for a scan, and their encoding for Python. Refers to nothing of the session. */
final class Listing {
    final FileStatus[] files;
    final InternalRow[] partitions;
    final int[] partition; // of every file
    final byte[] told, digest; // the encoded list, and its SHA-256
    private final String name;
    private final StructType dataSchema, partitionSchema;

    private Listing(RelationTable table, FileStatus[] files, InternalRow[] partitions, int[] partition) {
        this.files = files;
        this.partitions = partitions;
        this.partition = partition;
        name = table.name;
        dataSchema = table.dataSchema;
        partitionSchema = table.partitionSchema;
        try {
            told = told(table.root);
            digest = MessageDigest.getInstance("SHA-256").digest(told);
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /**
     * The listing of some directories: `known` if it is that. Files are compared as objects: as long as Spark keeps its
     * listing, it gives the same objects, which do not change; and comparing 100,000 takes less than a millisecond.
     */
    static Listing of(RelationTable table, Seq directories, Listing known) {
        List files = new ArrayList(), partitions = new ArrayList();
        List ends = new ArrayList(); // of the directories, as numbers of files
        for (Iterator all = directories.iterator(); all.hasNext();) {
            PartitionDirectory directory = (PartitionDirectory) all.next();
            for (Iterator below = directory.files().iterator(); below.hasNext();) {
                files.add(((FileStatusWithMetadata) below.next()).fileStatus());
            }
            partitions.add(directory.values());
            ends.add(Integer.valueOf(files.size()));
        }
        int[] partition = new int[files.size()];
        for (int i = 0, at = 0; i < ends.size(); i++) {
            for (int end = ((Integer) ends.get(i)).intValue(); at < end; at++) partition[at] = i;
        }
        if (known != null && known.is(table, files, partitions, partition)) return known;
        return new Listing(
            table, (FileStatus[]) files.toArray(new FileStatus[0]),
            (InternalRow[]) partitions.toArray(new InternalRow[0]), partition);
    }

    private boolean is(RelationTable table, List found, List rows, int[] numbers) {
        if (found.size() != files.length || rows.size() != partitions.length) return false;
        if (!name.equals(table.name) || !java.util.Arrays.equals(partition, numbers)) return false;
        if (!dataSchema.equals(table.dataSchema) || !partitionSchema.equals(table.partitionSchema)) return false;
        for (int i = 0; i < files.length; i++) if (files[i] != found.get(i)) return false;
        for (int i = 0; i < partitions.length; i++) if (!partitions[i].equals(rows.get(i))) return false;
        return true;
    }

    /** Encode the list; secateur/io/spark/planner/file_list.py decodes it. */
    private byte[] told(Path root) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        Asker.text(out, name);
        Asker.text(out, dataSchema.json());
        Asker.text(out, partitionSchema.json());
        out.writeInt(files.length);
        ByteArrayOutputStream paths = new ByteArrayOutputStream();
        for (int i = 0; i < files.length; i++) {
            paths.write(below(root, files[i].getPath()).getBytes(StandardCharsets.UTF_8));
            out.writeInt(paths.size());
        }
        paths.writeTo(out);
        for (int i = 0; i < files.length; i++) out.writeLong(files[i].getLen());
        for (int i = 0; i < files.length; i++) out.writeLong(files[i].getModificationTime());
        for (int i = 0; i < files.length; i++) out.writeInt(partition[i]);
        out.writeInt(partitions.length);
        StructField[] columns = partitionSchema.fields();
        for (int i = 0; i < partitions.length; i++) {
            for (int j = 0; j < columns.length; j++) {
                boolean isNull = partitions[i].isNullAt(j);
                out.writeBoolean(!isNull);
                if (!isNull) Asker.text(out, String.valueOf(partitions[i].get(j, columns[j].dataType())));
            }
        }
        return bytes.toByteArray();
    }

    /** A path relative to the table's; empty if it lies elsewhere. */
    private static String below(Path top, Path path) {
        java.net.URI file = path.toUri(), root = top.toUri();
        boolean isThere = root.getScheme() == null
            || (root.getScheme().equals(file.getScheme()) && String.valueOf(root.getAuthority()).equals(
                String.valueOf(file.getAuthority())));
        String prefix = root.getPath().endsWith("/") ? root.getPath() : root.getPath() + "/";
        return isThere && file.getPath().startsWith(prefix) ? file.getPath().substring(prefix.length()) : "";
    }
}
