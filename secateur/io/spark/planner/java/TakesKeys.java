package secateur;

/** A scan that the values of a join's other side can prune while a query runs. */
interface TakesKeys {
    /** Whether values of a column can prune it. */
    boolean takes(String column);
}
