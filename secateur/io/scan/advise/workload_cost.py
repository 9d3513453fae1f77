"""Simulate on sampled blocks what logged queries read with any set of structures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import fmean

from secateur.index.advise.candidates import Offer
from secateur.io.scan.advise.bounds_plan import BoundsPlan
from secateur.io.scan.advise.sampled_table import SampledTable
from secateur.io.scan.advise.tuning_candidates import Candidate
from secateur.pruning.explain.tuning import LoggedShape


@dataclass(frozen=True, eq=False)
class WorkloadCost:
    """The plans of logged queries, what they read with some structures, and how many logged plans each stands for.

    The structures in `always` are there, whatever the others are.
    """

    sampled: SampledTable
    plans: Sequence[BoundsPlan]  # by number, as the samples
    shapes: Sequence[LoggedShape]
    always: frozenset[Candidate]

    def of(self, chosen: frozenset[Candidate]) -> float:
        """Return the bytes that all logged plans that could be simulated read with some structures."""
        return sum(weight * self._read(number, chosen) for number, weight in enumerate(self.weights))

    def of_shape(self, shape: int, chosen: frozenset[Candidate]) -> float | None:
        """Return the bytes that a query of a shape reads on average; None if it could not be simulated."""
        numbers = self._by_shape[shape]
        return fmean(self._read(number, chosen) for number in numbers) if numbers else None

    @cached_property
    def weights(self) -> list[float]:
        """The logged plans that each plan stands for."""
        return [self.shapes[plan.shape].plans / len(self._by_shape[plan.shape]) for plan in self.plans]

    @cached_property
    def _by_shape(self) -> list[list[int]]:
        """The numbers of the plans of each shape."""
        return [[n for n, plan in enumerate(self.plans) if plan.shape == s] for s in range(len(self.shapes))]

    @cached_property
    def relevant(self) -> list[frozenset[Candidate]]:
        """The candidates that may serve each plan."""
        filters = self.sampled.tried.filters.items()
        return [
            frozenset(offer for offer, served in filters if set(served) & {*one.leaves})
            | frozenset(self.sampled.gaps_of_plan[one.number])
            for one in self.sampled.samples
        ]

    def _read(self, number: int, chosen: frozenset[Candidate]) -> float:
        return self._read_with(number, self.relevant[number] & (chosen | self.always))

    @cached_property
    def _read_with(self) -> Callable[[int, frozenset[Candidate]], float]:
        """What a plan reads with the structures that serve it, remembered."""

        @cache
        def read(number: int, serving: frozenset[Candidate]) -> float:
            filters = [candidate for candidate in serving if isinstance(candidate, Offer)]
            gaps = [candidate for candidate in serving if not isinstance(candidate, Offer)]
            return self.sampled.left(self.sampled.samples[number], filters, gaps).bytes

        return read

    def bundles(self, sizes: dict[Candidate, int]) -> list[list[Candidate]]:
        """Return for every plan the smallest structures that serve all its leaves: under OR, none saves alone."""
        bundles = []
        for number, one in enumerate(self.sampled.samples):
            smallest_first = sorted(self.relevant[number] & sizes.keys(), key=sizes.__getitem__)
            bundle: dict[Candidate, None] = {}
            for leaf in one.leaves:
                serving = [c for c in smallest_first if isinstance(c, Offer) and leaf in self.sampled.tried.filters[c]]
                bundle |= dict.fromkeys(serving[:1])
            bundles.append(list(bundle))
        return [bundle for bundle in bundles if len(bundle) > 1]
