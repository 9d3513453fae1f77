"""Explain why a stage pruned a block, by re-evaluating that stage's statistics.

A conjunction can be TRUE only if each conjunct can. So if bounds or filters rule out a block, some single conjunct
rules it out, with two exceptions: sort key tuples and pages, which bound conjuncts jointly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from secateur.integers import in_all
from secateur.pruning.bounds.outcomes import survives
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.evaluate import evaluate, may_match
from secateur.pruning.explain.explanation import STRUCTURES, spelled
from secateur.pruning.explain.replaced_zones import without_zones
from secateur.pruning.explain.why import Cause, Evidence, gaps_text, zone_map_text
from secateur.pruning.order import Order
from secateur.pruning.predicate.bound import Field, Leaf, Within
from secateur.pruning.predicate.bound_walks import fields, leaves
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.questions import FilterHits, questions
from secateur.pruning.stages.files import evidence_of_files
from secateur.pruning.stages.pages import may_match_in_pages
from secateur.pruning.stages.rows import listed_rows
from secateur.pruning.stages.survivors import evaluate_with
from secateur.pruning.statistics import Blocks, Catalog, Statistics

Answers = Mapping[Leaf, Sequence[FilterHits]]  # for every leaf that some filter supports


def answers_of(predicate: Predicate, catalog: Catalog, segments: np.ndarray) -> Answers:
    """Return the answers of each filter for every leaf over some segments."""
    asked = {
        leaf: [answer for question in questions(leaf) for answer in catalog.answers(question, segments)]
        for leaf in dict.fromkeys(leaves(predicate))
    }
    return {leaf: answers for leaf, answers in asked.items() if answers}


def evidence_in(answers: Answers) -> Evidence:
    """Return, for every leaf, the blocks that all filters together leave."""
    together = {leaf: in_all([answer.numbers for answer in hits]) for leaf, hits in answers.items()}
    return {leaf: numbers for leaf, numbers in together.items() if numbers is not None}


@dataclass(frozen=True)
class Single:
    """One unit out of many, as statistics with n = 1."""

    many: Statistics
    at: int

    def __len__(self) -> int:
        return 1

    @property
    def row_count(self) -> np.ndarray:
        return self.many.row_count[self.at : self.at + 1]

    def zones(self, column: Field) -> Zones | None:
        """Return the zone map of the unit."""
        zones = self.many.zones(column)
        return None if zones is None else zones.take(slice(self.at, self.at + 1))


@dataclass(frozen=True)
class Pruned:
    """A pruned block, with its statistics and those of its segment."""

    predicate: Predicate
    implied: Within | None  # what the predicate implies for sort key tuples
    sort_key: str
    catalog: Catalog
    limit: int | None
    order: Order | None
    segment: int  # segment of its file; -1 for none
    block: Blocks  # just this block
    answers: Answers

    @cached_property
    def evidence(self) -> Evidence:
        """The blocks that filters leave, by leaf."""
        return evidence_in(self.answers)

    def cause(self, stage: str) -> Cause:
        """Return why this stage pruned the block."""
        match stage:
            case "files":
                cause = self._by_file()
            case "segments":
                cause = self._by_segment()
            case "filters":
                cause = self._by_filters()
            case "zone maps":
                cause = (
                    self._by_bounds() or self._by_filters() or self._by_both() or self._by_pages() or self._by_rows()
                )
            case "remembered":
                cause = Cause(None, "an earlier read of the same condition, or of a wider one, found no row in it")
            case "deletes":
                cause = Cause(None, f"all {int(self.block.row_count[0]):,} rows of it are deleted")
            case "limit":
                cause = Cause(None, f"the blocks before it that match with every row hold {self.limit:,} rows")
            case "top-n segments" | "top-n":
                cause = self._by_order("stand before all of its rows")
            case "first rows":
                cause = self._by_order("stand before all of its rows, or are equal to them,")
            case "rows":
                cause = self._by_rows()
            case _:
                cause = self._within_blocks()
        return cause or Cause(None, "statistics that cannot be read again")

    def _first(self, possible: Callable[[Predicate], bool]) -> Predicate | None:
        """Return the first conjunct that is not possible."""
        return next((conjunct for conjunct in conjuncts(self.predicate) if not possible(conjunct)), None)

    def _by_file(self) -> Cause | None:
        files, file = self.catalog.files, int(self.block.file[0])
        alone = Single(files, file)
        conjunct = self._first(lambda part: bool(may_match(part, alone)[0]))
        if conjunct is not None:
            return Cause(str(conjunct), _zone_maps("by what the table says of the file, ", conjunct, alone))
        evidence = evidence_of_files(self.predicate, files)
        conjunct = self._first(lambda part: bool(survives(evaluate_with(part, files, evidence))[file]))
        return None if conjunct is None else Cause(str(conjunct), "its partition holds nothing that this asks for")

    def _by_segment(self) -> Cause | None:
        merged = self.catalog.merged(np.array([self.segment]))
        conjunct = self._first(lambda part: bool(survives(evaluate(part, merged))[0]))
        if conjunct is not None:
            return Cause(str(conjunct), _zone_maps("by the merged zone map of its segment, ", conjunct, merged))
        return self._by_tuples("of its segment", merged)

    def _by_filters(self) -> Cause | None:
        only = without_zones(self.block)
        conjunct = self._first(lambda part: bool(survives(evaluate_with(part, only, self.evidence))[0]))
        return None if conjunct is None else Cause(str(conjunct), "; ".join(dict.fromkeys(self._absent(conjunct))))

    def _absent(self, conjunct: Predicate) -> Iterator[str]:
        """Yield the filters that rule out a leaf of a conjunct."""
        for leaf in dict.fromkeys(leaves(conjunct)):
            for answer in self.answers.get(leaf, ()):
                if not self.block.among(answer.numbers)[0]:
                    named = ", ".join(dict.fromkeys(str(question.column) for question in questions(leaf)))
                    yield f"by the {spelled(STRUCTURES[answer.kind])} of {named}, nothing that {leaf} asks for is here"

    def _by_bounds(self) -> Cause | None:
        conjunct = self._first(lambda part: bool(survives(evaluate(part, self.block))[0]))
        if conjunct is None:
            return self._by_tuples("of its tuples", self.block)
        gaps = "; ".join(filter(None, (gaps_text(field, self.block) for field in fields(conjunct))))
        return Cause(str(conjunct), _zone_maps("", conjunct, self.block) + (f"; {gaps}" if gaps else ""))

    def _by_order(self, where: str) -> Cause:
        assert self.order is not None, "the stages of an order run only where there is one"
        before = f"at least {self.limit:,} matching rows {where} in the order {self.order}"
        return Cause(None, f"{before} ({zone_map_text(self.order.first.field, self.block)})")

    def _by_both(self) -> Cause | None:
        """Return the cause if only bounds and filters together rule the block out, as under OR."""
        conjunct = self._first(lambda part: bool(survives(evaluate_with(part, self.block, self.evidence))[0]))
        if conjunct is None:
            return None
        return Cause(
            str(conjunct), "; ".join([_zone_maps("", conjunct, self.block), *dict.fromkeys(self._absent(conjunct))])
        )

    def _by_tuples(self, whose: str, unit: Statistics) -> Cause | None:
        if self.implied is None or may_match(self.implied, unit)[0]:
            return None
        return Cause(None, f"no tuple of ({self.sort_key}) between the least and the greatest {whose} satisfies it")

    def _by_pages(self) -> Cause | None:
        conjunct = self._first(lambda part: bool(may_match_in_pages(part, self.block)[0]))
        if conjunct is not None:
            return Cause(str(conjunct), self._pages(conjunct))
        if not may_match_in_pages(self.predicate, self.block)[0]:
            return Cause(None, f"every page rules out one of the conditions: {self._pages(self.predicate)}")
        return None

    def _within_blocks(self) -> Cause | None:
        """Return the cause by pages, or by the rows that postings list, or by both."""
        return self._by_pages() or self._by_rows()

    def _by_rows(self) -> Cause | None:
        conjunct = self._first(lambda part: self._listed(part) != 0)
        if conjunct is not None:
            return Cause(str(conjunct), "postings list no row of it for all that this asks for")
        match self._listed(self.predicate):
            case None:
                return None
            case 0:
                return Cause(None, "none of the rows that postings list for one condition may meet the others")
            case _:
                return Cause(None, "none of the rows that postings list is in a page that may hold a match")

    def _listed(self, predicate: Predicate) -> int | None:
        """Return how many rows of the block postings list for a predicate; None if they say nothing."""
        rows = listed_rows(predicate, self.catalog, self.block)
        return None if rows is None else int(rows.row_counts.sum())

    def _pages(self, predicate: Predicate) -> str:
        counts = ((field, self.block.pages(field)) for field in fields(predicate))
        texts = [f"{int(pages.offsets[-1]):,} of {field}" for field, pages in counts if pages is not None]
        return f"by the bounds of its pages, {', '.join(texts)}"


def _zone_maps(whose: str, conjunct: Predicate, unit: Statistics) -> str:
    return whose + "; ".join(zone_map_text(field, unit) for field in fields(conjunct))
