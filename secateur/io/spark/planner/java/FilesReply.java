package secateur;

import java.io.DataInputStream;
import java.security.MessageDigest;

/** Python's reply to a question about files that it knows by the digest of their list. */
final class FilesReply {
    final String text;
    final long number;
    final DataInputStream rest; // one entry for each file, after the figures

    private FilesReply(DataInputStream reply) throws Exception {
        text = Answer.text(reply);
        number = reply.readLong();
        rest = reply;
    }

    /** Ask, and send the list only if Python does not know it. Throws IllegalStateException without an answer. */
    static FilesReply of(Asker asker, byte kind, byte[] list, byte[] question) throws Exception {
        return of(asker, kind, list, Asker.QUESTION, question);
    }

    /** Ask only how many rows may match. */
    static FilesReply ofEstimate(Asker asker, byte kind, byte[] list, byte[] question) throws Exception {
        return of(asker, kind, list, Asker.ESTIMATE, question);
    }

    private static FilesReply of(Asker asker, byte kind, byte[] list, byte what, byte[] question) throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(list);
        FilesReply reply = new FilesReply(asker.ask(what, digest, question));
        if (reply.number == Asker.UNREGISTERED) {
            asker.ask(kind, digest, list);
            reply = new FilesReply(asker.ask(what, digest, question));
        }
        return reply.checked();
    }

    /** Ask a question that names an earlier reply. Throws IllegalStateException without an answer. */
    static FilesReply toLater(Asker asker, byte[] question) throws Exception {
        return new FilesReply(asker.ask(Asker.QUESTION, new byte[0], question)).checked();
    }

    private FilesReply checked() {
        if (number < 0) throw new IllegalStateException(text);
        return this;
    }
}
