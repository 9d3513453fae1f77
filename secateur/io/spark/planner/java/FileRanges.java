package secateur;

import java.io.DataInputStream;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ScanTaskGroup;

/** Python's reply about the data files of a scan: the ranges of every file that can hold a match. */
final class FileRanges {
    final String text;
    final long number;
    final Figures figures;
    final Known[] known; // of aggregates, over what is left out
    final ColumnFigures[] columns; // of those that the question names, if anything is known of them
    final List tasks = new ArrayList(); // texts, of a snapshot's files that can hold a match
    private final List paths = new ArrayList(); // of the files in question
    private final boolean isOfSnapshot; // then Python names the files, and not Java
    private final Map ranges = new HashMap(); // path -> long[] of starts and ends; files without one are read whole

    private FileRanges(FilesReply reply, boolean isOfSnapshot) throws Exception {
        text = reply.text;
        number = reply.number;
        figures = Figures.read(reply.rest);
        known = Known.read(reply.rest);
        columns = ColumnFigures.read(reply.rest);
        this.isOfSnapshot = isOfSnapshot;
    }

    /** Ask about files; `told` is their list encoded, `paths` in its order. */
    static FileRanges of(Asker asker, byte[] told, List paths, byte[] question) throws Exception {
        long started = System.nanoTime();
        FilesReply reply = FilesReply.of(asker, Asker.DATA_FILES, told, question);
        return new FileRanges(reply, false).listed(paths, reply.rest).since(started);
    }

    /** Ask which files of a snapshot have to be read; null if Iceberg is to plan. */
    static FileRanges ofSnapshot(Asker asker, byte[] told, byte[] question) throws Exception {
        long started = System.nanoTime();
        FilesReply reply = FilesReply.of(asker, Asker.DATA_FILES, told, question);
        FileRanges found = new FileRanges(reply, true);
        int count = reply.rest.readInt();
        if (count < 0) return null;
        found.named(count, reply.rest);
        for (int i = 0; i < count; i++) found.tasks.add(Answer.text(reply.rest));
        return found.since(started);
    }

    /** Ask about the same files once more; the question names this reply as the earlier one. */
    FileRanges narrowed(Asker asker, byte[] question) throws Exception {
        long started = System.nanoTime();
        FilesReply reply = FilesReply.toLater(asker, question);
        FileRanges found = new FileRanges(reply, isOfSnapshot);
        if (!isOfSnapshot) return found.listed(paths, reply.rest).since(started);
        for (int i = 0; i < paths.size(); i++) found.ranges.put(paths.get(i), new long[0]);
        found.named(reply.rest.readInt(), reply.rest);
        return found.since(started);
    }

    private FileRanges listed(List all, DataInputStream in) throws IOException {
        paths.addAll(all);
        for (int i = 0; i < all.size(); i++) {
            int count = in.readInt();
            if (count >= 0) ranges.put(all.get(i), edges(count, in)); // else Python's snapshot lacks this file
        }
        return this;
    }

    private void named(int count, DataInputStream in) throws IOException {
        for (int i = 0; i < count; i++) {
            paths.add(Answer.text(in));
            ranges.put(paths.get(i), edges(in.readInt(), in));
        }
    }

    private static long[] edges(int count, DataInputStream in) throws IOException {
        long[] found = new long[2 * count];
        for (int i = 0; i < found.length; i++) found[i] = in.readLong();
        return found;
    }

    private FileRanges since(long started) {
        figures.setNanos(System.nanoTime() - started);
        return this;
    }

    /** The tasks of a partition, cut to the ranges; empty if nothing of it has to be read. */
    List cut(ScanTaskGroup group) throws Exception {
        List found = new ArrayList();
        for (Iterator all = group.tasks().iterator(); all.hasNext();) {
            Object given = all.next();
            FileScanTask task = given instanceof FileScanTask ? (FileScanTask) given : null;
            long[] edges = task == null ? null : (long[]) ranges.get(task.file().location());
            if (edges == null || task.file().format() != FileFormat.PARQUET) {
                found.add(given);
                continue;
            }
            long first = task.start(), last = task.start() + task.length();
            for (int i = 0; i < edges.length; i += 2) {
                long start = Math.max(first, edges[i]), stop = Math.min(last, edges[i + 1]);
                if (start >= stop) continue;
                found.add(start == first && stop == last ? task : part(task, start, stop - start));
            }
        }
        return found;
    }

    private static Object part(FileScanTask task, long start, long length) throws Exception {
        Class made = Class.forName(
            "org.apache.iceberg.BaseFileScanTask$SplitScanTask", true, FileScanTask.class.getClassLoader());
        Constructor constructor = made.getDeclaredConstructor(
            new Class[] {Long.TYPE, Long.TYPE, FileScanTask.class});
        constructor.setAccessible(true);
        return constructor.newInstance(new Object[] {Long.valueOf(start), Long.valueOf(length), task});
    }
}
