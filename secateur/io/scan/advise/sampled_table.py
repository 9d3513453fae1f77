"""Estimate what structures would leave of some plans: they are simulated on sampled blocks, and extrapolated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from secateur.index.advise.candidates import Offer
from secateur.index.advise.simulate import Sampled, are_too_many, bytes_of, false_positives, gaps_of, gaps_over
from secateur.index.model import ORDERED
from secateur.io.scan.advise.block_samples import Facts, Place, Sample, Tried
from secateur.pruning.bounds.outcomes import survives
from secateur.pruning.bounds.zones import Gaps
from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.explain.advice import Amount, estimated
from secateur.pruning.explain.replaced_zones import with_gaps
from secateur.pruning.predicate.bound import Field, Leaf
from secateur.pruning.predicate.bound_walks import fields
from secateur.pruning.questions import Values, questions
from secateur.pruning.stages.survivors import evaluate_refuted
from secateur.pruning.statistics import Blocks


@dataclass(frozen=True, eq=False)
class SampledTable:
    """The blocks of a table, samples of those that plans read, and the facts on them."""

    tried: Tried
    every: Blocks
    samples: Sequence[Sample]  # by number of the plan
    facts: Mapping[Place, Facts]

    def left(self, sample: Sample, filters: Collection[Offer] = (), gaps: Collection[Field] = ()) -> Amount:
        """Estimate what a plan reads if of all structures that are tried just these exist, together."""
        asking = [leaf for leaf in sample.leaves if any(leaf in self.tried.filters[offer] for offer in filters)]
        measured = [field for field in gaps if field in self.gaps_of_plan[sample.number]]
        if not (asking or measured) or not len(sample.at):
            return sample.now
        survive = self._survive(sample, filters, measured)
        typical = self.typical(sample, sample.leaves if measured else asking)
        left = _extrapolated(survive, sample, typical)
        serving = [
            max(false_positives(offer, leaf, len(self.every)) for leaf in asking if leaf in self.tried.filters[offer])
            for offer in filters
            if any(leaf in self.tried.filters[offer] for leaf in asking)
        ]
        wrong = min(serving, default=0.0)  # what one filter keeps wrongly, another need not
        return sample.now.scaled(left + wrong * (len(sample.blocks) - left))

    def _survive(self, sample: Sample, filters: Collection[Offer], gaps: Collection[Field]) -> np.ndarray:
        """Mark the sampled blocks of a plan that are left: bool of shape (n_sampled,)."""
        refuted = dict(self.refuted_by_index(sample))
        for offer in filters:
            for leaf, flags in self._refuted_by[sample.number].get(offer, {}).items():
                refuted[leaf] = flags | refuted[leaf] if leaf in refuted else flags
        of_plan = self.gaps_of_plan[sample.number]
        chosen = {field: known if field in gaps else None for field, known in of_plan.items()}
        units = with_gaps(sample.chosen, chosen) if chosen else sample.chosen
        return survives(evaluate_refuted(sample.plan.survivors.predicate, units, refuted))

    def refuted_by_index(self, sample: Sample) -> dict[Leaf, np.ndarray]:
        """Return the sampled blocks in which filters of the index refute leaves."""
        return sample.plan.survivors.refuted(sample.chosen)

    @cached_property
    def _refuted_by(self) -> list[dict[Offer, dict[Leaf, np.ndarray]]]:
        """For each plan, the sampled blocks in which the filters on trial refute a leaf."""
        return [
            {
                offer: {
                    leaf: np.array([not self.facts[p].filters[offer].may_hold[leaf] for p in sample.places], bool)
                    for leaf in sample.leaves
                    if leaf in served and not self._are_too_many(offer, leaf)
                }
                for offer, served in self.tried.filters.items()
                if any(leaf in served for leaf in sample.leaves)
            }
            for sample in self.samples
        ]

    def _are_too_many(self, offer: Offer, leaf: Leaf) -> bool:
        simulated = [facts.filters[offer] for facts in self.facts.values()]
        return offer.option.kind == ORDERED and are_too_many(simulated, leaf, len(self.every))

    @cached_property
    def gaps_of_plan(self) -> list[dict[Field, Gaps]]:
        """For each plan, the gaps on trial of the predicate's columns, over its sampled blocks."""
        return [
            {field: self._gaps(sample, field) for field in self.tried.gaps if field in fields(sample.plan.predicate)}
            for sample in self.samples
        ]

    def _gaps(self, sample: Sample, field: Field) -> Gaps:
        samples = [self.facts[place].samples[field] for place in sample.places]
        return gaps_over([None if column_sample is None else gaps_of(column_sample) for column_sample in samples])

    def typical(self, sample: Sample, asked: Sequence[Leaf]) -> float | None:
        """Estimate the blocks of a plan that hold the values of its rarest conjunct, if they are typical values."""
        counts = []
        for leaf in asked:
            for question in questions(leaf) if leaf in conjuncts(sample.plan.predicate) else ():
                typical = self.column(question.column).typical if isinstance(question, Values) else None
                if typical is not None and isinstance(question, Values):
                    counts.append(min(1.0, typical * len(question.points) / len(self.every)) * len(sample.blocks))
        return min(counts, default=None)

    def column(self, field: Field) -> Sampled:
        """Return a column over all sampled blocks."""
        return self._columns.get(field, Sampled([], len(self.every)))

    @cached_property
    def _columns(self) -> dict[Field, Sampled]:
        """The columns for which filters or gaps are tried, over all sampled blocks."""
        samples = {field: [facts.samples[field] for facts in self.facts.values()] for field in self.tried.columns}
        return {
            f: Sampled([sample for sample in of_column if sample is not None], len(self.every))
            for f, of_column in samples.items()
        }

    def filter_bytes(self, offer: Offer) -> int:
        """Return the bytes that a filter would take in the index."""
        simulated = [facts.filters[offer] for facts in self.facts.values()]
        return bytes_of(offer, self.column(offer.column), simulated)

    def gap_bytes(self, field: Field) -> int:
        """Return the bytes that the gaps of a column would take in the index."""
        return self.column(field).gap_bytes


def _extrapolated(survive: np.ndarray, sample: Sample, typical: float | None) -> float:
    """Estimate the blocks that are left of all, given those that are left of the sample.

    The block that literals were taken from is sure to hold them, and says nothing about the others.
    """
    units = len(sample.blocks)
    if sample.source not in sample.places:
        return estimated(int(survive.sum()), len(survive), units, typical)
    source = int(survive[sample.places.index(sample.source)])
    others = None if typical is None else max(0.0, typical - 1)
    hits, sampled = int(survive.sum()) - source, len(survive) - 1
    if not hits and sampled and others is None:
        return float(source)  # as many as are known: none of the others has it
    return source + estimated(hits, sampled, units - 1, others)
