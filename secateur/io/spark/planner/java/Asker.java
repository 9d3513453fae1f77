package secateur;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;

/** Calls Python with a time limit; after a call that took too long, there are no calls for a while. */
final class Asker {
    static final byte LOOK = 0, FILES = 1, QUESTION = 2, DATA_FILES = 3, LOGGED_FILES = 4, ESTIMATE = 5; // kinds of requests
    static final long UNKNOWN = -2, UNREGISTERED = -3; // numbers of replies without row groups
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(new ThreadFactory() {
        public Thread newThread(Runnable runnable) {
            Thread thread = new Thread(runnable, "secateur");
            thread.setDaemon(true);
            return thread;
        }
    });
    final Function python;
    private final long mostMillis;
    private final long pauseMillis;
    private volatile long silentUntil; // no calls until then

    Asker(Function python, long mostMillis, long pauseMillis) {
        this.python = python;
        this.mostMillis = mostMillis;
        this.pauseMillis = pauseMillis;
    }

    /** Call Python and return its reply. Throws IllegalStateException if it fails or takes too long. */
    DataInputStream ask(final byte kind, final byte[] head, final byte[] body) {
        if (System.currentTimeMillis() < silentUntil) throw late();
        Future reply = THREADS.submit(new Callable() {
            public Object call() throws IOException { return python.apply(request(kind, head, body)); }
        });
        try {
            return new DataInputStream(new ByteArrayInputStream((byte[]) reply.get(mostMillis, TimeUnit.MILLISECONDS)));
        } catch (TimeoutException slow) {
            silentUntil = System.currentTimeMillis() + pauseMillis;
            throw late();
        } catch (ExecutionException error) {
            throw new IllegalStateException(String.valueOf(error.getCause()));
        } catch (InterruptedException cancelled) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the query is cancelled");
        }
    }

    /** The same text for the calls that are left out afterwards: each text is logged once. */
    private IllegalStateException late() {
        return new IllegalStateException("Python did not answer within " + mostMillis + " ms");
    }

    private static byte[] request(byte kind, byte[] head, byte[] body) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeByte(kind);
        out.writeInt(head.length);
        out.write(head);
        out.write(body);
        return bytes.toByteArray();
    }

    /** Allow calls again. */
    void resume() { silentUntil = 0; }

    static void text(DataOutputStream out, String text) throws IOException {
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        out.writeInt(encoded.length);
        out.write(encoded);
    }
}
