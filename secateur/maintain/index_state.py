"""The state of an index: what it covers, what it costs, its age, and how well the table is clustered."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secateur.index.zones.sort_key import parse_sort_key
from secateur.io.scan.clustering import clustering
from secateur.io.scan.index_coverage import Covered
from secateur.io.scan.opened_table import open_snapshot_of
from secateur.maintain.describe import IndexSnapshot, described
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.nodes import quoted_name
from secateur.pruning.report import Faults
from secateur.values.kinds import kind_of

if TYPE_CHECKING:
    import pyarrow as pa

    from secateur.io.tables.table import Table


@dataclass(frozen=True)
class DepthCount:
    """The blocks with a depth of more than half of `depth` and at most `depth`, a power of two."""

    depth: int
    blocks: int


@dataclass(frozen=True)
class ColumnClustering:
    """How many blocks share the values of a column, by their bounds; see :func:`secateur.inspect.clustering`."""

    column: str
    blocks: int
    unbounded: int  # blocks that may hold any value
    constant: int  # blocks that hold a single value
    mean_depth: float | None  # None without a block that has bounds
    max_depth: int | None
    depths: tuple[DepthCount, ...]


@dataclass(frozen=True)
class IndexState:
    """The index of a table at one moment, beside the files that the table has then."""

    index: IndexSnapshot
    live_files: int
    covered_files: int
    clustering: tuple[ColumnClustering, ...]  # in the order of the columns asked for

    @property
    def structures(self) -> tuple[Covered, ...]:
        """The structures of the index by column, the largest first."""
        return tuple(sorted(self.index.coverage, key=lambda covered: (-covered.bytes, covered.column)))

    @property
    def other_bytes(self) -> int:
        """The bytes of the index that belong to no column: its page locations, lists of files, and tree."""
        return self.index.index_bytes - sum(covered.bytes for covered in self.index.coverage)


def index_state(table: Table, by: Sequence[str] | None) -> IndexState:
    """Look at the index of a table; see :func:`secateur.report_index`. Raises the same."""
    index = described(table)
    opened = open_snapshot_of(table, dt.UTC, Faults(strict=True))
    live = len(opened.catalog.files)
    columns = _columns_of(index, opened.schema) if by is None else list(by)
    return IndexState(
        index=index,
        live_files=live,
        covered_files=live - len(opened.catalog.coverage.uncovered),
        clustering=_clustering_by(table, columns or None),
    )


def _columns_of(index: IndexSnapshot, schema: pa.Schema) -> list[str]:
    """Return the columns of the table with an order that were named when the index was built, each once."""
    named = [*index.gaps, *index.bloom, *index.postings, *index.ordered, *index.ngram, *index.tokens]
    paths = dict.fromkeys([*(column.path for column in parse_sort_key(index.sort_key)), *map(split_name, named)])
    ordered = _with_order(schema)
    return [quoted_name(path[0]) for path in paths if path in ordered]


def _with_order(schema: pa.Schema) -> set[tuple[str, ...]]:
    """Return the paths of the columns that have an order, outside of structs."""
    return {(field.name,) for field in schema if kind_of(field.type) is not None}


def clustering_of_known(table: Table, columns: Sequence[str]) -> tuple[ColumnClustering, ...]:
    """Return how well a table is clustered by those of some columns that it has, outside of structs, and that order."""
    ordered = _with_order(open_snapshot_of(table, dt.UTC, Faults(strict=True)).schema)
    known = [name for name in columns if split_name(name) in ordered]
    return _clustering_by(table, known) if known else ()


def _clustering_by(table: Table, columns: Sequence[str] | None) -> tuple[ColumnClustering, ...]:
    return column_clusterings(clustering(table, columns))


def column_clusterings(rows: pa.Table) -> tuple[ColumnClustering, ...]:
    """Return the rows of :func:`secateur.inspect.clustering` as values."""
    return tuple(map(_column_clustering, rows.to_pylist()))


def _column_clustering(row: dict[str, object]) -> ColumnClustering:
    """Return a row of :func:`secateur.inspect.clustering` as a value."""
    depths, others = row.pop("depths"), {name: row[name] for name in row if name != "mean_overlaps"}
    counts = tuple(DepthCount(**count) for count in depths or ())  # type: ignore[attr-defined]
    return ColumnClustering(**others, depths=counts)  # type: ignore[arg-type]
