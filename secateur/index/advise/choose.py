"""Choose a set of structures under a budget of bytes, so that together they leave the least to read.

What structures save together is not the sum of what each saves: two of one column answer the same, and under OR one
alone saves nothing. So the gain of a structure, or of some that serve one predicate together, is measured beside those
that are chosen already. Gains mostly shrink as the set grows, so an old gain is a bound, and only the best are measured
anew (Minoux, "Accelerated greedy algorithms", 1978). Greedy by gain per byte, and greedy by gain, are each within a
constant of the best set where gains only shrink (Leskovec et al., "Cost-effective outbreak detection", KDD 2007); the
better of the two is then improved by exchanges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import TypeVar

S = TypeVar("S", bound=Hashable)
Cost = Callable[[frozenset[S]], float]

LEAST_SHARE = 1e-3  # of all that is read: what saves less is not worth building
_ROUNDS = 100  # exchanges


def choose(sizes: Mapping[S, int], bundles: Iterable[Collection[S]], cost: Cost[S], budget: int) -> list[S]:
    """Return the chosen structures, best first by what each saves per byte beside those before it.

    `sizes` are their bytes, `bundles` some that save more together than alone, `cost` what a set leaves to read.
    """
    moves = list(dict.fromkeys([*(frozenset([s]) for s in sizes), *(frozenset(bundle) for bundle in bundles)]))
    least = LEAST_SHARE * cost(frozenset())
    sets = [_grown(frozenset(), moves, sizes, cost, (budget, least), per_byte) for per_byte in (True, False)]
    best = _exchanged(min(sets, key=cost), moves, sizes, cost, (budget, least))
    return _ranked(_needed(best, sizes, cost, least), moves, sizes, cost)


def best_of_all(sizes: Mapping[S, int], cost: Cost[S], budget: int) -> frozenset[S]:
    """Return the set within a budget that leaves the least to read, by trying all of them: for few structures."""
    sets = (frozenset(some) for n in range(len(sizes) + 1) for some in combinations(sizes, n))
    return min((some for some in sets if _size(some, sizes) <= budget), key=cost)


def _size(chosen: Iterable[S], sizes: Mapping[S, int]) -> int:
    return sum(sizes[s] for s in chosen)


def _grown(
    chosen: frozenset[S],
    moves: Iterable[frozenset[S]],
    sizes: Mapping[S, int],
    cost: Cost[S],
    limits: tuple[int, float],
    per_byte: bool,
) -> frozenset[S]:
    """Add the best move that still fits, again and again, until none saves enough."""
    budget, least = limits
    left, current = budget - _size(chosen, sizes), cost(chosen)
    heap = [(-float("inf"), i, -1, move) for i, move in enumerate(moves)]
    heapify(heap)
    while heap:
        _, i, measured_at, move = heappop(heap)
        new = move - chosen
        size = _size(new, sizes)
        if not new or size > left:
            continue
        if measured_at == len(chosen):
            chosen, left = chosen | new, left - size
            current = cost(chosen)
            continue
        gain = current - cost(chosen | new)
        if gain >= least and gain > 0:
            heappush(heap, (-gain / max(size, 1) if per_byte else -gain, i, len(chosen), move))
    return chosen


def _exchanged(
    chosen: frozenset[S],
    moves: list[frozenset[S]],
    sizes: Mapping[S, int],
    cost: Cost[S],
    limits: tuple[int, float],
) -> frozenset[S]:
    """Replace one structure by what fits in its place, as long as that saves more."""
    for _ in range(_ROUNDS):
        others = (
            _grown(chosen - {out}, [move for move in moves if out not in move], sizes, cost, limits, per_byte)
            for out in chosen
            for per_byte in (True, False)
        )
        better = min(others, key=cost, default=chosen)
        if cost(better) >= cost(chosen) - limits[1]:
            return chosen
        chosen = better
    return chosen


def _needed(chosen: frozenset[S], sizes: Mapping[S, int], cost: Cost[S], least: float) -> frozenset[S]:
    """Return a set without the structures that save nothing beside the others, the largest first."""
    for s in sorted(chosen, key=lambda s: -sizes[s]):
        without = chosen - {s}
        if cost(without) - cost(chosen) < least:
            chosen = without
    return chosen


def _ranked(chosen: frozenset[S], moves: list[frozenset[S]], sizes: Mapping[S, int], cost: Cost[S]) -> list[S]:
    """Order a set by what each saves per byte beside those before it; of some that only save together, all at once."""
    order: list[S] = []
    before: frozenset[S] = frozenset()
    while before != chosen:
        current = cost(before)
        fitting = {move - before for move in moves if move <= chosen and not move <= before} or {chosen - before}
        best = max(fitting, key=lambda new: ((current - cost(before | new)) / max(_size(new, sizes), 1), -len(new)))
        order += sorted(best, key=lambda s: sizes[s])
        before |= best
    return order
