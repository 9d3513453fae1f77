"""Why a scan keeps more blocks than those that hold a match."""

from __future__ import annotations

from benchmarks.rates.scans import Measured


def reason(scan: Measured) -> str:
    """Why the index cannot rule out the blocks that are kept in vain."""
    excess = scan.kept.blocks - scan.ideal.blocks
    match scan.technique:
        case "top-n":
            return "rows that come first are known once blocks are read, in waves, of those whose bounds reach as far"
        case "limit":
            return "no block is sure to match whole; reading stops at the last row that is wanted"
    if scan.apart == excess:
        return "in each block some row meets each condition, but none meets all of them"
    some = (
        f"in {scan.apart:,} blocks some row meets each condition, but none meets all; in the others "
        if scan.apart
        else ""
    )
    if "bloom" in scan.served or "n-grams" in scan.served or scan.technique == "join":
        return f"{some}a filter errs: it answers for many keys, or all grams of the text are there, in other places"
    return f"{some}the values asked for lie between those of a block, which has others"
