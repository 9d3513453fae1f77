"""Tune an index: simulate logged queries on sampled blocks, and choose the structures that save the most."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from secateur.index.advise.choose import choose
from secateur.index.model import FilterOption
from secateur.io.scan.advise.block_samples import read_facts, sample
from secateur.io.scan.advise.bounds_plan import BoundsPlan, plan_of_all, plans_of
from secateur.io.scan.advise.logged_queries import queries_of
from secateur.io.scan.advise.sampled_table import SampledTable
from secateur.io.scan.advise.tuning_candidates import (
    Candidate,
    Existing,
    argument_of,
    asked_expressions,
    candidates,
    column_of,
    existing_structures,
    options_of,
    structure_of,
)
from secateur.io.scan.advise.workload_cost import WorkloadCost
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.planned_scan import Settings
from secateur.pruning.explain.tuning import BUILD, DROP, KEEP, LoggedShape, ShapeCost, TunedStructure, Tuning

NEARLY, SMALLER = 0.9, 0.5  # shares of what another structure saves and takes, from which that is not worth a change
NOT_ASKED = "no logged plan is served by it"
NOT_CHOSEN = "beside the others it saves too little for its bytes"
NOT_SIMULATED = "it may serve what could not be simulated"
_NAME = re.compile("`([^`]+)`")


@dataclass(frozen=True)
class Tuned:
    """A tuning, and the filters and gaps that the index then has."""

    tuning: Tuning
    filters: tuple[FilterOption, ...]
    gaps: tuple[str, ...]


def tuned(
    opened: OpenedTable, shapes: Sequence[LoggedShape], settings: Settings, budget: tuple[int, int], most: int
) -> Tuned:
    """Tune the index of an open table for logged shapes, within a budget of bytes beside those of the data.

    At most so many blocks are sampled for each query.
    """
    whole = plan_of_all(opened)
    plans, notes = plans_of(whole, queries_of(whole, shapes), shapes, settings)
    existing = existing_structures(opened)
    tried = candidates(plans, existing, opened)
    samples = [sample(plan, most, number, plan.source) for number, plan in enumerate(plans)]
    facts = read_facts(tried, sample(whole, most), samples, with_matches=False)
    sampled = SampledTable(tried, whole.survivors.blocks, [sample.without(facts) for sample in samples], facts)
    return _Choice(opened, sampled, plans, shapes, notes, existing, *budget).result


@dataclass(frozen=True, eq=False)
class _Choice:
    """The structures that could be, and those that are chosen."""

    opened: OpenedTable
    sampled: SampledTable
    plans: Sequence[BoundsPlan]
    shapes: Sequence[LoggedShape]
    notes: Sequence[str]
    existing: Sequence[Existing]
    budget: int
    data_bytes: int

    @cached_property
    def result(self) -> Tuned:
        """The tuning."""
        left = self.budget - sum(map(self._bytes, self.unjudged))
        chosen = choose(self.offered, self.cost.bundles(self.offered), self.cost.of, left)
        there = frozenset(candidate for candidate in self.sizes if self._existing(candidate) is not None)
        tuning = Tuning(
            table=self.opened.table.location,
            budget=self.budget,
            data_bytes=self.data_bytes,
            blocks=len(self.sampled.every),
            sampled=len(self.sampled.facts),
            structures=(*self._chosen(chosen), *map(self._stays, self.unjudged), *self._dropped(chosen)),
            shapes=self._shape_costs(there, frozenset(chosen)),
        )
        return Tuned(tuning, *options_of(chosen, self.unjudged))

    # ---- what there is to choose from

    @cached_property
    def unjudged(self) -> list[Existing]:
        """The structures of the index that may serve a shape which could not be simulated, or an expression."""
        simulated = {plan.shape for plan in self.plans}
        others = [shape.shape.lower() for number, shape in enumerate(self.shapes) if number not in simulated]
        expressions = asked_expressions(self.plans)
        return [
            item
            for item in self.existing
            if item.column in expressions or any(_names(text, item.column) for text in others)
        ]

    @cached_property
    def cost(self) -> WorkloadCost:
        """What logged queries read with some structures, beside those that are not judged."""
        tried: list[Candidate] = [*self.sampled.tried.filters, *self.sampled.tried.gaps]
        always = frozenset(candidate for candidate in tried if any(item.is_that(candidate) for item in self.unjudged))
        return WorkloadCost(self.sampled, self.plans, self.shapes, always)

    @cached_property
    def sizes(self) -> dict[Candidate, int]:
        """The bytes of every candidate that is judged and that a build would keep: measured where the index has it."""
        sampled = self.sampled
        estimates: dict[Candidate, int] = {offer: sampled.filter_bytes(offer) for offer in sampled.tried.filters}
        estimates |= {f: sampled.gap_bytes(f) for f in sampled.tried.gaps if sampled.column(f).has_gaps}
        sizes = {}
        for candidate, estimate in estimates.items():
            item = self._existing(candidate)
            if item is not None and candidate not in self.cost.always:
                sizes[candidate] = estimate if item.bytes is None else item.bytes
            elif item is None and estimate:
                sizes[candidate] = estimate
        return sizes

    @cached_property
    def offered(self) -> dict[Candidate, int]:
        """The candidates to choose from, with their bytes.

        Without those that nearly the same structure of the index makes needless: what is there costs nothing to build.
        """
        there = [candidate for candidate in self.sizes if self._existing(candidate) is not None]
        nothing = self.cost.of(frozenset())
        saved = {candidate: nothing - self.cost.of(frozenset([candidate])) for candidate in self.sizes}
        return {
            candidate: size
            for candidate, size in self.sizes.items()
            if candidate in there
            or not any(
                column_of(other) == column_of(candidate)
                and saved[other] >= NEARLY * saved[candidate]
                and SMALLER * self.sizes[other] <= size
                for other in there
            )
        }

    def _existing(self, candidate: Candidate) -> Existing | None:
        return next((item for item in self.existing if item.is_that(candidate)), None)

    def _bytes(self, item: Existing) -> int:
        """Return the bytes of a structure of the index; those of gaps nobody asks for are not known."""
        fields = [field for field in self.sampled.tried.gaps if item.is_that(field)]
        return sum(map(self.sampled.gap_bytes, fields)) if item.bytes is None else item.bytes

    # ---- the result

    def _chosen(self, chosen: Sequence[Candidate]) -> list[TunedStructure]:
        plans = max(sum(self.cost.weights), 1)
        result, before = [], frozenset[Candidate]()
        for candidate in chosen:
            saved = (self.cost.of(before) - self.cost.of(before | {candidate})) / plans
            before |= {candidate}
            is_there = self._existing(candidate) is not None
            result.append(
                TunedStructure(
                    action=KEEP if is_there else BUILD,
                    structure=structure_of(candidate),
                    column=str(column_of(candidate)),
                    bytes=self.sizes[candidate],
                    saved=saved,
                    why="",
                    call="" if is_there else f"refresh_index(table, spark=spark, {argument_of(candidate)})",
                )
            )
        return result

    def _stays(self, item: Existing) -> TunedStructure:
        return TunedStructure(KEEP, item.structure, item.column, self._bytes(item), None, NOT_SIMULATED, "")

    def _dropped(self, chosen: Sequence[Candidate]) -> list[TunedStructure]:
        stay = [*self.unjudged, *map(self._existing, chosen)]
        asked = [candidate for relevant in self.cost.relevant for candidate in relevant]
        dropped = []
        for item in self.existing:
            if item not in stay:
                why = NOT_CHOSEN if any(map(item.is_that, asked)) else NOT_ASKED
                dropped.append(TunedStructure(DROP, item.structure, item.column, self._bytes(item), None, why, ""))
        return dropped

    def _shape_costs(self, now: frozenset[Candidate], then: frozenset[Candidate]) -> tuple[ShapeCost, ...]:
        return tuple(
            ShapeCost(shape.shape, shape.plans, self.cost.of_shape(i, now), self.cost.of_shape(i, then), note)
            for i, (shape, note) in enumerate(zip(self.shapes, self.notes, strict=True))
        )


def _names(shape: str, column: str) -> bool:
    """Whether the text of a shape may name a column, or one that an expression is of."""
    names = _NAME.findall(column) or [column.rpartition(".")[2]]
    return any(name.lower() in shape for name in names)
