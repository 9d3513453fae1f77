"""The records of one segment in an index, read once, and what compares them with the values of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from secateur.index.model import ORDERED, BlockTable, Filter, IndexedColumn, is_derived, is_tuple_column
from secateur.index.read.loader import IndexMemory
from secateur.index.segments.named_columns import expressions_of
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.stored_segment import stored_segment
from secateur.index.verify.check_rows import RowWitness, SegmentRows, segment_rows
from secateur.index.verify.check_statistics import ColumnWitness, Unit
from secateur.index.verify.check_sums import SumWitness
from secateur.index.zones.page_statistics import PageTable
from secateur.index.zones.sort_key import SortColumn, parse_sort_key
from secateur.index.zones.zonemap import ZoneMap
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.index_paths import is_sum, summed_path
from secateur.pruning.predicate.indexed.indexed_expressions import IndexedExpression


@dataclass
class SegmentRecords:
    """The records of a segment."""

    memory: IndexMemory
    segment: int

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that has the segment."""
        return self.memory.snapshot

    def sum_witnesses(self, root: str, block: int) -> list[SumWitness]:
        """Return a witness for every sum that is kept of a top-level column; none for those that cannot be read."""
        witnesses = []
        for column in self.snapshot.columns:
            if is_sum(column.path) and summed_path(column.path)[0] == root:
                with self.memory.faults.tolerated():
                    zone_map = self.zone_map(column)
                    if zone_map is not None:
                        witnesses.append(SumWitness(column, Unit.of(zone_map, block)))
        return witnesses

    def row_witnesses(self, block: int, filters: Mapping[int, Filter]) -> list[RowWitness[Any]]:
        """Return a witness for every filter that says rows; none for those that cannot be read."""
        witnesses: list[RowWitness[Any]] = []
        for f in (f for f, filter_ in filters.items() if filter_.rows or filter_.kind == ORDERED):
            with self.memory.faults.tolerated():
                if f not in self._row_lists:
                    stored = stored_segment(self.memory.store, self.snapshot, self.segment)
                    self._row_lists[f] = segment_rows(stored, f)
                witnesses.append(RowWitness(self._row_lists[f], block))
        return witnesses

    def witness(self, column: IndexedColumn, block: int) -> ColumnWitness | None:
        """Return a witness for the zone map and the pages of a column; None if they are not kept, or cannot be read."""
        with self.memory.faults.tolerated():
            zone_map = self.zone_map(column)
            if zone_map is None:
                return None
            first_row, pages = self._pages_of(column, block)
            rows = int(self.snapshot.segments.row_count[self.segment])
            count = int(self.blocks.row_count[block])
            leaf = self.leaves.get(column)
            return ColumnWitness(column, Unit.of(zone_map, block), count, leaf, rows, first_row, pages)
        return None

    def _pages_of(self, column: IndexedColumn, block: int) -> tuple[np.ndarray, list[Unit]]:
        table = self._pages[column]
        if table is None:
            return np.zeros(0, np.int64), []
        begin, end = table.offsets[block : block + 2].tolist()
        return table.first_row[begin:end], [Unit.of(table.zone_map, page) for page in range(begin, end)]

    @cached_property
    def blocks(self) -> BlockTable:
        """The block table of the segment. Raises IndexFault."""
        self.memory.row_count(self.segment)
        group, within = self.memory.groups.place(self.segment)
        (resident,) = self.memory.blocks([(group, np.array([self.segment]))])
        return resident.of(within)

    @cached_property
    def columns(self) -> list[IndexedColumn]:
        """The columns that the data files have."""
        return [c for c in self.snapshot.columns if not is_derived(c.path)]

    @cached_property
    def expressions(self) -> list[IndexedExpression]:
        """The indexed expressions."""
        return expressions_of(self.snapshot.options, self.snapshot.schema)

    @cached_property
    def roots(self) -> list[str]:
        """The top-level columns that have any record."""
        paths = [*(c.path for c in self.columns), *(f.path for f in self.snapshot.filters)]
        return list(dict.fromkeys(path[0] for path in paths if not is_derived(path)))

    @cached_property
    def sort_key(self) -> Sequence[SortColumn]:
        """The sort key of the index."""
        return parse_sort_key(self.snapshot.options.sort_key)

    @cached_property
    def _row_lists(self) -> dict[int, SegmentRows[Any]]:
        return {}

    @cached_property
    def _zones(self) -> dict[IndexedColumn, ZoneMap | None]:
        return {}

    def zone_map(self, column: IndexedColumn) -> ZoneMap | None:
        """Return the zone maps of a column over the segment; None if there are none. Raises IndexFault."""
        if column not in self._zones:
            stored = stored_segment(self.memory.store, self.snapshot, self.segment)
            self._zones[column] = stored.known_zone_map(self.snapshot.columns.index(column))
        return self._zones[column]

    @cached_property
    def leaves(self) -> Mapping[IndexedColumn, Unit]:
        """The tree's statistics of this segment. Raises IndexFault."""
        zones = {c: self.snapshot.tree_zones(_field(c)) for c in self.snapshot.columns}
        return {c: Unit.of(nodes, self.segment) for c, nodes in zones.items() if nodes is not None}

    @cached_property
    def _pages(self) -> Mapping[IndexedColumn, PageTable | None]:
        segment = np.array([self.segment])
        columns = [c for c in self.snapshot.columns if not is_tuple_column(c.path)]
        return {c: self.memory.pages(_field(c), segment)[0] for c in columns}


def _field(column: IndexedColumn) -> Field:
    return Field(column.path, column.type)
