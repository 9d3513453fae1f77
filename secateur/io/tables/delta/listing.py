"""The live files of one version of a Delta table, with the statistics from its log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy, present
from secateur.index.naming import Path
from secateur.index.zones import zonemap
from secateur.io.tables.delta.live_files import rows_of_column
from secateur.io.tables.delta.schema import TableMetadata
from secateur.io.tables.delta.statistics import LoggedStatistics, bounded_columns, from_structs, from_texts
from secateur.io.tables.listing import METADATA, DeleteCounts, Listing
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.values.kinds import kind_of, ordered_kind

ReadPositions = Callable[["DeltaListing", np.ndarray], "list[np.ndarray] | None"]


@dataclass(frozen=True)
class DeltaListing(Listing):
    """The data files of a version, ordered by path: below the table, or whole URIs of files elsewhere.

    An index entry belongs to a path, a size and the modification time in the log. Deletion vectors are not part of it,
    because they do not change the file.
    """

    metadata: TableMetadata = field(kw_only=True)
    stats: pa.ChunkedArray | None = None  # of every file, JSON
    parsed: pa.ChunkedArray | None = None  # a checkpoint's typed statistics
    vectors: pa.Array | None = None  # descriptions of deletion vectors; None: no file has one
    read_positions: ReadPositions | None = None

    def take(self, files: np.ndarray) -> Self:
        """Return some files, given by ascending ordinals, with their statistics and deletion vectors."""
        stats, parsed = (
            None if column is None else rows_of_column(column, files) for column in (self.stats, self.parsed)
        )
        vectors = None if self.vectors is None else self.vectors.take(from_numpy(files))
        return replace(super().take(files), stats=stats, parsed=parsed, vectors=vectors)

    # ---- statistics

    def bounds(self, column: Field, among: np.ndarray) -> Zones | None:
        """Return the log's bounds and counts of a column for the files `among`; unknown for the others."""
        path = self.metadata.physical.get(column.path)
        if path is None or kind_of(column.type) is None or column.path[0] == METADATA or not len(among):
            return None
        known = self._zones.get((path, column.type))
        if known is None or not np.array_equal(known[0], among):
            known = self._zones[path, column.type] = (among, self._bounds(path, column.type, among))
        return known[1]

    @cached_property
    def _zones(self) -> dict[tuple[Path, pa.DataType], tuple[np.ndarray, Zones | None]]:
        return {}

    def _bounds(self, path: Path, type_: pa.DataType, among: np.ndarray) -> Zones | None:
        if path not in self._bounded:
            return None
        statistics = self._statistics(path, among)
        bounds = statistics.zone_map(path, type_, may_be_floats=self.metadata.is_widened)
        if bounds is None:
            return None
        rows = statistics.row_count
        if len(among) < len(self.size):
            at = np.full(len(self.size), len(among))
            at[among] = np.arange(len(among))
            bounds = zonemap.concat([bounds, zonemap.unknown(ordered_kind(type_), 1)]).take(at)
            rows = np.append(rows, -1)[at]
        return bounds.zones(rows)

    @cached_property
    def _bounded(self) -> dict[Path, pa.DataType]:
        """The columns that may have bounds."""
        return bounded_columns(self.metadata.data_schema, self.metadata.physical)

    def _statistics(self, path: Path, among: np.ndarray) -> LoggedStatistics:
        """Return the statistics of one column of some files: only what a predicate names is parsed."""
        columns = {path: self._bounded[path]}
        if self.parsed is not None:
            return from_structs(rows_of_column(self.parsed, among).combine_chunks(), columns)
        if self.stats is not None:
            return from_texts(rows_of_column(self.stats, among).combine_chunks(), columns)
        return from_texts(pa.nulls(len(among), pa.large_string()), columns)

    # ---- deleted rows

    @property
    def row_state(self) -> tuple[pa.Array, ...]:
        """Also the table's own id and the names of columns in files, and the deletion vectors."""
        named = pa.array([repr((self.metadata.id, self.metadata.mode, sorted(self.metadata.physical.items())))])
        return (*super().row_state, named, *(() if self.vectors is None else (self.vectors,)))

    @cached_property
    def touched(self) -> np.ndarray | None:
        """Which files have a deletion vector."""
        return None if self.vectors is None else present(self.vectors)

    @cached_property
    def _deleted_rows(self) -> np.ndarray:
        """The number of deleted rows of every file, from the log."""
        if self.vectors is None:
            return np.zeros(len(self.size), np.int64)
        cardinality = pc.fill_null(pc.struct_field(self.vectors, "cardinality"), 0)
        counts: np.ndarray = cardinality.to_numpy(zero_copy_only=False).astype(np.int64)
        return counts

    def most_deleted(self, files: np.ndarray) -> np.ndarray:
        """Return the number of deleted rows of some files, from the log."""
        return self._deleted_rows[files]

    def deleted(self, files: np.ndarray, among: np.ndarray) -> list[np.ndarray] | None:
        """Return the deleted positions of some files, ascending; None if they cannot be read."""
        return None if self.vectors is None or self.read_positions is None else self.read_positions(self, files)

    def delete_counts(self, ordinals: np.ndarray) -> DeleteCounts:
        """Return the deletion vectors of the version, and how far they apply to some files."""
        if self.vectors is None or self.touched is None:
            return DeleteCounts(touched=0)
        applied_vectors = self.vectors.take(pa.array(ordinals[self.touched[ordinals]]))
        total, applied = int(self.touched.sum()), len(applied_vectors)
        size = pc.sum(pc.struct_field(applied_vectors, "sizeInBytes")).as_py() or 0
        return DeleteCounts(vectors=total, applied=applied, applied_bytes=size, needed=applied, touched=total)


def of_delta(listing: Listing) -> DeltaListing:
    """Return the listing of a Delta table by its own type."""
    assert isinstance(listing, DeltaListing), "a listing is given to the table that made it"
    return listing
