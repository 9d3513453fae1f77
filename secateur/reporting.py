"""A report on an index: the public function, and its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from secateur.html.index_page import clustering_parts, index_parts
from secateur.html.plan_page import fragment, page
from secateur.io.scan.clustering import clustering_of, ranked_bounds
from secateur.io.storage.redaction import redacted_location
from secateur.io.tables.open import as_table
from secateur.maintain.index_state import IndexState, column_clusterings, index_state

if TYPE_CHECKING:
    from secateur.io.tables.open import Source
    from secateur.io.tables.table import Table


@dataclass(frozen=True)
class IndexReport(IndexState):
    """The state of an index, for people and scripts."""

    def to_html(self) -> str:
        """Return a self-contained HTML page."""
        return page(f"index of {self.index.location}", index_parts(self))

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        return fragment(index_parts(self))


def report_index(table: Table | Source, *, by: Sequence[str] | None = None) -> IndexReport:
    """Report what the index of a table covers, what it costs, how old it is, and how well the table is clustered.

    Reads only the index, and the footers of files that it does not cover.

    Parameters
    ----------
    by
        The columns whose clustering is measured; by default those of the index's sort key, and those with gaps or
        filters. If there are none, all columns with an order.

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
    state = index_state(as_table(table), by)
    return IndexReport(state.index, state.live_files, state.covered_files, state.clustering)


def clustering_page(table: Table | Source, columns: Sequence[str] | None = None, *, by: Sequence[str] = ()) -> str:
    """Return :func:`secateur.inspect.clustering` as a self-contained HTML page, with a picture of the bounds.

    Takes and raises the same. The picture has the blocks from left to right in the order of files, and of each a bar
    from its lower to its upper bound, of a column or of tuples, by their ranks: a line that rises or falls where the
    table is sorted, full height where every block may hold every value.
    """
    bounds = list(ranked_bounds(table, columns, by=by))
    location = redacted_location(as_table(table).location)
    depths = clustering_parts(column_clusterings(clustering_of(bounds)), bounds)
    return page(f"clustering of {location}", [f"<h1><code>{escape(location)}</code></h1>", *depths])
