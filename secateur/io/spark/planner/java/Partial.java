package secateur;

/** A scan, or its files, that can leave out rows that match, if the one node of a plan that reads it does not need them. */
interface Partial {
    /** Whether it leaves out such rows already. */
    boolean isPartial();

    /** What the aggregates of its question are over what is left out; empty if nothing is. */
    Known[] known();
}
