package secateur;

/** Where a scan gets its row groups from. Equal sources give equal answers to equal questions. */
public interface BlockSource {
    /** Row groups to read; `earlier` is the number of the answer to narrow, or 0. */
    Answer answer(long earlier, byte[] question);
}
