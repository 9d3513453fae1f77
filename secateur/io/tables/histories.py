"""The history of a table of any format."""

from __future__ import annotations

from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.history import History
from secateur.io.tables.table import TableSnapshot


def history_of(table: TableSnapshot) -> History:
    """Return the history of a table, seen from one snapshot of it."""
    if isinstance(table, ParquetDirectory):
        from secateur.io.tables.directory.history import DirectoryHistory

        return DirectoryHistory(table)
    from secateur.io.tables.delta.snapshot import DeltaSnapshot

    if isinstance(table, DeltaSnapshot):
        from secateur.io.tables.delta.history import DeltaHistory

        return DeltaHistory(table)
    from secateur.io.tables.hudi.snapshot import HudiSnapshot

    if isinstance(table, HudiSnapshot):
        from secateur.io.tables.hudi.history import HudiHistory

        return HudiHistory(table)
    from secateur.io.tables.iceberg.history import IcebergHistory  # PyIceberg may be missing
    from secateur.io.tables.iceberg.snapshot import IcebergSnapshot

    assert isinstance(table, IcebergSnapshot), "there is no other format"
    return IcebergHistory(table)
