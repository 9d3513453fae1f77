package secateur;

import java.io.DataInputStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Caches which tables have an index. An entry expires, so that an index built later in the session is found. */
final class Lookups {
    private static final int FAILED_LOOKS = 30; // a failed lookup is cached this many times as long
    private static final int MOST_LOOKS = 1000;
    private final Asker asker;
    private final Events events;
    private final long lookMillis;
    private final Map looks = new LinkedHashMap(); // location -> Look

    Lookups(Asker asker, Events events, long lookMillis) {
        this.asker = asker;
        this.events = events;
        this.lookMillis = lookMillis;
    }

    private static final class Look {
        long until;
        String[] columns; // of the index; null if there is none
    }

    /** The indexed columns of a table, null if there is no index. */
    String[] columns(String location) {
        long now = System.currentTimeMillis();
        synchronized (looks) {
            Look known = (Look) looks.get(location);
            if (known != null && now < known.until) return known.columns;
        }
        Look look = new Look();
        try {
            look.columns = asked(location);
        } catch (Exception error) {
            events.warn(location, String.valueOf(error.getMessage()));
            look.until = FAILED_LOOKS * lookMillis; // do not wait for an unreachable location again and again
        }
        look.until += System.currentTimeMillis() + lookMillis;
        synchronized (looks) {
            if (looks.size() >= MOST_LOOKS) looks.clear();
            looks.put(location, look);
        }
        return look.columns;
    }

    private String[] asked(String location) throws Exception {
        DataInputStream reply = asker.ask(Asker.LOOK, location.getBytes(StandardCharsets.UTF_8), new byte[0]);
        int count = reply.readInt();
        if (count < 0) return null;
        String[] columns = new String[count];
        for (int i = 0; i < count; i++) columns[i] = Answer.text(reply);
        return columns;
    }

    void forget() {
        synchronized (looks) {
            looks.clear();
        }
    }
}
