"""Plan the logged queries of a table by what every index has: file names, zone maps, and tuples of the sort key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from secateur.errors import SecateurError
from secateur.io.scan.advise.block_samples import Place
from secateur.io.scan.advise.logged_queries import LoggedQuery, Queries, likeliest
from secateur.io.scan.index_options import implied_by
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.planned_scan import Settings
from secateur.io.scan.planning import with_indexed, with_variant_values
from secateur.pruning.bounds.outcomes import survives
from secateur.pruning.conjuncts import alive
from secateur.pruning.evaluate import may_match
from secateur.pruning.explain.replaced_zones import without_gaps
from secateur.pruning.explain.tuning import LoggedShape
from secateur.pruning.predicate.nodes import Predicate, Truth
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.stages.files import evidence_of_files
from secateur.pruning.stages.survivors import Survivors, evaluate_with


@dataclass(frozen=True, eq=False)
class BoundsPlan:
    """A predicate, and the blocks that file names and bounds leave of an open table: no filter, and no gaps."""

    predicate: Predicate
    survivors: Survivors
    opened: OpenedTable
    shape: int = -1  # by number
    source: Place | None = None  # the block that the literals were drawn from
    text: str = ""

    @property
    def bytes(self) -> int:
        """The bytes of these blocks."""
        return int(self.survivors.blocks.byte_count.sum())


def plan_of_all(opened: OpenedTable) -> BoundsPlan:
    """Return the plan of all blocks of a table."""
    every = opened.catalog.blocks_of(np.ones(len(opened.listing.size), bool))
    return BoundsPlan(Truth(True), Survivors(Truth(True), every), opened)


def plans_of(
    whole: BoundsPlan, queries: Sequence[Queries], shapes: Sequence[LoggedShape], settings: Settings
) -> tuple[list[BoundsPlan], list[str]]:
    """Return the plans of the queries of all shapes, and what is to be said of each shape. No plan is reported."""
    size = max(whole.bytes, 1)
    plans, notes = [], []
    for number, of_shape in enumerate(queries):
        note = of_shape.note
        try:
            by_width = [
                [_planned(whole, query, settings, number) for query in of_width] for of_width in of_shape.by_width
            ]
            plans += likeliest(by_width, lambda plan: plan.bytes / size, shapes[number].share)
        except SecateurError as error:
            note = f"cannot be planned: {str(error).splitlines()[0]}"
        notes.append(note)
    return plans, notes


def _planned(whole: BoundsPlan, query: LoggedQuery, settings: Settings, shape: int) -> BoundsPlan:
    opened, every = whole.opened, whole.survivors.blocks
    written = parse(query.text)
    predicate = rewrite(settings.bind(written, opened.binding_schema))
    asked = with_indexed(with_variant_values(predicate, settings, written, opened), settings, written, opened)
    files = opened.catalog.files
    may_hold = np.zeros(len(files), bool)
    may_hold[alive(predicate, files).units] = True
    may_hold &= survives(evaluate_with(predicate, files, evidence_of_files(predicate, files)))
    left = survives(evaluate_with(asked, without_gaps(every), {})) & may_hold[every.file]
    implied = implied_by(predicate, opened)
    if implied is not None:
        left &= may_match(implied, every)
    return BoundsPlan(
        predicate, Survivors(asked, every.take(np.flatnonzero(left))), opened, shape, query.source, query.text
    )
