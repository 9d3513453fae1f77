"""The tree above the segments: fan-out 32, every node a merged zone map, nodes in the order of the sort key.

Level 0 holds the segments; level l + 1 one node for every 32 of level l. A descent starts at the top and looks only
at the children of nodes that survive. Merging is sound (:func:`secateur.index.zonemap.merge`), so a dead node has
only dead children.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from secateur.index.zonemap import ZoneMap, merge
from secateur.pruning.conjuncts import alive
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.zones import Zones

FAN_OUT = 32


def merge_up(zone_map: ZoneMap, row_count: np.ndarray) -> list[ZoneMap]:
    """The zone maps of one column on every level, from the segments' own to a level of at most 32 nodes."""
    levels = [zone_map]
    for counts in row_counts(row_count)[:-1]:
        levels.append(merge(levels[-1], counts, _starts(len(counts))))
    return levels


def row_counts(row_count: np.ndarray) -> list[np.ndarray]:
    """Rows below every node, level by level."""
    levels = [row_count]
    while len(levels[-1]) > FAN_OUT:
        levels.append(np.add.reduceat(levels[-1], _starts(len(levels[-1]))))
    return levels


def _starts(n: int) -> np.ndarray:
    return np.arange(0, n, FAN_OUT)


@dataclass(frozen=True)
class _Nodes:
    """Statistics over chosen nodes of one level."""

    row_count: np.ndarray
    chosen: np.ndarray
    column: Callable[[Field], Zones | None]

    def zones(self, column: Field) -> Zones | None:
        zones = self.column(column)
        return None if zones is None else zones.take(self.chosen)


def descend(
    predicate: Predicate, row_count: np.ndarray, zones_at: Callable[[int, Field], Zones | None]
) -> tuple[np.ndarray, int]:
    """The segments that may hold a match, ascending, and the number of nodes looked at.

    `zones_at(level, field)` gives the zone maps of a whole level, or None where nothing is known.
    """
    levels = row_counts(row_count)
    nodes = np.arange(len(levels[-1]))
    visited = 0
    for level in range(len(levels) - 1, -1, -1):
        visited += len(nodes)
        statistics = _Nodes(levels[level][nodes], nodes, partial(zones_at, level))
        nodes = nodes[alive(predicate, statistics).units]
        if level:
            children = (nodes[:, None] * FAN_OUT + np.arange(FAN_OUT)).ravel()
            nodes = children[children < len(levels[level - 1])]
    return nodes, visited
