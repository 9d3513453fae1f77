"""Advice for a table: evaluate structures on a sample of its blocks, and extrapolate to all blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.errors import UnsupportedPredicate
from secateur.index.advise.candidates import Offer, gaps_argument
from secateur.index.advise.resort import Sorted, sorted_by
from secateur.index.advise.simulate import (
    Sampled,
    bytes_of,
    false_positives,
    gap_bytes,
    gaps_of,
    gaps_over,
)
from secateur.io.scan.block_samples import Facts, Place, Sample, Tried, read_facts, sample, what_to_try
from secateur.io.scan.planned_scan import PlannedScan
from secateur.pruning.conjuncts import alive, conjuncts
from secateur.pruning.explain.advice import CLUSTERING, Advice, Amount, Proposal, QueryCost, estimated, ranked
from secateur.pruning.explain.altered import with_gaps
from secateur.pruning.outcomes import survives
from secateur.pruning.predicate.bound import Field, Leaf, fields
from secateur.pruning.questions import Values, questions
from secateur.pruning.rows import truth
from secateur.pruning.stages.survivors import evaluate_refuted
from secateur.pruning.statistics import Blocks
from secateur.pruning.zones import Zones


def advice(whole: PlannedScan, plans: Sequence[PlannedScan], most: int) -> Advice:
    """Return advice for some plans; `whole` is the plan of all blocks of the same table."""
    tried = what_to_try(whole, plans)
    samples = [sample(plan, most, number) for number, plan in enumerate(plans)]
    facts = read_facts(tried, sample(whole, most), samples)
    table = _Table(tried, whole, [each.without(facts) for each in samples], facts)
    asked = [table.question(each) for each in table.samples]
    proposals = [*table.filters(), *table.gaps(), *table.clusterings(asked)]
    return Advice(tuple(asked), ranked(proposals, asked), len(table.every), len(facts))


# ---- estimates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """The facts read from the sample, and the proposals that follow for the predicates."""

    tried: Tried
    whole: PlannedScan
    samples: Sequence[Sample]
    facts: Mapping[Place, Facts]

    @property
    def every(self) -> Blocks:
        """All blocks of the table."""
        return self.whole.survivors.blocks

    def question(self, own: Sample) -> QueryCost:
        """Return what a predicate reads, and the least that it could read."""
        matches = [self.facts[place].matches[own.number] for place in own.places]
        least = None
        if None not in matches:
            found = sum(map(bool, matches))
            least = own.now.scaled(estimated(found, len(own.at), len(own.blocks), self._typical(own, own.leaves)))
        return QueryCost(str(own.plan.written), own.now, least, len(own.at))

    def _typical(self, own: Sample, asked: Sequence[Leaf]) -> float | None:
        """Estimate the blocks of a plan that hold the values of its rarest conjunct, if they are typical values."""
        found = []
        for leaf in asked:
            for question in questions(leaf) if leaf in conjuncts(own.plan.predicate) else ():
                typical = self._sampled(question.column).typical if isinstance(question, Values) else None
                if typical is not None and isinstance(question, Values):
                    found.append(min(1.0, typical * len(question.points) / len(self.every)) * len(own.blocks))
        return min(found, default=None)

    def _sampled(self, field: Field) -> Sampled:
        return self._columns.get(field, Sampled([], len(self.every)))

    @cached_property
    def _columns(self) -> dict[Field, Sampled]:
        """The columns for which filters or gaps are tried, over all sampled blocks."""
        found = {field: [each.samples[field] for each in self.facts.values()] for field in self.tried.columns}
        return {f: Sampled([each for each in own if each is not None], len(self.every)) for f, own in found.items()}

    def _existing(self, own: Sample) -> dict[Leaf, np.ndarray]:
        """Return the sampled blocks in which existing filters refute leaves."""
        return {leaf: ~own.chosen.among(numbers) for leaf, numbers in own.plan.survivors.evidence.items()}

    # ---- filters

    def filters(self) -> Iterator[Proposal]:
        """Yield filters that the index lacks, over all predicates."""
        for offer, served in self.tried.filters.items():
            left = tuple(
                self._with_filter(own, offer, [leaf for leaf in own.leaves if leaf in served]) for own in self.samples
            )
            held = [each.held[offer] for each in self.facts.values()]
            takes = bytes_of(offer, self._sampled(offer.column), held)
            yield Proposal(offer.structure, str(offer.column), self._call(offer.argument), takes, left)

    def _with_filter(self, own: Sample, offer: Offer, served: Sequence[Leaf]) -> Amount:
        if not served or not len(own.at):
            return own.now
        refuted = self._existing(own)
        for leaf in served:
            may_hold = np.array([self.facts[place].held[offer].may_hold[leaf] for place in own.places])
            refuted[leaf] = ~may_hold | refuted.get(leaf, np.zeros(len(may_hold), bool))
        found = int(survives(evaluate_refuted(own.plan.predicate, own.chosen, refuted)).sum())
        blocks = len(own.blocks)
        left = estimated(found, len(own.at), blocks, self._typical(own, served))
        wrong = max(false_positives(offer, leaf, len(self.every)) for leaf in served)
        return own.now.scaled(left + wrong * (blocks - left))

    def _call(self, argument: str) -> str:
        name = "build_index" if self.whole.opened.catalog.snapshot is None else "refresh_index"
        return f"{name}(table, spark=spark, {argument})"

    # ---- gaps

    def gaps(self) -> Iterator[Proposal]:
        """Yield gaps that the index lacks and that a build would keep."""
        for field in self.tried.gaps:
            column = self._sampled(field)
            if column.has_gaps:
                left = tuple(self._with_gaps(own, field) for own in self.samples)
                yield Proposal("gaps", str(field), self._call(gaps_argument(field)), gap_bytes(column), left)

    def _with_gaps(self, own: Sample, field: Field) -> Amount:
        if field not in fields(own.plan.predicate) or not len(own.at):
            return own.now
        samples = [self.facts[place].samples[field] for place in own.places]
        gaps = gaps_over([None if each is None else gaps_of(each) for each in samples])
        blocks = with_gaps(own.chosen, {field: gaps})
        found = int(survives(evaluate_refuted(own.plan.predicate, blocks, self._existing(own))).sum())
        return own.now.scaled(estimated(found, len(own.at), len(own.blocks), self._typical(own, own.leaves)))

    # ---- clusterings

    def clusterings(self, asked: Sequence[QueryCost]) -> Iterator[Proposal]:
        """Yield orders of the table by another column, within its partitions."""
        sorted_parts: dict[tuple[Field, tuple[Place, ...]], Sorted] = {}
        whole = Sample(self.whole, np.zeros(0, np.int64), -1).now
        for field in self.tried.clusterings:
            left = tuple(
                self._sorted_by(own, field, whole, question, sorted_parts)
                for own, question in zip(self.samples, asked, strict=True)
            )
            how = (
                f"rewrite the table in ORDER BY {field}, then build_index(table, spark=spark, sort_key={[str(field)]})"
            )
            yield Proposal(CLUSTERING, str(field), how, int(whole.bytes), left)

    def _sorted_by(
        self,
        own: Sample,
        field: Field,
        whole: Amount,
        question: QueryCost,
        sorted_parts: dict[tuple[Field, tuple[Place, ...]], Sorted],
    ) -> Amount:
        live = self._partitions(own)
        blocks = int(np.count_nonzero(live[self.every.file]))
        places = tuple(place for place, each in self.facts.items() if each.rows is not None and live[place[0]])
        batches = [rows for place in places if (rows := self.facts[place].rows) is not None and rows.num_rows]
        if not batches:
            return own.now
        if (field, places) not in sorted_parts:
            rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
            sorted_parts[field, places] = sorted_by(rows, field, len(batches), blocks)
        found = sorted_parts[field, places]
        share = found.share_left(own.plan.predicate, self._true_of(own, batches))
        least = 1.0 if question.least is None else min(1.0, question.least.blocks)
        return whole.scaled(min(float(blocks), max(blocks * share, least)))

    def _partitions(self, own: Sample) -> np.ndarray:
        """Return the files that may match by their names, which a rewrite does not change: bool of shape (n,)."""
        found = np.zeros(len(own.plan.paths), bool)
        found[alive(own.plan.predicate, _Names(own.plan)).units] = True
        return found

    def _true_of(self, own: Sample, batches: Sequence[pa.RecordBatch]) -> dict[Leaf, np.ndarray]:
        """Return the rows for which leaves already served by filters are TRUE."""
        found = {}
        for leaf in own.plan.survivors.evidence:
            try:
                found[leaf] = np.concatenate([survives(truth(leaf, batch)) for batch in batches])
            except UnsupportedPredicate:
                continue
        return found


@dataclass(frozen=True)
class _Names:
    """The live files, known by name only; see :class:`secateur.pruning.statistics.Statistics`."""

    plan: PlannedScan

    def __len__(self) -> int:
        return len(self.plan.paths)

    @property
    def row_count(self) -> np.ndarray:
        return np.broadcast_to(np.int64(-1), len(self))

    def zones(self, column: Field) -> Zones | None:
        """Return the zone maps of a column given by file names."""
        return self.plan.opened.listing.zones(column)
