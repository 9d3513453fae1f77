"""Prune rows of a file by its own page index, if no index did so before the file was opened.

The algebra is that of the stage "pages" (``pruning/stages/pages.py``), over the row groups that are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from secateur.index.model import IndexedColumn
from secateur.index.zones.page_statistics import PageTable, take_pages
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.parquet.row_selection import RowSelection, intersection
from secateur.io.tables.file_source import OpenedFile
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.bound_walks import fields
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.stages.pages import surviving_rows
from secateur.pruning.statistics import Pages
from secateur.values.kinds import kind_of


@dataclass(frozen=True, eq=False)
class PagePruner:
    """The page index of one file."""

    open: Callable[[], OpenedFile]
    constants: Collection[str]  # columns that are not read from the file
    is_stored: Callable[[int], bool]  # whether the index has a row group's pages, so that they were checked already

    @cached_property
    def source(self) -> OpenedFile:
        """The file with its footer, which is read when needed."""
        return self.open()

    @cached_property
    def _zone_maps(self) -> dict[Field, ZoneMap | None]:
        return {}

    @cached_property
    def _pages(self) -> dict[tuple[Field, ...], Mapping[Field, PageTable]]:
        return {}

    def may_match(self, row_group: int, predicate: Predicate, rows: RowSelection | None) -> RowSelection | None:
        """Return the selected rows, or all, that page bounds cannot rule out; None for all rows.

        Sound: a row is left out only if the predicate is TRUE on no row of its blocklet.
        """
        if self.is_stored(row_group):
            return rows
        columns = tuple(fields(predicate))
        tables = self._tables(columns)
        if not any(np.diff(table.offsets)[row_group] > 1 for table in tables.values()):
            return rows
        number = np.array([row_group])
        known = {column: self._zone_map(column) for column in columns}
        block = OneBlock(
            self.source.row_count[number],
            {column: values.take(number) for column, values in known.items() if values is not None},
        )
        taken = {column: take_pages(table, number) for column, table in tables.items()}
        pages = {
            column: Pages(values.offsets, values.first_row, values.zone_map.zones(values.row_counts(block.row_count)))
            for column, values in taken.items()
        }
        rows_left = RowSelection(*surviving_rows(predicate, block, pages))
        return rows_left if rows is None else intersection(rows, rows_left)

    def _tables(self, columns: tuple[Field, ...]) -> Mapping[Field, PageTable]:
        """Return the pages of those predicate columns that have a page index."""
        if columns not in self._pages:
            named = {IndexedColumn(column.path, column.type): column for column in columns}
            known = {
                stored: zone_map for stored, column in named.items() if (zone_map := self._zone_map(column)) is not None
            }
            self._pages[columns] = {named[stored]: table for stored, table in self.source.pages(known).items()}
        return self._pages[columns]

    def _zone_map(self, column: Field) -> ZoneMap | None:
        """Return the zone maps of a column over the row groups; None if the file does not have them."""
        if column not in self._zone_maps:
            known = column.path[0] not in self.constants and kind_of(column.type) is not None
            self._zone_maps[column] = self.source.zone_map(column.path, column.type) if known else None
        return self._zone_maps[column]


@dataclass(frozen=True)
class OneBlock:
    """Statistics of a single block; see :class:`secateur.pruning.statistics.Statistics`."""

    row_count: np.ndarray
    zone_maps: Mapping[Field, ZoneMap]

    def __len__(self) -> int:
        return 1

    def zones(self, column: Field) -> Zones | None:
        """Return the block's zone map of a column."""
        zone_map = self.zone_maps.get(column)
        return None if zone_map is None else zone_map.zones(self.row_count)
