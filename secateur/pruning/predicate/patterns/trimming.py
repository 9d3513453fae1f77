"""Conclude from conditions on a trimmed text to the text itself. Source: Spark's ``UTF8String.trim``."""

from __future__ import annotations

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.patterns.substrings import Alternatives, Substring
from secateur.values.kinds import Kind


def untrimmed(name: str, alternatives: Alternatives) -> tuple[RangeSet, Alternatives]:
    """Return a superset of the texts that satisfy an alternative once trimmed, and the substrings of its texts."""
    ranges = rangeset.empty(Kind.BYTES) if alternatives else rangeset.everything(Kind.BYTES)
    for substrings in alternatives:
        at_start = next((substring for substring in substrings if substring.starts), None)
        if at_start is None:
            ranges = rangeset.everything(Kind.BYTES)
        elif at_start.ends and name != "ltrim":
            ranges = rangeset.union(ranges, rangeset.points(Kind.BYTES, [at_start.text]))
            ranges = rangeset.union(ranges, rangeset.starting_with(at_start.text + b" "))
        elif at_start.ends:
            ranges = rangeset.union(ranges, rangeset.points(Kind.BYTES, [at_start.text]))
        else:
            ranges = rangeset.union(ranges, rangeset.starting_with(at_start.text))
        if name != "rtrim":
            ranges = rangeset.union(ranges, rangeset.starting_with(b" "))
    loose = tuple(
        tuple(Substring(p.text, p.starts and name == "rtrim", p.ends and name == "ltrim") for p in substrings)
        for substrings in alternatives
    )
    return ranges, loose
