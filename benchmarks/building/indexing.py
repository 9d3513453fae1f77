"""The size of an index's filters."""

from __future__ import annotations

from secateur.index.filters.transpose import FOLDER
from secateur.io.tables.table import Table


def filter_bytes(table: Table) -> int:
    """The bytes of all filters of a table's index."""
    return sum(file.size for file in table.store.files(FOLDER))
