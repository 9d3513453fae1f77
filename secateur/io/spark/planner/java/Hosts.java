package secateur;

import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocatedFileStatus;

/** On which hosts the bytes of a file lie, as far as its file system has told Spark. */
final class Hosts {
    static final String[] NONE = new String[0];

    private Hosts() { }

    /** Those of the block of the file system that holds most of a range. */
    static String[] of(FileStatus file, long start, long length) {
        if (!(file instanceof LocatedFileStatus)) return NONE;
        BlockLocation[] blocks = ((LocatedFileStatus) file).getBlockLocations();
        String[] found = NONE;
        long most = 0;
        for (int i = 0; blocks != null && i < blocks.length; i++) {
            long first = Math.max(start, blocks[i].getOffset());
            long last = Math.min(start + length, blocks[i].getOffset() + blocks[i].getLength());
            if (last - first <= most) continue;
            most = last - first;
            found = of(blocks[i]);
        }
        return found;
    }

    private static String[] of(BlockLocation block) {
        try {
            return block.getHosts();
        } catch (Exception unknown) {
            return NONE;
        }
    }
}
