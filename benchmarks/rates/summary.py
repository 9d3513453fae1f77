"""Scans summed up: what each technique prunes, as shares of blocks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.rates.scans import FILTERS, JOINS, LIMIT, TECHNIQUES, TOP_N, ZONE_MAPS, Measured

ASKED = {  # in which scans a technique has something to do
    ZONE_MAPS: ("filter", "join", "limit", "top-n"),
    FILTERS: ("filter", "join", "limit", "top-n"),
    JOINS: ("join",),
    LIMIT: ("limit",),
    TOP_N: ("top-n",),
}


@dataclass(frozen=True)
class Group:
    """The scans of one table: all blocks, kept, ideal, those that others keep, and those pruned by technique."""

    table: str
    scans: int
    all: int
    kept: int
    ideal: int
    pruned: dict[str, int]
    others: dict[str, int]  # blocks kept by engines that have figures of all the scans
    served: tuple[int, int]  # kept and ideal of the scans for which the index has a structure

    def share(self, blocks: int) -> float:
        """Some blocks over all of them."""
        return blocks / max(1, self.all)


@dataclass(frozen=True)
class Technique:
    """What one technique prunes of the blocks that those before it left, over all scans that ask for it."""

    name: str
    scans: int
    effective: int  # scans in which it pruned a block
    before: int
    pruned: int
    median: float  # of the share that it pruned, over the scans in which it pruned any


def groups(scans: Iterable[Measured]) -> Iterator[Group]:
    """The scans of each table, in their order."""
    by_table: dict[str, list[Measured]] = {}
    for scan in scans:
        by_table.setdefault(scan.table, []).append(scan)
    for table, of_table in by_table.items():
        names = set.intersection(*(set(scan.others) for scan in of_table))
        yield Group(
            table,
            len(of_table),
            sum(scan.all.blocks for scan in of_table),
            sum(scan.kept.blocks for scan in of_table),
            sum(scan.ideal.blocks for scan in of_table),
            {name: sum(scan.pruned.get(name, 0) for scan in of_table) for name in TECHNIQUES},
            {name: sum(scan.others[name] for scan in of_table) for name in sorted(names)},
            (
                sum(scan.kept.blocks for scan in of_table if scan.served),
                sum(scan.ideal.blocks for scan in of_table if scan.served),
            ),
        )


def techniques(scans: Sequence[Measured]) -> Iterator[Technique]:
    """What each technique prunes over all scans."""
    for name in TECHNIQUES:
        asked = [scan for scan in scans if scan.technique in ASKED[name]]
        pairs = [(_before(scan, name), scan.pruned.get(name, 0)) for scan in asked]
        shares = [pruned / before for before, pruned in pairs if pruned]
        before, pruned = (sum(counts) for counts in zip(*pairs, strict=True)) if pairs else (0, 0)
        yield Technique(name, len(asked), len(shares), before, pruned, statistics.median(shares) if shares else 0.0)


def _before(scan: Measured, technique: str) -> int:
    """The blocks that were left when a technique's turn came."""
    earlier = TECHNIQUES[: TECHNIQUES.index(technique)]
    return scan.all.blocks - sum(scan.pruned.get(name, 0) for name in earlier)
