package secateur;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.classic.SparkSession;
import org.slf4j.LoggerFactory;

/** Keeps the results for the last relations, and logs each problem once. */
final class Events {
    private static final int MOST_WARNINGS = 100, MOST_EVENTS = 100;
    private final Set warned = new HashSet();
    private final ArrayDeque events = new ArrayDeque();

    /** Log, once for each location and reason, that a table is read unpruned. */
    void warn(String location, String reason) {
        synchronized (warned) {
            if (warned.size() >= MOST_WARNINGS || !warned.add(location + " " + reason)) return;
        }
        LoggerFactory.getLogger("secateur").warn(location + " is read unpruned: " + reason);
    }

    /** Keep a result: the number of Python's reply, or "" if the relation was not pruned; and a text. */
    void add(SparkSession session, String location, String number, String text) {
        String[] event = {session.sessionUUID(), location, number, text};
        synchronized (events) {
            if (!events.isEmpty() && Arrays.equals((String[]) events.peekLast(), event)) return;
            if (events.size() >= MOST_EVENTS) events.removeFirst();
            events.addLast(event);
        }
    }

    /** The results, oldest first, each as four texts: session, location, number, text. */
    List all() {
        List found = new ArrayList();
        synchronized (events) {
            for (Iterator all = events.iterator(); all.hasNext();) found.addAll(Arrays.asList((String[]) all.next()));
        }
        return found;
    }
}
