package secateur;

/** The source of a MERGE failed, or was cancelled, when it was run for its keys: the query has to fail as it. */
final class SourceFailed extends RuntimeException {
    SourceFailed(Throwable cause) { super(cause); }
}
