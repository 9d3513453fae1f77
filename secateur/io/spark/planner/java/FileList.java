package secateur;

import java.io.DataInputStream;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructField;

/** The source of a scan over the files that Spark lists. */
final class FileList implements BlockSource {
    private final RelationTable table;
    private final Listing listing;

    FileList(RelationTable table, Listing listing) {
        this.table = table;
        this.listing = listing;
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
        DataInputStream reply = table.rule.asker.ask(Asker.QUESTION, listing.digest, asked);
        String text = Answer.text(reply);
        long number = reply.readLong();
        if (number == Asker.UNREGISTERED && earlier == 0) {
            table.rule.asker.ask(Asker.FILES, listing.digest, listing.told);
            reply = table.rule.asker.ask(Asker.QUESTION, listing.digest, asked);
            text = Answer.text(reply);
            number = reply.readLong();
        }
        if (number == Asker.UNKNOWN || (number < 0 && earlier != 0)) return new Answer();
        if (number < 0) throw new IllegalStateException(text);
        return read(text, number, reply);
    }

    private Answer read(String text, long number, DataInputStream in) throws IOException {
        long size = in.readLong(), rows = in.readLong();
        Figures figures = Figures.read(in);
        int n = in.readInt();
        Path[] paths = new Path[n];
        FileStatus[] files = new FileStatus[n];
        long[] sizes = new long[n], modified = new long[n];
        StructField[] columns = table.partitionSchema.fields();
        Object[][] values = new Object[n][columns.length];
        for (int i = 0; i < n; i++) {
            int at = in.readInt();
            files[i] = listing.files[at];
            paths[i] = listing.files[at].getPath();
            sizes[i] = listing.files[at].getLen();
            modified[i] = listing.files[at].getModificationTime();
            InternalRow row = listing.partitions[listing.partition[at]];
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
        Answer answer = new Answer(
            text, number, size, rows, figures, paths, sizes, modified, values, file, start, length, Known.read(in),
            ColumnFigures.read(in));
        answer.files = files;
        return answer;
    }

    public boolean equals(Object other) {
        return other instanceof FileList && Arrays.equals(listing.digest, ((FileList) other).listing.digest);
    }

    public int hashCode() { return Arrays.hashCode(listing.digest); }
}
