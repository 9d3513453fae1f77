"""The tree above the segments: every node is a merged zone map, nodes are in sort key order.

Level 0 holds the segments; level l + 1 has one node for every `fan_out` nodes of level l, up to a level of at most
`fan_out` nodes. Nodes are numbered across levels, level 0 first. A descent starts at the top: it stops at dead nodes,
takes fully matching nodes whole, and descends into the others. Merging is sound
(:func:`secateur.index.zones.zonemap.merge`), so a dead node has only dead children and a fully matching one only fully
matching children.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from secateur.errors import IndexFault
from secateur.index.zones.zonemap import ZoneMap, concat, merge
from secateur.pruning.bounds.outcomes import fully_matching, survives
from secateur.pruning.bounds.zones import Zones, occupancy
from secateur.pruning.evaluate import evaluate, may_match
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.values.combination import less

FAN_OUT = 32


@dataclass(frozen=True)
class Tree:
    """The nodes of a tree: level l has nodes [begin[l], begin[l + 1])."""

    fan_out: int
    begin: tuple[int, ...]
    row_count: np.ndarray  # rows of every node


def tree_over(row_count: np.ndarray, fan_out: int) -> Tree:
    """Build the tree over segments with these row counts. Raises IndexFault for a fan-out below 2."""
    if fan_out < 2:
        raise IndexFault(f"a tree has no fan-out of {fan_out}")
    levels = [row_count]
    while len(levels[-1]) > fan_out:
        levels.append(np.add.reduceat(levels[-1], _starts(len(levels[-1]), fan_out)))
    begin = np.cumsum([0, *map(len, levels)])
    return Tree(fan_out, tuple(begin.tolist()), np.concatenate(levels))


def _starts(n: int, fan_out: int) -> np.ndarray:
    return np.arange(0, n, fan_out)


def merge_up(zone_map: ZoneMap, tree: Tree) -> ZoneMap:
    """Merge the zone map of one column over the segments into one over all nodes."""
    levels = [zone_map]
    for begin, end in list(pairwise(tree.begin))[:-1]:
        levels.append(merge(levels[-1], tree.row_count[begin:end], _starts(end - begin, tree.fan_out)))
    return concat(levels)


def contradicted_nodes(nodes: ZoneMap, tree: Tree) -> list[int]:
    """Return the numbers of the nodes above the segments whose statistics do not hold for the nodes below them."""
    leaves = tree.begin[1]
    merged = merge_up(nodes.take(np.arange(leaves)), tree)
    filled = occupancy(tree.row_count, merged.null_count)[0] != 0
    counts = zip((nodes.null_count, nodes.nan_count), (merged.null_count, merged.nan_count), strict=True)
    tops = (nodes.numbers_upper, merged.numbers_upper)
    wrong = filled & (less(merged.lower, nodes.lower) | less(nodes.upper, merged.upper) | less(*tops))
    for recorded, actual in counts:
        wrong |= (recorded >= 0) & (recorded != actual)
    return (leaves + np.flatnonzero(wrong[leaves:])).tolist()


@dataclass(frozen=True)
class Nodes:
    """Statistics over chosen nodes; `column` gives zone maps over all nodes."""

    row_count: np.ndarray
    chosen: np.ndarray
    column: Callable[[Field], Zones | None]

    def __len__(self) -> int:
        return len(self.chosen)

    def zones(self, column: Field) -> Zones | None:
        zones = self.column(column)
        return None if zones is None else zones.take(self.chosen)


@dataclass(frozen=True)
class TreeDescent:
    """The segments that a descent leaves, ascending: those to prune further, and those whose every row matches."""

    segments: np.ndarray
    whole: np.ndarray
    visited: int  # number of nodes visited


def descend(
    predicate: Predicate, tree: Tree, column: Callable[[Field], Zones | None], implied: Predicate | None = None
) -> TreeDescent:
    """Return the segments that may hold a match; `column` gives zone maps over all nodes, or None if unknown.

    `implied` is TRUE wherever `predicate` is; it only rules out nodes.
    """
    visited = 0
    whole: list[np.ndarray] = []
    nodes = np.arange(tree.begin[-1] - tree.begin[-2])
    for level in range(len(tree.begin) - 2, -1, -1):
        visited += len(nodes)
        numbers = nodes + tree.begin[level]
        statistics = Nodes(tree.row_count[numbers], numbers, column)
        outcomes = evaluate(predicate, statistics)
        is_whole = fully_matching(outcomes)
        whole.append(_below(nodes[is_whole], level, tree))
        undecided = survives(outcomes) & ~is_whole
        if implied is not None:
            undecided &= may_match(implied, statistics)
        nodes = nodes[undecided]
        if level:
            nodes = _children(nodes, tree.fan_out, tree.begin[level] - tree.begin[level - 1])
    return TreeDescent(nodes, np.sort(np.concatenate(whole)), visited)


def _children(nodes: np.ndarray, fan_out: int, size: int) -> np.ndarray:
    """Return the children of nodes, on the level below, which has `size` nodes."""
    children = (nodes[:, None] * fan_out + np.arange(fan_out)).ravel()
    return children[children < size]


def _below(nodes: np.ndarray, level: int, tree: Tree) -> np.ndarray:
    """Return the segments below nodes of a level."""
    return _children(nodes, tree.fan_out**level, tree.begin[1])
