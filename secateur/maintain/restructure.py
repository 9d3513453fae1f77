"""Give an index other filters and gaps than it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from secateur.index.build.auto_index import GAPS, ZONE_MAP
from secateur.index.build.tasks import RunTasks
from secateur.index.model import BuildOptions, FilterOption
from secateur.index.segments.named_columns import called_in_table
from secateur.io.tables.table import Table
from secateur.maintain.build import build_with
from secateur.maintain.describe import IndexSnapshot
from secateur.maintain.entries import require_snapshot
from secateur.maintain.refresh import refresh_with


def restructure(table: Table, run: RunTasks, filters: Sequence[FilterOption], gaps: Sequence[str]) -> IndexSnapshot:
    """Make an index keep just these filters and gaps, and everything else as it was; publish it in one atomic create.

    If nothing is dropped, only what is new is built, as a refresh does; else the index is built anew, as segments hold
    what is dropped. Until it returns, readers see the old index, and it stays if this fails.
    """
    before = called_in_table(require_snapshot(table).options, table.snapshot().naming)
    if {*before.filters} <= {*filters} and {*before.gaps} <= {*gaps}:
        added = BuildOptions(
            filters=tuple(option for option in filters if option not in before.filters),
            gaps=tuple(name for name in gaps if name not in before.gaps),
        )
        return refresh_with(table, run, added).index
    kept = {(option.kind, option.column) for option in filters} | {(GAPS, name) for name in gaps}
    choices = (c for c in before.choices if c.structure == ZONE_MAP or (c.structure, c.column) in kept)
    return build_with(table, run, replace(before, filters=tuple(filters), gaps=tuple(gaps), choices=tuple(choices)))
