package secateur;

import java.io.DataInputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.Objects;

/** What an aggregate is over the row groups that are left out, as text in Spark's internal form; null without a value. */
final class Known {
    final String text;

    private Known(String text) { this.text = text; }

    /** A decimal by its unscaled value. */
    Known unscaled() {
        return text == null ? this : new Known(new BigDecimal(text).unscaledValue().toString());
    }

    /** Whether both are known to be the same. */
    static boolean areEqual(Known[] some, Known[] others) {
        if (some.length != others.length) return false;
        for (int i = 0; i < some.length; i++) {
            if (!Objects.equals(some[i].text, others[i].text)) return false;
        }
        return true;
    }

    /** Those of a reply; empty if statistics tell nothing. */
    static Known[] read(DataInputStream in) throws IOException {
        Known[] found = new Known[in.readInt()];
        for (int i = 0; i < found.length; i++) found[i] = new Known(in.readBoolean() ? Answer.text(in) : null);
        return found;
    }
}
