"""A report on an index: what it covers, what it costs, its age, and how well the table is clustered."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secateur.io.scan.clustering import clustering
from secateur.io.scan.index_coverage import Covered
from secateur.io.scan.opened_table import open_snapshot_of
from secateur.io.tables.open import as_table
from secateur.maintain.describe import IndexSnapshot, described
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.report import Faults
from secateur.values import kind_of

if TYPE_CHECKING:
    import pyarrow as pa

    from secateur.io.tables.open import Source
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
class IndexReport:
    """The state of an index, for people and scripts."""

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

    def to_html(self) -> str:
        """Return a self-contained HTML page."""
        from secateur.html.index_page import index_parts
        from secateur.html.plan_page import page

        return page(f"index of {self.index.location}", index_parts(self))

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        from secateur.html.index_page import index_parts
        from secateur.html.plan_page import fragment

        return fragment(index_parts(self))


def report_index(table: Table | Source, *, by: Sequence[str] | None = None) -> IndexReport:
    """Report what the index of a table covers, what it costs, how old it is, and how well the table is clustered.

    Nothing but the index is read, and the footers of files that it does not cover.

    Parameters
    ----------
    by
        The columns whose clustering is measured; by default those that the index was told of: its sort key, and what
        has gaps or filters. If there are none, all columns with an order.

    Returns
    -------
    IndexReport

    Raises
    ------
    IndexMissing, IndexFault
        If there is no index, or it cannot be read.
    UnknownColumn, AmbiguousColumn, InvalidOption
        For a column of `by` that the table does not have, or whose values have no order.
    """
    table = as_table(table)
    index = described(table)
    opened = open_snapshot_of(table, dt.UTC, Faults(strict=True))
    live = len(opened.catalog.files)
    columns = _columns_of(index, opened.schema) if by is None else list(by)
    rows = clustering(table, columns or None).to_pylist()
    return IndexReport(
        index=index,
        live_files=live,
        covered_files=live - len(opened.catalog.coverage.uncovered),
        clustering=tuple(_column_clustering(row) for row in rows),
    )


def _columns_of(index: IndexSnapshot, schema: pa.Schema) -> list[str]:
    """Return the ordered columns of the table that the index was told of, each once."""
    sort_key = [item.split()[0] for item in index.sort_key]
    filtered = [*index.bloom, *index.postings, *index.ngram, *index.tokens]
    columns = dict.fromkeys([*sort_key, *index.gaps, *filtered])
    ordered = {field.name for field in schema if kind_of(field.type) is not None}
    return [name for name in columns if split_name(name) == (name,) and name in ordered]


def _column_clustering(row: dict[str, object]) -> ColumnClustering:
    """Return a row of :func:`secateur.inspect.clustering` as a value."""
    depths, others = row.pop("depths"), {name: row[name] for name in row if name != "mean_overlaps"}
    counts = tuple(DepthCount(**count) for count in depths or ())  # type: ignore[attr-defined]
    return ColumnClustering(**others, depths=counts)  # type: ignore[arg-type]
