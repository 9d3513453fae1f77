"""Record the location of an index in its table's metadata."""

from __future__ import annotations

from secateur.errors import UnsupportedTable
from secateur.io.tables.table import Table
from secateur.maintain.entries import require_snapshot


def register_index(table: Table) -> str:
    """Record the location of the index in an Iceberg table's metadata, so that no ``index_location`` is needed.

    It adds a statistics file (Puffin) to the current snapshot; other statistics of the snapshot are kept.

    Returns
    -------
    str
        The path of the file added.

    Raises
    ------
    IndexMissing
        If there is no index.
    IndexNotWritable
    UnsupportedTable
        For a table without metadata.
    """
    require_snapshot(table)
    add = getattr(table, "register_index", None)
    if add is None:
        raise UnsupportedTable(f"{table.location} is a directory: it has no metadata in which an index could be named")
    path: str = add()
    return path
