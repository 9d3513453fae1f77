"""The structures that an index has, and those that could serve some predicates: what a tuning chooses from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from secateur.index.advise.candidates import Offer, gap_columns, gaps_argument, offers, range_offers, serves
from secateur.index.model import BuildOptions, FilterOption, name_of
from secateur.index.segments.named_columns import called_in_table
from secateur.io.scan.advise.block_samples import Plan, Tried
from secateur.io.scan.index_coverage import covered, setting_of
from secateur.io.scan.opened_table import OpenedTable
from secateur.pruning.explain.explanation import STRUCTURES
from secateur.pruning.predicate.bound import Field, Leaf
from secateur.pruning.predicate.bound_walks import columns, fields, leaves
from secateur.pruning.predicate.index_paths import is_expression
from secateur.pruning.questions import questions

GAPS = "gaps"
Candidate: TypeAlias = Offer | Field  # a filter, or the gaps of a column


@dataclass(frozen=True)
class Existing:
    """A structure of the index: a filter, or the gaps of a column if there is no option."""

    column: str
    option: FilterOption | None
    bytes: int | None  # None: not known by itself

    @property
    def structure(self) -> str:
        """Its name in arguments."""
        return GAPS if self.option is None else STRUCTURES[self.option.kind]

    def is_that(self, candidate: Candidate) -> bool:
        """Whether a candidate is this structure."""
        match candidate:
            case Offer(column, option):
                return name_of(column.path) == self.column and option == self.option
            case field:
                return name_of(field.path) == self.column and self.option is None


def structure_of(candidate: Candidate) -> str:
    """Return the name of a candidate in arguments."""
    return candidate.structure if isinstance(candidate, Offer) else GAPS


def column_of(candidate: Candidate) -> Field:
    """Return the column that a candidate is of."""
    return candidate.column if isinstance(candidate, Offer) else candidate


def argument_of(candidate: Candidate) -> str:
    """Return the argument of a build that requests a candidate."""
    return candidate.argument if isinstance(candidate, Offer) else gaps_argument(candidate)


def options_of(
    chosen: Sequence[Candidate], others: Sequence[Existing]
) -> tuple[tuple[FilterOption, ...], tuple[str, ...]]:
    """Return the filters and the columns with gaps of an index that has some candidates, and others that it had."""
    filters = [candidate.option for candidate in chosen if isinstance(candidate, Offer)]
    gaps = [name_of(candidate.path) for candidate in chosen if not isinstance(candidate, Offer)]
    return (
        (*filters, *(item.option for item in others if item.option is not None)),
        (*gaps, *(item.column for item in others if item.option is None)),
    )


def options_in_table(opened: OpenedTable) -> BuildOptions:
    """Return the options of the table's index, under the table's names of columns; at least an index."""
    snapshot = opened.catalog.snapshot
    assert snapshot is not None, "an index is tuned, so there is one"
    return called_in_table(snapshot.options, opened.table.naming)


def existing_structures(opened: OpenedTable) -> list[Existing]:
    """Return the filters and gaps of the index."""
    options = options_in_table(opened)
    sizes = {(item.column, item.structure, item.setting): item.bytes for item in covered(opened)}
    filters = [
        Existing(f.column, f, sizes.get((f.column, STRUCTURES[f.kind], setting_of(f)), 0)) for f in options.filters
    ]
    return [*filters, *(Existing(column, None, None) for column in options.gaps)]


def candidates(plans: Sequence[Plan], existing: Sequence[Existing], opened: OpenedTable) -> Tried:
    """Return the structures that could serve the predicates of some plans, whether the index has them or not."""
    outside = set(opened.listing.columns)
    asked = list(dict.fromkeys(leaf for plan in plans for leaf in leaves(plan.predicate)))
    offered = dict.fromkeys(offer for offer in _offers(asked, existing) if offer.column.path[0] not in outside)
    filters = {offer: _served(offer, asked) for offer in offered}
    inside = dict.fromkeys(field for plan in plans for field in fields(plan.predicate) if field.path[0] not in outside)
    kept = {item.column for item in existing if item.option is None}
    gaps = dict.fromkeys(field for leaf in asked for field in gap_columns(leaf))
    return Tried(
        filters,
        [field for field in inside if field in gaps or name_of(field.path) in kept],
        (),
        list(dict.fromkeys(name for plan in plans for name in columns(plan.predicate))),
    )


def _offers(asked: Sequence[Leaf], existing: Sequence[Existing]) -> Iterator[Offer]:
    """Yield the filters that serve some leaf; of kinds that a column has, those it has come before others."""
    for leaf in asked:
        there = [
            Offer(question.column, item.option)
            for question in questions(leaf)
            for item in existing
            if item.option is not None
            and item.column == name_of(question.column.path)
            and serves(item.option, question)
        ]
        yield from there
        kinds = {(offer.column, offer.option.kind) for offer in there}
        offered = (*offers(leaf), *range_offers(leaf))
        yield from (offer for offer in offered if (offer.column, offer.option.kind) not in kinds)


def _served(offer: Offer, asked: Sequence[Leaf]) -> list[Leaf]:
    return [
        leaf
        for leaf in asked
        if any(question.column == offer.column and serves(offer.option, question) for question in questions(leaf))
    ]


def asked_expressions(plans: Sequence[Plan]) -> set[str]:
    """Return the indexed expressions that the predicates of some plans ask for."""
    asked = (field for plan in plans for field in fields(plan.survivors.predicate))
    of_questions = (
        question.column for plan in plans for leaf in leaves(plan.survivors.predicate) for question in questions(leaf)
    )
    return {name_of(field.path) for field in (*asked, *of_questions) if is_expression(field.path)}
