"""What the filters of an index take."""

from __future__ import annotations

from secateur.index.filters.transpose import FOLDER
from secateur.io.tables.table import Table


def filter_bytes(table: Table) -> int:
    """What all filters of a table's index take."""
    return sum(file.size for file in table.store.files(FOLDER))
