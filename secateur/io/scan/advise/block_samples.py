"""Sample the blocks to read for advice, and keep a few facts on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from secateur.errors import OldCalendar, UnsupportedPredicate
from secateur.index.advise.candidates import Offer, gap_columns, offers, range_offers
from secateur.index.advise.simulate import SimulatedFilter, sample_of_column, simulated_filter
from secateur.index.build.auto_index import ColumnSample
from secateur.io.scan.block_list import BlockList, block_list
from secateur.io.scan.index_coverage import columns_with_gaps, not_covered
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.reading.block_reader import BlockReader, block_reader
from secateur.io.scan.reading.opened_rows import Positioned
from secateur.io.scan.reading.read_ahead import read_ahead
from secateur.io.tables.file_rows import FileBlocks
from secateur.io.tables.listing import METADATA
from secateur.pruning.bounds.outcomes import survives
from secateur.pruning.explain.advice import Amount
from secateur.pruning.predicate.bound import Field, Leaf
from secateur.pruning.predicate.bound_walks import columns, fields, leaves
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.variant_paths import has_variant
from secateur.pruning.residual import Residuals
from secateur.pruning.rows.row_values import column
from secateur.pruning.rows.truth import possible_rows, truth
from secateur.pruning.stages.survivors import Survivors
from secateur.pruning.statistics import Blocks
from secateur.values.kinds import kind_of

MOST_ROWS = 1 << 22  # of sampled blocks that are sorted to try a clustering
LEAST_SORTED = 4  # blocks that are sorted, however many rows they have

Read = TypeVar("Read")
Place = tuple[int, int]  # a live file and one of its row groups


class Plan(Protocol):
    """A predicate over an open table, and the blocks that may hold a match."""

    @property
    def predicate(self) -> Predicate:
        """The bound predicate."""

    @property
    def survivors(self) -> Survivors:
        """The blocks, and the predicate as the index is asked."""

    @property
    def opened(self) -> OpenedTable:
        """The table."""


@dataclass(frozen=True, eq=False)
class Sample:
    """The plan of a predicate, and its sampled blocks, ascending."""

    plan: Plan
    at: np.ndarray
    number: int  # of the predicate; -1 for the whole table
    source: Place | None = None  # the block that the predicate's literals were taken from, if from one

    @property
    def blocks(self) -> Blocks:
        """All blocks of the plan."""
        return self.plan.survivors.blocks

    @cached_property
    def chosen(self) -> Blocks:
        """The sampled blocks."""
        return self.blocks.take(self.at)

    @cached_property
    def places(self) -> list[Place]:
        """The files and row groups of the sampled blocks."""
        return list(zip(self.chosen.file.tolist(), self.chosen.row_group.tolist(), strict=True))

    def without(self, facts: Mapping[Place, object]) -> Sample:
        """Return the sample without the blocks that could not be read."""
        return replace(self, at=self.at[[place in facts for place in self.places]])

    @property
    def now(self) -> Amount:
        """The amount that the plan reads."""
        blocks = self.blocks
        return Amount(len(blocks), int(blocks.row_count.sum()), int(blocks.byte_count.sum()))

    @cached_property
    def leaves(self) -> list[Leaf]:
        """The distinct leaves of the predicate."""
        return list(dict.fromkeys(leaves(self.plan.predicate)))


def sample(plan: Plan, most: int, number: int = -1, source: Place | None = None) -> Sample:
    """Sample at most `most` blocks of a plan, pseudo-randomly; plans that share blocks share them in their samples."""
    blocks = plan.survivors.blocks
    file, group = blocks.file.astype(np.uint64), blocks.row_group.astype(np.uint64)
    mixed = (file * np.uint64(0x9E3779B97F4A7C15)) ^ (group * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    order = np.argsort(mixed ^ (mixed >> np.uint64(32)), kind="stable")
    return Sample(plan, np.sort(order[:most]), number, source)


# ---- candidates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """Structures that the index lacks and that could serve some leaf."""

    filters: Mapping[Offer, Sequence[Leaf]]
    gaps: Sequence[Field]
    clusterings: Sequence[Field]
    names: Sequence[str]  # top-level columns to read

    @property
    def columns(self) -> list[Field]:
        """The columns for which filters or gaps are tried."""
        return list(dict.fromkeys([*(offer.column for offer in self.filters), *self.gaps]))


def what_to_try(whole: Plan, plans: Sequence[Plan]) -> Tried:
    """Return the missing structures that could serve the predicates of some plans.

    VARIANT columns are not read: only Spark decides conditions on them.
    """
    opened = whole.opened
    kept, outside, have_gaps = not_covered(opened), set(opened.listing.columns), columns_with_gaps(opened)
    asked = dict.fromkeys(leaf for plan in plans for leaf in leaves(plan.predicate))
    served: dict[Offer, list[Leaf]] = {}
    for leaf in asked:
        for offer in (*offers(leaf), *range_offers(leaf)):
            if (".".join(offer.column.path), offer.structure) not in kept and offer.column.path[0] not in outside:
                served.setdefault(offer, []).append(leaf)
    gaps = dict.fromkeys(field for leaf in asked for field in gap_columns(leaf))
    inside = dict.fromkeys(field for plan in plans for field in fields(plan.predicate) if field.path[0] not in outside)
    named = dict.fromkeys(name for plan in plans for name in columns(plan.predicate))
    variants = {field.name for field in opened.readable_schema if has_variant(field.type)}
    return Tried(
        served,
        [field for field in gaps if field in inside and ".".join(field.path) not in have_gaps],
        [field for field in inside if kind_of(field.type) is not None and field.path[0] != METADATA],
        [name for name in named if name not in variants],
    )


# ---- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """The facts kept of a sampled block."""

    matches: Mapping[int, bool | None]  # by number of the plan, if asked for; None if only Spark can decide
    filters: Mapping[Offer, SimulatedFilter]
    samples: Mapping[Field, ColumnSample | None]
    rows: pa.RecordBatch | None  # of the blocks on which clusterings are tried


def read_facts(
    tried: Tried, whole: Sample, samples: Sequence[Sample], *, with_matches: bool = True
) -> dict[Place, Facts]:
    """Read the facts of every sampled block without values that only Spark converts. Raises as reading does."""
    plans: dict[Place, list[int]] = {place: [] for place in whole.places}
    for sample in samples:
        for place in sample.places:
            plans.setdefault(place, []).append(sample.number)
    most = max(LEAST_SORTED, int(np.searchsorted(np.cumsum(whole.chosen.row_count), MOST_ROWS)))
    sorted_ = set(whole.places[:: -(-len(whole.places) // most) or 1]) if tried.clusterings else set()

    def of_block(place: Place, batch: pa.RecordBatch) -> Facts:
        asked = plans[place] if with_matches else ()
        matches = {number: _matches(samples[number].plan.predicate, batch) for number in asked}
        filters = {
            offer: simulated_filter(offer, served, column(batch, offer.column))
            for offer, served in tried.filters.items()
        }
        samples_of_columns = {field: sample_of_column(column(batch, field)) for field in tried.columns}
        return Facts(matches, filters, samples_of_columns, batch if place in sorted_ else None)

    return read_blocks(whole.plan.opened, tried.names, sorted(plans), of_block)


def read_blocks(
    opened: OpenedTable, names: Sequence[str], places: Sequence[Place], read: Callable[[Place, pa.RecordBatch], Read]
) -> dict[Place, Read]:
    """Read top-level columns of the blocks at ascending places, except values that only Spark converts.

    Raises as reading does.
    """
    if not places:
        return {}
    reader, listed = _reader(opened, names, places)
    of_file = [list(of_one_file) for _, of_one_file in groupby(places, key=lambda place: place[0])]

    def of_block(place: Place, batches: Iterator[Positioned]) -> Read | None:
        try:
            return read(place, _one_batch([batch for _, batch in batches], reader.fields))
        except OldCalendar:
            return None

    def of_blocks(file: tuple[list[Place], FileBlocks]) -> list[Read | None]:
        return [of_block(place, batches) for place, batches in zip(file[0], reader.live(file[1]), strict=True)]

    results = read_ahead(of_blocks, zip(of_file, listed.by_file(), strict=True), reader.at_once)
    pairs = zip(places, chain.from_iterable(results), strict=True)
    return {place: result for place, result in pairs if result is not None}


def _reader(opened: OpenedTable, names: Sequence[str], places: Sequence[Place]) -> tuple[BlockReader, BlockList]:
    """Return a reader of whole row groups and selected columns, and the blocks at some places, in reading order."""
    listing = opened.listing
    file, group = np.array([f for f, _ in places], np.int64), np.array([g for _, g in places], np.int64)
    delivery = opened.table.delivery(listing, np.unique(file))
    nothing = np.zeros(len(places), np.int64)
    wanted = [opened.readable_schema.field(name) for name in names]
    reader = block_reader(opened, delivery, wanted, Residuals((None,), nothing, None))
    return reader, block_list(listing, delivery.options, file, group, nothing)


def _one_batch(batches: Sequence[pa.RecordBatch], wanted: Sequence[pa.Field]) -> pa.RecordBatch:
    """Combine the rows of a row group to one batch; a batch without columns keeps its row count."""
    if not wanted:
        return pa.RecordBatch.from_arrays([pa.nulls(sum(batch.num_rows for batch in batches))], names=[""])
    schema = pa.schema(wanted)
    arrays = [pa.concat_arrays([batch.column(name) for batch in batches]) for name in schema.names] if batches else None
    return pa.RecordBatch.from_arrays(arrays or [pa.array([], field.type) for field in schema], schema=schema)


def _matches(predicate: Predicate, batch: pa.RecordBatch) -> bool | None:
    """Return whether some row may match; None if only Spark can decide."""
    try:
        return bool(possible_rows(predicate, batch).any())
    except UnsupportedPredicate:
        return None


def rows_true_of(sample: Sample, batches: Sequence[pa.RecordBatch]) -> dict[Leaf, np.ndarray]:
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
