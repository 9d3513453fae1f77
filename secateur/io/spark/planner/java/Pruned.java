package secateur;

/** A pruned scan of another source: its location, a text for explain, and the number of the reply. */
public interface Pruned {
    String location();

    String text();

    long number();
}
