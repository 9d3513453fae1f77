"""The table formats, with what each has besides its tables: their history, and their own writer."""

from __future__ import annotations

from dataclasses import dataclass

from secateur.errors import InvalidOption
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.history import History
from secateur.io.tables.rewriter import Rewriter
from secateur.io.tables.table import TableSnapshot


@dataclass(frozen=True)
class FormatParts:
    """What a format has for one snapshot of a table."""

    history: History
    rewriter: Rewriter | None  # None if it takes no files to rewrite


def history_of(table: TableSnapshot) -> History:
    """Return the history of a table, seen from one snapshot of it."""
    return _parts_of(table).history


def rewriter_of(table: TableSnapshot) -> Rewriter:
    """Return the writer of a table. Raises InvalidOption for a format whose writer takes no files or partitions."""
    parts = _parts_of(table)
    if parts.rewriter is None:
        raise InvalidOption(f"{table.location} is a Hudi table, which only Hudi's own clustering service rewrites")
    return parts.rewriter


def _parts_of(table: TableSnapshot) -> FormatParts:
    if isinstance(table, ParquetDirectory):
        from secateur.io.tables.directory.history import DirectoryHistory
        from secateur.io.tables.directory.rewriter import DirectoryRewriter

        return FormatParts(DirectoryHistory(table), DirectoryRewriter(table.location))
    from secateur.io.tables.delta.snapshot import DeltaSnapshot

    if isinstance(table, DeltaSnapshot):
        from secateur.io.tables.delta.history import DeltaHistory
        from secateur.io.tables.delta.rewriter import DeltaRewriter

        return FormatParts(DeltaHistory(table), DeltaRewriter(table.location))
    from secateur.io.tables.hudi.snapshot import HudiSnapshot

    if isinstance(table, HudiSnapshot):
        from secateur.io.tables.hudi.history import HudiHistory

        return FormatParts(HudiHistory(table), None)
    from secateur.io.tables.iceberg.history import IcebergHistory  # PyIceberg may be missing
    from secateur.io.tables.iceberg.rewriter import IcebergRewriter
    from secateur.io.tables.iceberg.snapshot import IcebergSnapshot

    assert isinstance(table, IcebergSnapshot), "there is no other format"
    return FormatParts(IcebergHistory(table), IcebergRewriter(table.location, table.identifier))
