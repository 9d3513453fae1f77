package secateur;

import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** How much a scan reads, of how much, and how long the plan took: metrics in the SQL tab of Spark's UI. */
final class Figures {
    private static final String[] NAMES = {"secateurKept", "secateurAll", "secateurKeptBytes", "secateurAllBytes"};
    private static final String MILLIS = "secateurMillis";
    private final long[] values = new long[NAMES.length]; // -1 = unknown
    long rows; // of the row groups kept; -1 = unknown
    String stages; // which stages pruned how many row groups, for explain()
    private volatile long millis;

    /** The numbers of a reply (row groups kept, all of them, bytes kept, all of them, rows kept), and what the stages did. */
    static Figures read(DataInputStream in) throws IOException {
        Figures found = new Figures();
        for (int i = 0; i < NAMES.length; i++) found.values[i] = in.readLong();
        found.rows = in.readLong();
        found.stages = Answer.text(in);
        return found;
    }

    void setNanos(long nanos) { millis = nanos / 1000000; }

    static CustomMetric[] supported() {
        return new CustomMetric[] {
            new CountMetric(NAMES[0], "row groups kept by secateur"),
            new CountMetric(NAMES[1], "row groups of the files"),
            new SizeMetric(NAMES[2], "bytes of the row groups kept by secateur"),
            new SizeMetric(NAMES[3], "bytes of the files"),
            new MillisMetric(MILLIS, "secateur's planning"),
        };
    }

    CustomTaskMetric[] reported() {
        List found = new ArrayList();
        for (int i = 0; i < NAMES.length; i++) if (values[i] >= 0) found.add(new Figure(NAMES[i], values[i]));
        found.add(new Figure(MILLIS, millis));
        return (CustomTaskMetric[]) found.toArray(new CustomTaskMetric[0]);
    }

    private static final class Figure implements CustomTaskMetric {
        private final String name;
        private final long value;

        Figure(String name, long value) {
            this.name = name;
            this.value = value;
        }

        public String name() { return name; }

        public long value() { return value; }
    }
}
