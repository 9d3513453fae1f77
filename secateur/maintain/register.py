"""Naming the place of an index in the metadata of its table."""

from __future__ import annotations

from secateur.errors import UnsupportedTable
from secateur.io.tables.table import Table
from secateur.maintain.entries import require_snapshot


def register_index(table: Table) -> str:
    """Name the place of the index in the metadata of an Iceberg table; the path of the file that was added.

    Whoever opens the table then finds the index there, without ``index_location``. It is a statistics file (Puffin) of
    the current snapshot, beside whose statistics it stands. Raises IndexMissing where there is no index,
    IndexNotWritable, and UnsupportedTable for a table that has no metadata.
    """
    require_snapshot(table)
    add = getattr(table, "register_index", None)
    if add is None:
        raise UnsupportedTable(f"{table.location} is a directory: it has no metadata in which an index could be named")
    path: str = add()
    return path
