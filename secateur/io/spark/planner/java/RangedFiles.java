package secateur;

import java.util.Map;

/** Files of Delta's of which some are read in part. */
interface RangedFiles {
    /** Where: path -> edges of ranges, ascending; files that are read whole are not in it. */
    Map ranges();
}
