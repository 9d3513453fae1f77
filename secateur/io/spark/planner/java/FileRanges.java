package secateur;

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
    private final List paths;
    private final Map ranges = new HashMap(); // path -> long[] of starts and ends; files without one are read whole

    private FileRanges(FilesReply reply, List paths, long started) throws Exception {
        text = reply.text;
        number = reply.number;
        figures = Figures.read(reply.rest);
        this.paths = paths;
        for (int i = 0; i < paths.size(); i++) {
            int count = reply.rest.readInt();
            if (count < 0) continue; // the snapshot that Python opened lacks this file
            long[] edges = new long[2 * count];
            for (int j = 0; j < edges.length; j++) edges[j] = reply.rest.readLong();
            ranges.put(paths.get(i), edges);
        }
        figures.setNanos(System.nanoTime() - started);
    }

    /** Ask about files; `told` is their list encoded, `paths` in its order. */
    static FileRanges of(Asker asker, byte[] told, List paths, byte[] question) throws Exception {
        long started = System.nanoTime();
        return new FileRanges(FilesReply.of(asker, Asker.DATA_FILES, told, question), paths, started);
    }

    /** Ask about the same files once more; the question names this reply as the earlier one. */
    FileRanges narrowed(Asker asker, byte[] question) throws Exception {
        long started = System.nanoTime();
        return new FileRanges(FilesReply.toLater(asker, question), paths, started);
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
                found.add(start == first && stop == last ? task : Reflected.part(task, start, stop - start));
            }
        }
        return found;
    }
}
