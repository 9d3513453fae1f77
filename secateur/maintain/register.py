"""Name the location of an index in its table's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.errors import UnsupportedTable
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.maintain.entries import require_snapshot

if TYPE_CHECKING:
    from secateur.io.tables.open import Source


def register_index(table: Table | Source) -> str:
    """Name the location of the index in an Iceberg table's metadata, so that no ``index_location`` is needed.

    Sets the table property ``secateur.index-location``. After moving the index, register it again.

    Returns
    -------
    str
        The location.

    Raises
    ------
    IndexMissing
        If there is no index.
    IndexNotWritable
    UnsupportedTable
        For a table without metadata.
    """
    table = as_table(table)
    require_snapshot(table)
    register = getattr(table, "register_index", None)
    if register is None:
        raise UnsupportedTable(f"{table.location} is a directory: it has no metadata in which an index could be named")
    location: str = register()
    return location
