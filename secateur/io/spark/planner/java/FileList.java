package secateur;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructField;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** The files that Spark lists for a scan, and their encoding for Python. */
final class FileList implements BlockSource {
    private final RelationTable table;
    private final List files = new ArrayList(); // FileStatusWithMetadata
    private final List partitions = new ArrayList(); // InternalRow
    private final int[] partition; // of every file
    private final byte[] told, digest; // the encoded list, and its SHA-256

    FileList(RelationTable table, Seq directories) {
        this.table = table;
        List numbers = new ArrayList();
        for (Iterator all = directories.iterator(); all.hasNext();) {
            PartitionDirectory directory = (PartitionDirectory) all.next();
            for (Iterator below = directory.files().iterator(); below.hasNext();) {
                files.add(below.next());
                numbers.add(Integer.valueOf(partitions.size()));
            }
            partitions.add(directory.values());
        }
        partition = new int[files.size()];
        for (int i = 0; i < partition.length; i++) partition[i] = ((Integer) numbers.get(i)).intValue();
        try {
            told = told();
            digest = MessageDigest.getInstance("SHA-256").digest(told);
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private FileStatusWithMetadata file(int i) { return (FileStatusWithMetadata) files.get(i); }

    /** Encode the list; secateur/io/spark/planner/file_list.py decodes it. */
    private byte[] told() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        Asker.text(out, table.name);
        Asker.text(out, table.dataSchema.json());
        Asker.text(out, table.partitionSchema.json());
        out.writeInt(files.size());
        ByteArrayOutputStream paths = new ByteArrayOutputStream();
        for (int i = 0; i < files.size(); i++) {
            paths.write(below(file(i).getPath()).getBytes(StandardCharsets.UTF_8));
            out.writeInt(paths.size());
        }
        paths.writeTo(out);
        for (int i = 0; i < files.size(); i++) out.writeLong(file(i).getLen());
        for (int i = 0; i < files.size(); i++) out.writeLong(file(i).getModificationTime());
        for (int i = 0; i < files.size(); i++) out.writeInt(partition[i]);
        out.writeInt(partitions.size());
        StructField[] columns = table.partitionSchema.fields();
        for (int i = 0; i < partitions.size(); i++) {
            InternalRow row = (InternalRow) partitions.get(i);
            for (int j = 0; j < columns.length; j++) {
                out.writeBoolean(!row.isNullAt(j));
                if (!row.isNullAt(j)) Asker.text(out, String.valueOf(row.get(j, columns[j].dataType())));
            }
        }
        return bytes.toByteArray();
    }

    /** A path relative to the table's; empty if it lies elsewhere. */
    private String below(Path path) {
        java.net.URI file = path.toUri(), root = table.root.toUri();
        boolean isThere = root.getScheme() == null
            || (root.getScheme().equals(file.getScheme()) && String.valueOf(root.getAuthority()).equals(
                String.valueOf(file.getAuthority())));
        String prefix = root.getPath().endsWith("/") ? root.getPath() : root.getPath() + "/";
        return isThere && file.getPath().startsWith(prefix) ? file.getPath().substring(prefix.length()) : "";
    }

    public Answer answer(long earlier, byte[] question) {
        try {
            return asked(earlier, question);
        } catch (Exception error) {
            if (earlier == 0) throw new IllegalStateException(String.valueOf(error.getMessage()));
            table.rule.events.warn(table.name, String.valueOf(error.getMessage()));
            return new Answer();
        }
    }

    private Answer asked(long earlier, byte[] question) throws IOException {
        byte[] asked = Answer.asked(table.spark, earlier, question);
        DataInputStream reply = table.rule.asker.ask(Asker.QUESTION, digest, asked);
        String text = Answer.text(reply);
        long number = reply.readLong();
        if (number == Asker.UNREGISTERED && earlier == 0) {
            table.rule.asker.ask(Asker.FILES, digest, told);
            reply = table.rule.asker.ask(Asker.QUESTION, digest, asked);
            text = Answer.text(reply);
            number = reply.readLong();
        }
        if (number == Asker.UNKNOWN || (number < 0 && earlier != 0)) return new Answer();
        if (number < 0) throw new IllegalStateException(text);
        return read(text, number, reply);
    }

    private Answer read(String text, long number, DataInputStream in) throws IOException {
        long size = in.readLong(), rows = in.readLong();
        int n = in.readInt();
        Path[] paths = new Path[n];
        long[] sizes = new long[n], modified = new long[n];
        StructField[] columns = table.partitionSchema.fields();
        Object[][] values = new Object[n][columns.length];
        for (int i = 0; i < n; i++) {
            int at = in.readInt();
            paths[i] = file(at).getPath();
            sizes[i] = file(at).getLen();
            modified[i] = file(at).getModificationTime();
            InternalRow row = (InternalRow) partitions.get(partition[at]);
            for (int j = 0; j < columns.length; j++) {
                values[i][j] = row.isNullAt(j) ? null : row.get(j, columns[j].dataType());
            }
        }
        int ranges = in.readInt();
        int[] file = new int[ranges];
        long[] start = new long[ranges], length = new long[ranges];
        for (int i = 0; i < ranges; i++) {
            file[i] = in.readInt();
            start[i] = in.readLong();
            length[i] = in.readLong();
        }
        return new Answer(text, number, size, rows, paths, sizes, modified, values, file, start, length);
    }

    public boolean equals(Object other) {
        return other instanceof FileList && Arrays.equals(digest, ((FileList) other).digest);
    }

    public int hashCode() { return Arrays.hashCode(digest); }
}
