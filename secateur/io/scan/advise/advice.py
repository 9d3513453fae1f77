"""Advice for a table: evaluate structures on a sample of its blocks, and extrapolate to all blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.index.advise.candidates import gaps_argument
from secateur.index.advise.resort import Sorted, sorted_by
from secateur.io.scan.advise.block_samples import Place, Sample, read_facts, rows_true_of, sample, what_to_try
from secateur.io.scan.advise.sampled_table import SampledTable
from secateur.io.scan.planned_scan import PlannedScan
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.conjuncts import alive
from secateur.pruning.explain.advice import CLUSTERING, Advice, Amount, Proposal, QueryCost, estimated, ranked
from secateur.pruning.predicate.bound import Field


def advice(whole: PlannedScan, plans: Sequence[PlannedScan], most: int) -> Advice:
    """Return advice for some plans; `whole` is the plan of all blocks of the same table."""
    tried = what_to_try(whole, plans)
    samples = [sample(plan, most, number) for number, plan in enumerate(plans)]
    facts = read_facts(tried, sample(whole, most), samples)
    every = whole.survivors.blocks
    sampled = SampledTable(tried, every, [sample.without(facts) for sample in samples], facts)
    table = _Table(whole, plans, sampled)
    asked = [table.question(sample) for sample in sampled.samples]
    proposals = [*table.filters(), *table.gaps(), *table.clusterings(asked)]
    return Advice(tuple(asked), ranked(proposals, asked), len(every), len(facts))


# ---- estimates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """The facts read from the sample, and the proposals that follow for the predicates."""

    whole: PlannedScan
    plans: Sequence[PlannedScan]
    sampled: SampledTable

    def question(self, sample: Sample) -> QueryCost:
        """Return what a predicate reads, and the least that it could read."""
        matches = [self.sampled.facts[place].matches[sample.number] for place in sample.places]
        least = None
        if None not in matches:
            hits, typical = sum(map(bool, matches)), self.sampled.typical(sample, sample.leaves)
            least = sample.now.scaled(estimated(hits, len(sample.at), len(sample.blocks), typical))
        return QueryCost(str(self.plans[sample.number].written), sample.now, least, len(sample.at))

    # ---- filters and gaps

    def filters(self) -> Iterator[Proposal]:
        """Yield proposals for filters that the index lacks, over all predicates."""
        for offer in self.sampled.tried.filters:
            left = tuple(self.sampled.left(sample, [offer]) for sample in self.sampled.samples)
            takes = self.sampled.filter_bytes(offer)
            yield Proposal(offer.structure, str(offer.column), self._call(offer.argument), takes, left)

    def gaps(self) -> Iterator[Proposal]:
        """Yield proposals for gaps that the index lacks and that a build would keep."""
        for field in self.sampled.tried.gaps:
            if self.sampled.column(field).has_gaps:
                left = tuple(self.sampled.left(sample, gaps=[field]) for sample in self.sampled.samples)
                takes = self.sampled.gap_bytes(field)
                yield Proposal("gaps", str(field), self._call(gaps_argument(field)), takes, left)

    def _call(self, argument: str) -> str:
        name = "build_index" if self.whole.opened.catalog.snapshot is None else "refresh_index"
        return f"{name}(table, spark=spark, {argument})"

    # ---- clusterings

    def clusterings(self, asked: Sequence[QueryCost]) -> Iterator[Proposal]:
        """Yield proposals to sort the table by another column, within its partitions."""
        sorted_parts: dict[tuple[Field, tuple[Place, ...]], Sorted] = {}
        whole = Sample(self.whole, np.zeros(0, np.int64), -1).now
        for field in self.sampled.tried.clusterings:
            left = tuple(
                self._sorted_by(sample, field, whole, question, sorted_parts)
                for sample, question in zip(self.sampled.samples, asked, strict=True)
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
        blocks, known = int(np.count_nonzero(live[self.sampled.every.file])), self.sampled.facts
        places = tuple(place for place, facts in known.items() if facts.rows is not None and live[place[0]])
        batches = [rows for place in places if (rows := known[place].rows) is not None and rows.num_rows]
        if not batches:
            return sample.now
        if (field, places) not in sorted_parts:
            rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
            sorted_parts[field, places] = sorted_by(rows, field, len(batches), blocks)
        sorted_table = sorted_parts[field, places]
        share = sorted_table.share_left(sample.plan.predicate, rows_true_of(sample, batches))
        least = 1.0 if question.least is None else min(1.0, question.least.blocks)
        return whole.scaled(min(float(blocks), max(blocks * share, least)))

    def _partitions(self, sample: Sample) -> np.ndarray:
        """Return the files that may match by their names, which a rewrite does not change: bool of shape (n,)."""
        plan = self.plans[sample.number]
        may_match = np.zeros(len(plan.paths), bool)
        may_match[alive(plan.predicate, _Names(plan)).units] = True
        return may_match


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
