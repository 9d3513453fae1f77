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
from secateur.pruning.explain.replaced_zones import with_gaps
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
    table = _Table(tried, whole, [sample.without(facts) for sample in samples], facts)
    asked = [table.question(sample) for sample in table.samples]
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

    def question(self, sample: Sample) -> QueryCost:
        """Return what a predicate reads, and the least that it could read."""
        matches = [self.facts[place].matches[sample.number] for place in sample.places]
        least = None
        if None not in matches:
            hits = sum(map(bool, matches))
            least = sample.now.scaled(
                estimated(hits, len(sample.at), len(sample.blocks), self._typical(sample, sample.leaves))
            )
        return QueryCost(str(sample.plan.written), sample.now, least, len(sample.at))

    def _typical(self, sample: Sample, asked: Sequence[Leaf]) -> float | None:
        """Estimate the blocks of a plan that hold the values of its rarest conjunct, if they are typical values."""
        counts = []
        for leaf in asked:
            for question in questions(leaf) if leaf in conjuncts(sample.plan.predicate) else ():
                typical = self._sampled(question.column).typical if isinstance(question, Values) else None
                if typical is not None and isinstance(question, Values):
                    counts.append(min(1.0, typical * len(question.points) / len(self.every)) * len(sample.blocks))
        return min(counts, default=None)

    def _sampled(self, field: Field) -> Sampled:
        return self._columns.get(field, Sampled([], len(self.every)))

    @cached_property
    def _columns(self) -> dict[Field, Sampled]:
        """The columns for which filters or gaps are tried, over all sampled blocks."""
        samples = {field: [facts.samples[field] for facts in self.facts.values()] for field in self.tried.columns}
        return {
            f: Sampled([sample for sample in of_column if sample is not None], len(self.every))
            for f, of_column in samples.items()
        }

    def _existing(self, sample: Sample) -> dict[Leaf, np.ndarray]:
        """Return the sampled blocks in which existing filters refute leaves."""
        return {leaf: ~sample.chosen.among(numbers) for leaf, numbers in sample.plan.survivors.evidence.items()}

    # ---- filters

    def filters(self) -> Iterator[Proposal]:
        """Yield proposals for filters that the index lacks, over all predicates."""
        for offer, served in self.tried.filters.items():
            left = tuple(
                self._with_filter(sample, offer, [leaf for leaf in sample.leaves if leaf in served])
                for sample in self.samples
            )
            simulated = [facts.filters[offer] for facts in self.facts.values()]
            takes = bytes_of(offer, self._sampled(offer.column), simulated)
            yield Proposal(offer.structure, str(offer.column), self._call(offer.argument), takes, left)

    def _with_filter(self, sample: Sample, offer: Offer, served: Sequence[Leaf]) -> Amount:
        if not served or not len(sample.at):
            return sample.now
        refuted = self._existing(sample)
        for leaf in served:
            may_hold = np.array([self.facts[place].filters[offer].may_hold[leaf] for place in sample.places])
            refuted[leaf] = ~may_hold | refuted.get(leaf, np.zeros(len(may_hold), bool))
        survivors = int(survives(evaluate_refuted(sample.plan.survivors.predicate, sample.chosen, refuted)).sum())
        blocks = len(sample.blocks)
        left = estimated(survivors, len(sample.at), blocks, self._typical(sample, served))
        wrong = max(false_positives(offer, leaf, len(self.every)) for leaf in served)
        return sample.now.scaled(left + wrong * (blocks - left))

    def _call(self, argument: str) -> str:
        name = "build_index" if self.whole.opened.catalog.snapshot is None else "refresh_index"
        return f"{name}(table, spark=spark, {argument})"

    # ---- gaps

    def gaps(self) -> Iterator[Proposal]:
        """Yield proposals for gaps that the index lacks and that a build would keep."""
        for field in self.tried.gaps:
            column = self._sampled(field)
            if column.has_gaps:
                left = tuple(self._with_gaps(sample, field) for sample in self.samples)
                yield Proposal("gaps", str(field), self._call(gaps_argument(field)), gap_bytes(column), left)

    def _with_gaps(self, sample: Sample, field: Field) -> Amount:
        if field not in fields(sample.plan.predicate) or not len(sample.at):
            return sample.now
        samples = [self.facts[place].samples[field] for place in sample.places]
        gaps = gaps_over([None if column_sample is None else gaps_of(column_sample) for column_sample in samples])
        blocks = with_gaps(sample.chosen, {field: gaps})
        survivors = int(
            survives(evaluate_refuted(sample.plan.survivors.predicate, blocks, self._existing(sample))).sum()
        )
        return sample.now.scaled(
            estimated(survivors, len(sample.at), len(sample.blocks), self._typical(sample, sample.leaves))
        )

    # ---- clusterings

    def clusterings(self, asked: Sequence[QueryCost]) -> Iterator[Proposal]:
        """Yield proposals to sort the table by another column, within its partitions."""
        sorted_parts: dict[tuple[Field, tuple[Place, ...]], Sorted] = {}
        whole = Sample(self.whole, np.zeros(0, np.int64), -1).now
        for field in self.tried.clusterings:
            left = tuple(
                self._sorted_by(sample, field, whole, question, sorted_parts)
                for sample, question in zip(self.samples, asked, strict=True)
            )
            how = (
                f"rewrite the table in ORDER BY {field}, then build_index(table, spark=spark, sort_key={[str(field)]})"
            )
            yield Proposal(CLUSTERING, str(field), how, int(whole.bytes), left)

    def _sorted_by(
        self,
        sample: Sample,
        field: Field,
        whole: Amount,
        question: QueryCost,
        sorted_parts: dict[tuple[Field, tuple[Place, ...]], Sorted],
    ) -> Amount:
        live = self._partitions(sample)
        blocks = int(np.count_nonzero(live[self.every.file]))
        places = tuple(place for place, facts in self.facts.items() if facts.rows is not None and live[place[0]])
        batches = [rows for place in places if (rows := self.facts[place].rows) is not None and rows.num_rows]
        if not batches:
            return sample.now
        if (field, places) not in sorted_parts:
            rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
            sorted_parts[field, places] = sorted_by(rows, field, len(batches), blocks)
        sorted_table = sorted_parts[field, places]
        share = sorted_table.share_left(sample.plan.predicate, self._true_of(sample, batches))
        least = 1.0 if question.least is None else min(1.0, question.least.blocks)
        return whole.scaled(min(float(blocks), max(blocks * share, least)))

    def _partitions(self, sample: Sample) -> np.ndarray:
        """Return the files that may match by their names, which a rewrite does not change: bool of shape (n,)."""
        may_match = np.zeros(len(sample.plan.paths), bool)
        may_match[alive(sample.plan.predicate, _Names(sample.plan)).units] = True
        return may_match

    def _true_of(self, sample: Sample, batches: Sequence[pa.RecordBatch]) -> dict[Leaf, np.ndarray]:
        """Return the rows for which leaves that have filters already are TRUE, without those on indexed expressions."""
        outcomes = {}
        for leaf in sample.leaves:
            if leaf not in sample.plan.survivors.evidence:
                continue
            try:
                outcomes[leaf] = np.concatenate([survives(truth(leaf, batch)) for batch in batches])
            except UnsupportedPredicate:
                continue
        return outcomes


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
